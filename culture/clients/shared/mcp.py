"""The MCP servers of an agent: what agents.yaml says of them, checked before anything is started."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from culture.clients.shared.errors import WrongConfiguration

Kind = Literal["stdio", "http", "sse"]

_FIELD = "mcp_servers"
_NAME = re.compile(r"[A-Za-z0-9_-]{1,60}")
_WEB = frozenset({"type", "url", "headers"})
_KEYS: Mapping[Kind, frozenset[str]] = {
    "stdio": frozenset({"type", "command", "args", "env"}),
    "http": _WEB,
    "sse": _WEB,
}
# As Claude Code, which fills them in itself, has it.
_VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")


@dataclass(frozen=True, slots=True)
class McpServer:
    """One server: a program, or an address. Its texts may have variables in them, which are all set."""

    name: str
    kind: Kind
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)

    def filled(self, environment: Mapping[str, str]) -> "McpServer":
        """With the values of the environment in place of ``${NAME}``; what that makes is secret."""
        return replace(
            self,
            command=_filled(self.command, environment),
            args=tuple(_filled(each, environment) for each in self.args),
            env={name: _filled(value, environment) for name, value in self.env.items()},
            url=_filled(self.url, environment),
            headers={name: _filled(value, environment) for name, value in self.headers.items()},
        )


def mcp_servers(said: object, environment: Mapping[str, str]) -> tuple[McpServer, ...]:
    """The servers as they are written; what they hold may be secret and is never quoted."""
    if said is None:
        return ()
    if not isinstance(said, Mapping):
        raise WrongConfiguration(f"{_FIELD}: expected a mapping from names to servers")
    servers = tuple(_server(str(name), each) for name, each in said.items())
    for each in servers:
        _check_variables(each, environment)
    return servers


def _server(name: str, said: object) -> McpServer:
    if not _NAME.fullmatch(name):
        raise WrongConfiguration(f"{_FIELD}: {name!r} is no name: letters, digits, - and _")
    if not isinstance(said, Mapping) or not {"type", "command", "url"} & said.keys():
        raise _wrong(name, "expected a command or a url")
    kind = _kind(name, said)
    if strange := {str(key) for key in said} - _KEYS[kind]:
        raise _wrong(name, f"{min(strange)} is no key of a server of type {kind}")
    if kind == "stdio":
        return McpServer(name, kind, _command(name, said), _args(name, said), _texts(name, said, "env"))
    return McpServer(name, kind, url=_url(name, said), headers=_texts(name, said, "headers"))


def _kind(name: str, said: Mapping[Any, object]) -> Kind:
    kind = said.get("type", "stdio" if "command" in said else "http")
    for known in _KEYS:
        if known == kind:
            return known
    raise _wrong(name, f"type is none of {', '.join(_KEYS)}")


def _command(name: str, said: Mapping[Any, object]) -> str:
    command = said.get("command")
    if not isinstance(command, str) or not command:
        raise _wrong(name, "command is missing")
    return command


def _args(name: str, said: Mapping[Any, object]) -> tuple[str, ...]:
    args = said.get("args") or ()
    if not isinstance(args, list | tuple) or not all(isinstance(each, str) for each in args):
        raise _wrong(name, "args is no list of texts (put numbers in quotes)")
    return tuple(args)


def _url(name: str, said: Mapping[Any, object]) -> str:
    url = said.get("url")
    if not isinstance(url, str) or not re.match(r"(https?://[^/\s]|\$\{)", url):
        raise _wrong(name, "url must begin with http:// or https://")
    return url


def _texts(name: str, said: Mapping[Any, object], key: str) -> dict[str, str]:
    texts = said.get(key) or {}
    if not isinstance(texts, Mapping) or not all(isinstance(each, str) for pair in texts.items() for each in pair):
        raise _wrong(name, f"{key} is no mapping from names to texts (put numbers in quotes)")
    return dict(texts)


def _check_variables(server: McpServer, environment: Mapping[str, str]) -> None:
    texts = (server.command, *server.args, *server.env.values(), server.url, *server.headers.values())
    for variable, default in (pair for text in texts for pair in _pairs(text)):
        if default is None and variable not in environment:
            raise _wrong(server.name, f"${{{variable}}} is not set in the daemon's environment")


def _pairs(text: str) -> list[tuple[str, str | None]]:
    return [(found[1], found[2]) for found in _VARIABLE.finditer(text)]


def _filled(text: str, environment: Mapping[str, str]) -> str:
    return _VARIABLE.sub(lambda found: environment.get(found[1], found[2] or ""), text)


def _wrong(name: str, text: str) -> WrongConfiguration:
    return WrongConfiguration(f"{_FIELD}.{name}: {text}")
