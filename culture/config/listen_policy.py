"""Who can reach a listener, and what protects it: TLS, logins, the pages a WebSocket is for."""

import re
from collections.abc import Sequence
from ipaddress import ip_address
from typing import Annotated

from pydantic import AfterValidator, Field

from culture.config.values import File, Settings

_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?")


def is_loopback(host: str) -> bool:
    """Can only this machine reach the address?"""
    if host.lower() == "localhost":
        return True
    try:
        address = ip_address(host)
    except ValueError:  # a name may lead anywhere
        return False
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback


def origin(text: str) -> str:
    """A web page's origin as browsers send it, or ``none``."""
    said = text.lower().removesuffix("/")
    if said != "none" and not _ORIGIN.fullmatch(said):
        raise ValueError(f"{text!r} is no origin: it looks like https://chat.example.org, without a path")
    return said


def unprotected(host: str) -> str:
    """What to say of a listener beyond loopback that has no TLS."""
    return (
        f"{host or 'every address'} can be reached from other machines, so it needs tls: "
        "make a certificate with `culture server cert`. "
        "Where the network itself keeps strangers out, trusted_network: true allows it without"
    )


def without_logins(hosts: Sequence[str]) -> str:
    """What to say at the start when others can reach these addresses, but nobody has an account to log in with."""
    return (
        f"{', '.join(hosts)} can be reached from other machines, so whoever comes from there has to log in, "
        "but there are no accounts: make one with `culture account add`, or name an issuer of tokens (oidc).\n"
        "Where the network itself keeps strangers out, trusted_network: true allows it without."
    )


Origin = Annotated[str, AfterValidator(origin)]


class Tls(Settings):
    """The certificate a listener shows, with those that vouch for it, and its key; both in PEM form."""

    certificate: File
    key: File


class WebSocket(Settings):
    """Which web pages may connect, by their origins; ``none`` stands for programs that are no browser."""

    origins: Annotated[tuple[Origin, ...], Field(min_length=1)]
