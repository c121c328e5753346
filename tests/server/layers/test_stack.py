"""Layers above each other: WebSocket in TLS."""

from pathlib import Path

import pytest

from culture.server.net.layers import LayerError, Stack
from culture.server.net.tls import TlsContexts
from culture.server.net.websocket import WebSocketLayer
from tests.support.tls import TlsClient, client_context, made
from tests.support.websocket import CLOSE, ORIGIN, PING, PONG, TEXT, frame, frames, request


@pytest.fixture
def settled(tmp_path: Path) -> tuple[Stack, TlsClient]:
    """Both sides of an open wss connection."""
    settings, _ = made(tmp_path, "spark")
    server = Stack([TlsContexts([settings]).layer(settings), WebSocketLayer([ORIGIN])])
    client = TlsClient(client_context())
    for _ in range(4):
        server.decode(client.shake_hands())
        client.take(server.outgoing())
    assert not server.is_open
    server.decode(client.send(request()))
    assert client.receive(server.outgoing()).startswith(b"HTTP/1.1 101 ")
    assert server.is_open
    return server, client


def test_lines_go_through_both(settled: tuple[Stack, TlsClient]) -> None:
    server, client = settled
    assert server.decode(client.send(frame(TEXT, b"NICK ori") + frame(PING, b"x"))) == b"NICK ori\r\n"
    assert frames(client.receive(server.outgoing())) == [(PONG, b"x")]
    assert frames(client.receive(server.encode(b"PING x\r\n"))) == [(TEXT, b"PING x")]
    assert server.outgoing() == b""


def test_goodbye_is_said_from_the_top(settled: tuple[Stack, TlsClient]) -> None:
    server, client = settled
    server.close()
    assert frames(client.receive(server.outgoing())) == [(CLOSE, (1000).to_bytes(2))]
    assert client.engine.read(1) == b"", "and then TLS ended in order"


def test_what_came_before_the_end_is_kept(settled: tuple[Stack, TlsClient]) -> None:
    server, client = settled
    with pytest.raises(LayerError) as end:
        server.decode(client.send(frame(TEXT, b"QUIT")) + client.close())
    assert (end.value.reason, end.value.data) == ("Connection closed", b"QUIT\r\n")
