"""The settings of a bridge, from environment variables."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, ValidationError, field_validator, model_validator

from culture.config.listen_policy import is_loopback
from culture.config.values import Settings, channel_name
from culture.protocol.names import valid_nick
from culture.protocol.vocabulary import WellKnownChannel
from culture.transport import Address

_YES, _NO = frozenset({"1", "true", "yes", "on"}), frozenset({"", "0", "false", "no", "off"})


class WrongSetting(Exception):
    """An environment variable has an invalid value; the text of the exception names it."""


def _number(value: object) -> object:
    return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else value


def _switch(value: object) -> object:
    word = value.strip().lower() if isinstance(value, str) else None
    return True if word in _YES else False if word in _NO else value


def _words(value: object) -> object:
    return tuple(value.replace(",", " ").split()) if isinstance(value, str) else value


def _path(value: object) -> object:
    return Path(value).expanduser() if isinstance(value, str) else value


Port = Annotated[int, BeforeValidator(_number), Field(ge=0, le=65535)]
Switch = Annotated[bool, BeforeValidator(_switch)]
File = Annotated[Path | None, BeforeValidator(_path)]


class BridgeSettings(Settings):
    """Settings of a bridge; the name of a field in capitals is its environment variable."""

    transport_type: str = "irc"
    irc_server: str = "localhost"
    irc_port: Port = 6667
    irc_nick: str = "mcp-bridge"
    irc_password: str | None = Field(default=None, repr=False)
    """Password of the IRC server, if it has one."""
    irc_token: str | None = Field(default=None, repr=False)
    """Token of the bridge's account; if unset, the one in its secret file."""
    irc_tls: Switch = False
    irc_fingerprint: str | None = None
    irc_server_user: str | None = None
    """User that runs the local server, if neither root nor the bridge's own user."""
    irc_channels: Annotated[tuple[str, ...], BeforeValidator(_words)] = (WellKnownChannel.GENERAL.value,)
    mcp_host: str = "127.0.0.1"
    mcp_port: Port = 8090
    mcp_public_url: str | None = None
    """URL under which others reach it: for remote programs, and behind a proxy."""
    mcp_hosts: Annotated[tuple[str, ...], BeforeValidator(_words)] = ()
    """Further host names of the bridge."""
    mcp_tls_cert: File = None
    mcp_tls_key: File = None
    trusted_network: Switch = False

    @field_validator("transport_type")
    @classmethod
    def _check_transport(cls, kind: str) -> str:
        if kind != "irc":
            raise ValueError(f"{kind!r} is no transport: there is irc")
        return kind

    @field_validator("irc_nick")
    @classmethod
    def _nick(cls, nick: str) -> str:
        if not valid_nick(nick):
            raise ValueError(f"{nick!r} is no nick")
        return nick

    @field_validator("irc_channels")
    @classmethod
    def _channels(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(map(channel_name, names))

    @field_validator("mcp_public_url")
    @classmethod
    def _url(cls, url: str | None) -> str | None:
        if url is None:
            return None
        parts = urlsplit(url)
        is_safe = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or ""))
        if not is_safe or not parts.hostname or parts.path.strip("/") or parts.query or parts.fragment:
            raise ValueError(f"{url!r} is no address for others: it looks like https://bridge.example.org")
        return url.rstrip("/")

    @model_validator(mode="after")
    def _protected(self) -> "BridgeSettings":
        if (self.mcp_tls_cert is None) != (self.mcp_tls_key is None):
            raise ValueError("MCP_TLS_CERT and MCP_TLS_KEY go together")
        if not (is_loopback(self.mcp_host) or self.mcp_tls_cert or self.trusted_network):
            raise ValueError(
                f"MCP_HOST={self.mcp_host} can be reached from other machines, so it needs TLS: MCP_TLS_CERT and "
                "MCP_TLS_KEY. Where the network itself keeps strangers out, TRUSTED_NETWORK=true allows it without"
            )
        return self

    @property
    def address(self) -> Address:
        """Address of the IRC server that the bridge connects to."""
        return Address(self.irc_server, self.irc_port, self.irc_tls, self.irc_fingerprint, self.irc_server_user)

    @property
    def is_exposed(self) -> bool:
        """Whether other machines can reach the bridge."""
        return self.mcp_public_url is not None or not is_loopback(self.mcp_host)


def from_environment(variables: Mapping[str, str], **more: object) -> BridgeSettings:
    """Return the bridge's settings from environment variables.

    ``more``: values by field name that override them. ``WrongSetting`` is raised for an invalid value.
    """
    values: dict[str, object] = {
        name: variables[name.upper()] for name in BridgeSettings.model_fields if name.upper() in variables
    }
    values |= {name: value for name, value in more.items() if value is not None}
    try:
        return BridgeSettings.model_validate(values)
    except ValidationError as error:
        raise WrongSetting("\n".join(map(_format_problem, error.errors(include_input=False)))) from None


def _format_problem(problem: object) -> str:
    assert isinstance(problem, dict)
    name = "".join(str(part).upper() for part in problem["loc"][:1])
    text = str(problem["msg"]).removeprefix("Value error, ")
    return f"{name}: {text}" if name else text
