"""Clients from another machine, without one: a network of our own in which an address is not loopback."""

import ctypes
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import pytest

from culture.server.net import listener

_NETWORK = 0x40000000  # CLONE_NEWNET
_ADDRESS = "198.51.100.7"


class Elsewhere(NamedTuple):
    """An address to listen on; whoever connects to it is not on loopback for the server."""

    host: str
    is_real: bool


@contextmanager
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[Elsewhere]:
    """Root gets a real network that no other machine is in; others a server that takes loopback for elsewhere."""
    home = os.open("/proc/self/ns/net", os.O_RDONLY) if os.path.exists("/proc/self/ns/net") else -1
    try:
        if home >= 0 and _libc().unshare(_NETWORK) == 0:
            try:
                subprocess.run(("ip", "link", "set", "lo", "up"), check=True)
                subprocess.run(("ip", "address", "add", f"{_ADDRESS}/32", "dev", "lo"), check=True)
                yield Elsewhere(_ADDRESS, True)
            finally:
                # Sockets stay in the network they were made in; this thread must not.
                assert _libc().setns(home, _NETWORK) == 0, "this process has lost its network"
        else:
            monkeypatch.setattr(listener, "_host", lambda address: _ADDRESS)
            yield Elsewhere("127.0.0.1", False)
    finally:
        if home >= 0:
            os.close(home)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
