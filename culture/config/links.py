"""What culture.yaml may say about links to other servers, and about the mesh they make."""

import re
from collections.abc import Collection, Mapping
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from culture.config.listen_policy import is_loopback
from culture.config.values import (
    Channel,
    Duration,
    Fingerprint,
    Misfit,
    Secret,
    ServerName,
    Settings,
    SystemUser,
    is_said,
)
from culture.protocol.names import fold, short_name, valid_short_name

_ADDRESS = re.compile(r"(?:\[(?P<ipv6>[0-9A-Fa-f:.]+)\]|(?P<host>[^\s:\[\]@/]+)):(?P<port>[0-9]{1,5})")
_SHORTEST, _LONGEST = 8, 200
_WORDS = {"on": True, "off": False}


def _peer_name(name: str) -> str:
    if not valid_short_name(short_name(name)):
        raise ValueError(
            f"{short_name(name)!r} begins the peer's nicks, so it must be 1 to 12 of a-z and 0-9, a letter first"
        )
    return name


def _secret(text: str) -> str:
    """It goes in one line of the handshake."""
    if not _SHORTEST <= len(text) <= _LONGEST or not text.isprintable() or set(text) & set(" :"):
        raise ValueError(f"must be {_SHORTEST} to {_LONGEST} characters without spaces and colons")
    return text


def endpoint(address: str) -> tuple[str, int]:
    """The host and the port of ``host:port`` or ``[IPv6]:port``."""
    found = _ADDRESS.fullmatch(address)
    if found is None or not 0 < int(found["port"]) < 65536:
        raise ValueError(f"{address!r} is no address: it looks like 10.0.0.2:6697, thor.local:6697 or [fd00::2]:6697")
    return found["ipv6"] or found["host"], int(found["port"])


def _address(text: str) -> str:
    endpoint(text)
    return text


def _switch(value: object) -> object:
    """YAML takes ``off`` for a word."""
    return _WORDS.get(value, value) if isinstance(value, str) else value


LinkSecret = Annotated[Secret, AfterValidator(_secret)]


class LinkConfig(Settings):
    """A server that may be linked to this one; without an address it is waited for."""

    name: Annotated[ServerName, AfterValidator(_peer_name)]
    address: Annotated[str, AfterValidator(_address)] | None = None
    secret: LinkSecret = Field(repr=False)
    old_secret: Annotated[LinkSecret | None, BeforeValidator(is_said)] = Field(None, repr=False)
    fingerprint: Fingerprint | None = None
    tls: Annotated[bool | None, BeforeValidator(_switch)] = None
    user: SystemUser | None = None
    trust: Literal["full", "no_authority", "restricted"] = "full"
    channels: tuple[Channel, ...] = ()

    @model_validator(mode="after")
    def _restricted_says_to_what(self) -> Self:
        if self.trust == "restricted" and not self.channels:
            raise Misfit("must name the channels that cross, since the link is restricted", "channels")
        if self.channels and self.trust != "restricted":
            raise Misfit("are for trust: restricted; with any other trust every channel crosses", "channels")
        return self

    @model_validator(mode="after")
    def _a_certificate_needs_tls(self) -> Self:
        if self.tls is False and self.fingerprint is not None:
            raise Misfit(
                "is that of a certificate, and without TLS none is shown: take it away, or tls: false", "fingerprint"
            )
        return self

    @property
    def short_name(self) -> str:
        """The prefix of the peer's nicks."""
        return short_name(self.name)

    @property
    def endpoint(self) -> tuple[str, int] | None:
        """The host and port to dial; None where the peer is waited for."""
        return None if self.address is None else endpoint(self.address)

    @property
    def leaves_the_machine(self) -> bool:
        """Whether it is dialled beyond loopback."""
        return self.endpoint is not None and not is_loopback(self.endpoint[0])

    @property
    def encrypted(self) -> bool:
        """Whether to speak TLS; unless it is said, where a certificate is expected or the link leaves the machine."""
        return self.tls if self.tls is not None else self.fingerprint is not None or self.leaves_the_machine


class Federation(Settings):
    """How long to wait for peers, and how much to keep for them."""

    keep: Duration = 7 * 86400.0
    ping: Duration = 15.0
    timeout: Duration = 45.0
    stale: Duration = 900.0

    @model_validator(mode="after")
    def _ping_comes_before_the_end(self) -> Self:
        if self.timeout <= self.ping:
            raise Misfit("must be longer than ping, else no peer could answer it", "timeout")
        return self


def check_links(
    links: tuple[LinkConfig, ...], own_name: str, trusted_network: bool, listeners: Collection[tuple[str, int]]
) -> None:
    """Refuse links that cannot be, or not safely, on a server of this name with these listeners."""
    names: dict[str, str] = {}
    for position, link in enumerate(links):
        wrong = _wrong_name(link, own_name, names)
        if wrong:
            raise Misfit(wrong, "links", position, "name")
        if link.endpoint in listeners:
            raise Misfit(f"{link.address} is this server itself", "links", position, "address")
        _check_protected(link, position, trusted_network)
        names[fold(link.short_name)] = link.name


def _wrong_name(link: LinkConfig, own_name: str, names: Mapping[str, str]) -> str:
    if fold(link.short_name) == fold(own_name):
        return f"{link.name} is this server itself: a link needs the name of another"
    other = names.get(fold(link.short_name))
    if other is None:
        return ""
    if fold(other) == fold(link.name):
        return f"{link.name} is there twice"
    return f"{link.name} and {other} both begin with {link.short_name}, so their nicks could not be told apart"


def _check_protected(link: LinkConfig, position: int, trusted_network: bool) -> None:
    if not link.leaves_the_machine:
        return
    if not link.encrypted and not trusted_network:
        text = (
            f"{link.address} is on another machine, so the link needs TLS; only trusted_network: true allows it without"
        )
        raise Misfit(text, "links", position, "tls")
    if link.encrypted and link.fingerprint is None:
        text = (
            f"is missing: {link.address} is on another machine, so the link needs the SHA-256 fingerprint of its "
            f"certificate, which `culture server cert` prints there. Where the network itself keeps strangers out, "
            f"tls: false with trusted_network: true allows it without"
        )
        raise Misfit(text, "links", position, "fingerprint")
