"""Which addresses are safe to listen on without TLS or logins, and the texts about it."""

import re
from collections.abc import Sequence
from ipaddress import ip_address
from typing import Annotated

from pydantic import AfterValidator, Field

from culture.config.values import File, Settings

_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?")


def is_loopback(host: str) -> bool:
    """Return whether an address can be reached from this machine only."""
    if host.lower() == "localhost":
        return True
    try:
        address = ip_address(host)
    except ValueError:  # a name may lead anywhere
        return False
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback


def origin(text: str) -> str:
    """Return a web origin in the form that browsers send; ``none`` unchanged.

    Raises ValueError for other text.
    """
    normal = text.lower().removesuffix("/")
    if normal != "none" and not _ORIGIN.fullmatch(normal):
        raise ValueError(f"{text!r} is not an origin such as https://chat.example.org, without a path")
    return normal


def unprotected(host: str) -> str:
    """Return the error text for a listener that other machines can reach without TLS."""
    return (
        f"{host or 'every address'} can be reached from other machines, so it needs tls: "
        "make a certificate with `culture server cert`. "
        "In a trusted network, trusted_network: true allows it without"
    )


def without_logins(hosts: Sequence[str]) -> str:
    """Return the error text for public listeners (hosts) on a server without accounts."""
    return (
        f"{', '.join(hosts)} can be reached from other machines, so clients from there have to log in, "
        "but there are no accounts: make one with `culture account add`, or name an issuer of tokens (oidc).\n"
        "In a trusted network, trusted_network: true allows it without."
    )


Origin = Annotated[str, AfterValidator(origin)]


class Tls(Settings):
    """The certificate chain and key of a listener, both in PEM form."""

    certificate: File
    key: File


class WebSocket(Settings):
    """The web origins that may open a WebSocket.

    ``none`` stands for programs that are no browser.
    """

    origins: Annotated[tuple[Origin, ...], Field(min_length=1)]
