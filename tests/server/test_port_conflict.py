"""Why an address cannot be listened on, in words that help."""

import errno
import os
import socket

import pytest

from culture.server.net import port_conflict


@pytest.mark.fault("B16")
@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_the_owner_of_a_port_is_found(family: socket.AddressFamily) -> None:
    """B16"""
    host = "127.0.0.1" if family == socket.AF_INET else "::1"
    with socket.create_server((host, 0), family=family) as ours:
        port = ours.getsockname()[1]
        assert port_conflict.owner(port) == os.getpid()
        said = port_conflict.explain(OSError(errno.EADDRINUSE, "in use"), host, port)
    assert f"is taken by {port_conflict.program(os.getpid())} (pid {os.getpid()})" in said
    assert port_conflict.owner(port) is None


def test_a_client_of_a_port_is_not_its_owner() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        assert port_conflict.owner(client.getsockname()[1]) is None


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.EADDRINUSE, "is taken by another program"),
        (errno.EACCES, "choose a port above 1023"),
        (errno.EADDRNOTAVAIL, "no such address"),
        (errno.EAFNOSUPPORT, "cannot listen on 127.0.0.1 port 1: not here"),
    ],
)
def test_each_reason_has_its_next_step(number: int, words: str) -> None:
    assert words in port_conflict.explain(OSError(number, "not here"), "127.0.0.1", 1)


def test_a_process_that_is_gone_is_still_something() -> None:
    assert port_conflict.program(2**22 + 1) == "a program"
