"""Ports of loopback that stay ours while nobody listens on them."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager


def bound(port: int = 0) -> socket.socket:
    """A socket on this port, or on any free one; until it listens, whoever connects is refused."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.bind(("127.0.0.1", port))
    return made


@contextmanager
def reserved() -> Iterator[int]:
    """A free port: nothing else is given it, and those who ask for it by number may listen, one after the other."""
    with bound() as holder:
        yield holder.getsockname()[1]
