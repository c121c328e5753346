"""Connections to where alerts go: a name is resolved once, and what is checked is the address connected to."""

import socket
import ssl
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from culture.clients.shared.webhook.targets import Network, Target, TargetRefused, permitted

Resolve = Callable[[str, int], Sequence[str]]
"""The numeric addresses of a host, the one to try first at the front."""


def resolve(host: str, port: int) -> list[str]:
    """Ask the system."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


@cache
def system_trust() -> ssl.SSLContext:
    """TLS as the system trusts it: certificates and names are checked."""
    return ssl.create_default_context()


@dataclass(frozen=True, slots=True)
class Ways:
    """How to reach the outside."""

    listed: tuple[Network, ...] = ()
    """Networks around here that may be called."""
    resolve: Resolve = resolve
    trust: Callable[[], ssl.SSLContext] = system_trust


def connect(target: Target, ways: Ways, deadline: float) -> socket.socket:
    """A connection to the first address of the target that may be called and answers."""
    addresses = ways.resolve(target.host, target.port)
    allowed = [address for address in addresses if permitted(address, ways.listed)]
    if not allowed:
        raise TargetRefused(f"{target} is at an address of a private network that is not listed in allow_private")
    failure: OSError | None = None
    for address in allowed:
        try:
            return _connected(address, target.port, deadline)
        except OSError as error:
            failure = error
    assert failure is not None
    raise failure


def secure(raw: socket.socket, target: Target, ways: Ways) -> ssl.SSLSocket:
    """TLS over a connection, before the handshake: the certificate will have to name the host."""
    return ways.trust().wrap_socket(raw, server_hostname=target.host, do_handshake_on_connect=False)


def seconds_left(deadline: float) -> float:
    """How long something may still take; TimeoutError when it is too late."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _connected(address: str, port: int, deadline: float) -> socket.socket:
    # A numeric address is never resolved again: what was checked is what is called.
    raw = socket.create_connection((address, port), timeout=seconds_left(deadline))
    raw.settimeout(seconds_left(deadline))
    return raw
