"""The ``links`` and ``federation`` blocks of culture.yaml."""

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
    is_given,
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
    """Return the secret of a link unchanged; ValueError if the handshake could not transmit it."""
    if not _SHORTEST <= len(text) <= _LONGEST or not text.isprintable() or set(text) & set(" :"):
        raise ValueError(f"must be {_SHORTEST} to {_LONGEST} characters without spaces and colons")
    return text


def endpoint(address: str) -> tuple[str, int]:
    """Return host and port of ``host:port`` or ``[IPv6]:port``.

    Raises ValueError for other text.
    """
    match = _ADDRESS.fullmatch(address)
    if match is None or not 0 < int(match["port"]) < 65536:
        raise ValueError(f"{address!r} is not an address such as 10.0.0.2:6697, thor.local:6697 or [fd00::2]:6697")
    return match["ipv6"] or match["host"], int(match["port"])


def _address(text: str) -> str:
    endpoint(text)
    return text


def _switch(value: object) -> object:
    """Return the words ``on`` and ``off`` as booleans; any other value is returned unchanged."""
    return _WORDS.get(value, value) if isinstance(value, str) else value


LinkSecret = Annotated[Secret, AfterValidator(_secret)]


class LinkConfig(Settings):
    """A link to another server; without ``address`` this server waits for the other to connect."""

    name: Annotated[ServerName, AfterValidator(_peer_name)]
    address: Annotated[str, AfterValidator(_address)] | None = None
    secret: LinkSecret = Field(repr=False)
    old_secret: Annotated[LinkSecret | None, BeforeValidator(is_given)] = Field(None, repr=False)
    fingerprint: Fingerprint | None = None
    tls: Annotated[bool | None, BeforeValidator(_switch)] = None
    user: SystemUser | None = None
    trust: Literal["full", "no_authority", "restricted"] = "full"
    channels: tuple[Channel, ...] = ()

    @model_validator(mode="after")
    def _check_channels(self) -> Self:
        if self.trust == "restricted" and not self.channels:
            raise Misfit("must name the channels that cross, since the link is restricted", "channels")
        if self.channels and self.trust != "restricted":
            raise Misfit("are for trust: restricted; with any other trust every channel crosses", "channels")
        return self

    @model_validator(mode="after")
    def _check_fingerprint(self) -> Self:
        if self.tls is False and self.fingerprint is not None:
            raise Misfit("needs TLS, which shows the certificate: remove it, or tls: false", "fingerprint")
        return self

    @property
    def short_name(self) -> str:
        """Return the short name of the peer (the linked server), which is the prefix of its nicks."""
        return short_name(self.name)

    @property
    def endpoint(self) -> tuple[str, int] | None:
        """Return host and port to which this server connects; None if the peer connects to us."""
        return None if self.address is None else endpoint(self.address)

    @property
    def leaves_the_machine(self) -> bool:
        """Return whether the link leads to another machine."""
        return self.endpoint is not None and not is_loopback(self.endpoint[0])

    @property
    def encrypted(self) -> bool:
        """Return whether the link uses TLS; by default with a fingerprint or to another machine."""
        return self.tls if self.tls is not None else self.fingerprint is not None or self.leaves_the_machine


class Federation(Settings):
    """Timeouts of links, and how long events are kept for unreachable peers."""

    keep: Duration = 7 * 86400.0
    ping: Duration = 15.0
    timeout: Duration = 45.0
    stale: Duration = 900.0

    @model_validator(mode="after")
    def _check_timeout(self) -> Self:
        if self.timeout <= self.ping:
            raise Misfit("must be longer than ping, else no peer could answer it", "timeout")
        return self


def check_links(
    links: tuple[LinkConfig, ...], own_name: str, trusted_network: bool, listeners: Collection[tuple[str, int]]
) -> None:
    """Raise Misfit for links that are impossible or unsafe on a server with these listeners.

    ``own_name``: the name of this server; ``trusted_network``: links to other machines may do without TLS;
    ``listeners``: host and port of each address on which this server listens.
    """
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
    return f"{link.name} and {other} both begin with {link.short_name}, so their nicks would be ambiguous"


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
            f"certificate, which `culture server cert` prints there. In a trusted network, "
            f"tls: false with trusted_network: true allows it without"
        )
        raise Misfit(text, "links", position, "fingerprint")
