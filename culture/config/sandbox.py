"""The ``sandbox:`` block of agents.yaml: files an agent's program sees, hosts it can reach."""

import re
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Annotated, Literal, NamedTuple

from pydantic import AfterValidator, BeforeValidator

from culture.config.values import File, Settings

HTTPS = 443
LOOPBACK_NAME = "localhost"
_LABEL = r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"(\*\.)?{_LABEL}(\.{_LABEL})*")
_ENTRY = re.compile(r"(?P<host>\[[^\[\]]+\]|[^\[\]:\s/]+)(:(?P<port>[0-9]{1,5}))?")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class HostRule(NamedTuple):
    """An entry of ``hosts:``: ``name``, ``name:port``, ``*.name``, or an address with a port."""

    host: str
    port: int
    explicit: bool
    """Whether the entry names the port: only then it allows a private network."""

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_address(self) -> bool:
        """Return whether the rule names an IP address or localhost, and not a host name."""
        return self.host == LOOPBACK_NAME or _is_address(self.host)

    def matches(self, host: str, port: int) -> bool:
        r"""Return whether the rule lets a program connect to this host and port.

        An invalid name never matches: the resolver would cut ``evil.org\0.example.com`` at the zero.
        """
        host = host.lower().rstrip(".")
        if not (_is_address(host) or _NAME.fullmatch(host)):
            return False
        if self.host.startswith("*."):
            return port == self.port and host.endswith(self.host[1:])
        return (host, port) == (self.host, self.port)


def parse_host(text: str) -> HostRule:
    """Parse an entry of ``hosts:``; raises ValueError with a text that shows a right one."""
    match = _ENTRY.fullmatch(text.strip().lower())
    host = match["host"].strip("[]").rstrip(".") if match else ""
    port = int(match["port"]) if match and match["port"] else None
    if not (_is_address(host) or _NAME.fullmatch(host)) or (port is not None and not 0 < port < 65536):
        raise ValueError(f"{text!r} is not a host such as git.example.com, *.example.com or localhost:11434")
    rule = HostRule(host, port or HTTPS, port is not None)
    if rule.is_address and not rule.explicit:
        raise ValueError(f"{text!r} needs a port, as in {text}:8080: it is an address of this machine or network")
    return rule


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _host(text: str) -> str:
    parse_host(text)
    return text


def _variable(name: str) -> str:
    if not _VARIABLE.fullmatch(name):
        raise ValueError(f"{name!r} is not the name of an environment variable")
    return name


def block(value: object) -> object:
    """Return the value of ``sandbox: bwrap`` as a block, ``{kind: bwrap}``; blocks unchanged."""
    return value if isinstance(value, Mapping | SandboxConfig) else {"kind": value}


Host = Annotated[str, AfterValidator(_host)]
VariableName = Annotated[str, AfterValidator(_variable)]


class SandboxConfig(Settings):
    """How an agent's program is isolated; ``kind: user`` only records that it has its own user."""

    kind: Literal["none", "bwrap", "user"] = "none"
    network: Literal["on", "off"] = "on"
    hosts: tuple[Host, ...] = ()
    read: tuple[File, ...] = ()
    write: tuple[File, ...] = ()
    variables: tuple[VariableName, ...] = ()

    @property
    def rules(self) -> tuple[HostRule, ...]:
        """Return the entries of ``hosts``, parsed."""
        return tuple(map(parse_host, self.hosts))


Sandbox = Annotated[SandboxConfig, BeforeValidator(block)]
