"""A receiver, and ways to it."""

import ipaddress
import socket
from collections.abc import AsyncIterator

import pytest

from culture.lib.http import HttpAccess
from tests.support.receiver import HOST, Receiver, receiving

LISTED = (ipaddress.ip_network(HOST),)


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    """One that listens at an address of its own."""
    async with receiving() as running:
        yield running


@pytest.fixture
def ways() -> HttpAccess:
    """The receiver's address is listed, and no other."""
    return HttpAccess(LISTED)


@pytest.fixture
def connected(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The addresses that were really called."""
    called: list[str] = []
    real = socket.create_connection

    def spy(address: tuple[str, int], timeout: float) -> socket.socket:
        called.append(address[0])
        return real(address, timeout)

    monkeypatch.setattr("socket.create_connection", spy)
    return called
