"""WebSocket as a layer: RFC 6455 and the WebSocket page of IRCv3."""

from itertools import count, cycle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culture.server.net.layers import LayerError
from culture.server.net.websocket import LONGEST_MESSAGE, LONGEST_REQUEST, WebSocketLayer
from tests.support.tls import pieces
from tests.support.websocket import (
    ACCEPT,
    BINARY,
    CLOSE,
    ORIGIN,
    PING,
    PONG,
    TEXT,
    code,
    frame,
    frames,
    request,
)


def opened(*protocols: str) -> WebSocketLayer:
    """A WebSocket that is open."""
    layer = WebSocketLayer([ORIGIN])
    assert layer.decode(request(sec_websocket_protocol=", ".join(protocols) or None)) == b""
    assert layer.is_open and layer.outgoing().startswith(b"HTTP/1.1 101 ")
    return layer


def declined(data: bytes, *origins: str) -> bytes:
    """The answer to a request that must not become a WebSocket."""
    layer = WebSocketLayer(origins or [ORIGIN])
    with pytest.raises(LayerError) as error:
        layer.decode(data)
    assert error.value.data == b"" and not layer.is_open
    answer = layer.outgoing()
    assert layer.decode(frame(TEXT, b"NICK x")) == layer.encode(b"ERROR :x\r\n") == b""
    head, _, body = answer.partition(b"\r\n\r\n")
    assert f"Content-Length: {len(body)}".encode() in head and b"Connection: close" in head
    return answer


def ended(layer: WebSocketLayer, data: bytes, before: bytes = b"") -> int:
    """Why the layer ended on these bytes."""
    with pytest.raises(LayerError) as error:
        layer.decode(data)
    assert error.value.data == before
    *_, (kind, content) = frames(layer.outgoing())
    assert kind == CLOSE
    assert layer.decode(frame(TEXT, b"PING x")) == layer.encode(b"PONG x\r\n") == b""
    layer.close()
    assert layer.outgoing() == b"", "said once"
    return code(content)


def test_the_answer_proves_that_the_request_was_understood() -> None:
    """RFC 6455 §1.3, §4.2.2"""
    layer = WebSocketLayer([ORIGIN])
    assert not layer.is_open and layer.encode(b"too early\r\n") == b""
    layer.decode(request())
    lines = layer.outgoing().decode().split("\r\n")
    assert lines[0] == "HTTP/1.1 101 Switching Protocols" and lines[-2:] == ["", ""]
    assert {"Upgrade: websocket", "Connection: Upgrade", f"Sec-WebSocket-Accept: {ACCEPT}"} <= set(lines)
    assert not any("Protocol:" in line for line in lines)


@pytest.mark.parametrize(
    ("offered", "chosen", "kind"),
    [
        (("text.ircv3.net",), "text.ircv3.net", TEXT),
        (("binary.ircv3.net",), "binary.ircv3.net", BINARY),
        (("text.ircv3.net", "binary.ircv3.net"), "text.ircv3.net", TEXT),
        (("binary.ircv3.net", "text.ircv3.net"), "binary.ircv3.net", BINARY),
        (("chat", "binary.ircv3.net"), "binary.ircv3.net", BINARY),
        (("chat",), None, TEXT),
    ],
)
def test_the_client_s_first_choice_that_we_know_holds(offered: tuple[str, ...], chosen: str | None, kind: int) -> None:
    """IRCv3 WebSocket: text.ircv3.net and binary.ircv3.net"""
    layer = WebSocketLayer([ORIGIN])
    layer.decode(request(sec_websocket_protocol=", ".join(offered)))
    answer = layer.outgoing().decode()
    assert layer.subprotocol == chosen
    assert (f"Sec-WebSocket-Protocol: {chosen}\r\n" in answer) == (chosen is not None)
    assert frames(layer.encode(b":spark 001 ori :Hi\r\nPING x\r\n")) == [
        (kind, b":spark 001 ori :Hi"),
        (kind, b"PING x"),
    ]
    assert layer.decode(frame(TEXT, b"NICK a")) + layer.decode(frame(BINARY, b"NICK b")) == b"NICK a\r\nNICK b\r\n"


@pytest.mark.parametrize(
    "origin",
    [
        None,
        "",
        "null",
        "none",
        "https://evil.example",
        "http://chat.example.org",
        f"{ORIGIN}:8443",
        f"{ORIGIN}.evil.example",
    ],
)
def test_a_foreign_or_missing_origin_is_refused(origin: str | None) -> None:
    """Decision 3: any web page can open a socket to localhost."""
    assert declined(request(origin=origin)).startswith(b"HTTP/1.1 403 ")


def test_several_origins_are_none() -> None:
    assert declined(request(origin=f"{ORIGIN}\r\norigin: {ORIGIN}")).startswith(b"HTTP/1.1 403 ")


def test_origins_are_compared_without_case() -> None:
    layer = WebSocketLayer([ORIGIN])
    layer.decode(request(origin=ORIGIN.upper()))
    assert layer.is_open


def test_programs_without_an_origin_can_be_allowed() -> None:
    layer = WebSocketLayer(["none"])
    layer.decode(request(origin=None))
    assert layer.is_open
    for origin in ("none", "null", ORIGIN):
        assert declined(request(origin=origin), "none").startswith(b"HTTP/1.1 403 ")


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (request("POST / HTTP/1.1"), 405),
        (request("GET / HTTP/1.0"), 400),
        (request("GET  / HTTP/1.1"), 400),
        (b"NICK spark-ori\r\nUSER ori 0 * :Ori\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\r\n\r\n", 400),
        (b"\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: spark\r\n\r\n", 426),
        (request(upgrade="h2c"), 426),
        (request(connection="keep-alive"), 426),
        (request(sec_websocket_version="8"), 426),
        (request(sec_websocket_version=None), 400),
        (request(sec_websocket_key=None), 400),
        (request(sec_websocket_key="c2hvcnQ="), 400),
        (request(sec_websocket_key="not base64 at all!!!!!!!"), 400),
        (request(sec_websocket_key="é" * 12), 400),
        (request(host=None), 400),
        (request(host="a\r\nhost: b"), 400),
        (request(x="a\r\n folded: b"), 400),
        (request(x="a\r\nno colon"), 400),
        (request(x="a\nb: c"), 400),
        (request(x="a\r\nspace : b"), 400),
        (request(content_length="5"), 400),
        (request(transfer_encoding="chunked"), 400),
        (request(**{f"x{number}": "y" for number in range(100)}), 431),
        (request(x="y" * LONGEST_REQUEST), 431),
        (b"GET / HTTP/1.1\r\n" + b"x" * LONGEST_REQUEST, 431),
    ],
)
def test_a_wrong_request_is_answered_and_ends(data: bytes, status: int) -> None:
    """RFC 6455 §4.2.1"""
    answer = declined(data)
    assert answer.startswith(f"HTTP/1.1 {status} ".encode())
    assert (b"Sec-WebSocket-Version: 13" in answer) == (b"version: 8" in data)


def test_lines_behind_the_request_are_kept() -> None:
    layer = WebSocketLayer([ORIGIN])
    assert layer.decode(request() + frame(TEXT, b"NICK spark-ori")) == b"NICK spark-ori\r\n"


lines = st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), min_size=1, max_size=300).map(str.encode)


@given(said=st.lists(lines, max_size=5), sizes=st.lists(st.integers(1, 400), min_size=1), parts=st.integers(1, 7))
def test_the_wire_may_cut_anywhere_and_so_may_the_client(said: list[bytes], sizes: list[int], parts: int) -> None:
    """RFC 6455 §5.4: a character may be split between two fragments, and a ping may come between them."""
    wire, pings = request(), 0
    for line in said:
        cuts = list(pieces(line, cycle([max(1, len(line) // parts)])))
        for number, piece in enumerate(cuts):
            wire += frame(0 if number else TEXT, piece, last=number == len(cuts) - 1) + frame(PING, b"p")
        pings += len(cuts)
    layer = WebSocketLayer([ORIGIN])
    got = out = b""
    for piece in pieces(wire, cycle(sizes)):
        got += layer.decode(piece)
        out += layer.outgoing()
    assert got == b"".join(line + b"\r\n" for line in said)
    pongs = frames(out.partition(b"\r\n\r\n")[2])
    assert pongs == [(PONG, b"p")] * pings
    assert frames(layer.encode(got)) == [(TEXT, line) for line in said]


@given(st.binary())
def test_any_bytes_are_lines_or_the_end(data: bytes) -> None:
    layer = opened()
    try:
        got = layer.decode(data)
    except LayerError as error:
        got = error.data
        assert frames(layer.outgoing())[-1][0] == CLOSE
    assert not got or got.endswith(b"\r\n")


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (frame(TEXT, b"PING x", masked=False), 1002),
        (frame(TEXT, b"PING x", reserved=0x40), 1002),
        (frame(3, b"PING x"), 1002),
        (frame(11), 1002),
        (frame(0, b"PING x"), 1002),
        (frame(TEXT, b"PI", last=False) + frame(TEXT, b"NG x"), 1002),
        (frame(PING, b"x" * 126), 1002),
        (frame(PING, b"x", last=False), 1002),
        (frame(TEXT, b"PING x", wide=2), 1002),
        (frame(TEXT, b"PING x", wide=8), 1002),
        (frame(TEXT, b"PING x\r\nQUIT"), 1002),
        (frame(TEXT, b"PING x\rQUIT"), 1002),
        (frame(TEXT, b"caf\xe9"), 1007),
        (frame(TEXT, b"caf\xc3", last=False) + frame(0, b"x"), 1007),
        (frame(TEXT, b"x" * (LONGEST_MESSAGE + 1)), 1009),
        (frame(BINARY, b"x" * (LONGEST_MESSAGE + 1))[:8], 1009),
        (frame(TEXT, b"", wide=8)[:2] + b"\xff" * 8, 1009),
        (frame(TEXT, b"x" * LONGEST_MESSAGE, last=False) + frame(0, b"x"), 1009),
    ],
    ids=count(),  # the masks are random
)
def test_a_fault_ends_the_connection_with_its_code(data: bytes, why: int) -> None:
    """RFC 6455 §5, §7.4: and what was said before it counts."""
    assert ended(opened(), data) == why
    assert ended(opened(), frame(TEXT, b"PING a") + data, b"PING a\r\n") == why


def test_a_message_may_be_as_long_as_a_line() -> None:
    line = b"x" * LONGEST_MESSAGE
    assert LONGEST_MESSAGE == 8703
    assert opened().decode(frame(TEXT, line)) == line + b"\r\n"


@pytest.mark.parametrize(
    ("said", "line"), [(b"PING x\r\n", b"PING x\r\n"), (b"PING x\n", b"PING x\r\n"), (b"", b""), (b"\r\n", b"")]
)
def test_an_end_of_line_that_is_not_needed_does_no_harm(said: bytes, line: bytes) -> None:
    assert opened().decode(frame(TEXT, said)) == line


def test_bytes_that_are_no_text_may_come_in_a_binary_message() -> None:
    """What the server itself says to them is its matter (INVALID_UTF8)."""
    assert opened("text.ircv3.net").decode(frame(BINARY, b"caf\xe9")) == b"caf\xe9\r\n"


def test_a_text_message_is_always_text() -> None:
    """IRCv3 WebSocket: nothing but UTF-8 over text.ircv3.net."""
    said = b"caf\xe9\r\nol\xc3\xa9\r\n"
    assert frames(opened("text.ircv3.net").encode(said)) == [(TEXT, "caf\ufffd".encode()), (TEXT, "olé".encode())]
    assert frames(opened("binary.ircv3.net").encode(said)) == [(BINARY, b"caf\xe9"), (BINARY, "olé".encode())]


@pytest.mark.parametrize("length", [1, 125, 126, 65535, 65536])
def test_frames_of_any_length_are_well_formed(length: int) -> None:
    assert frames(opened().encode(b"x" * length + b"\r\n")) == [(TEXT, b"x" * length)]


def test_a_ping_is_answered_and_a_pong_is_not() -> None:
    layer = opened()
    assert layer.decode(frame(PING, b"x" * 125) + frame(PONG, b"y")) == b""
    assert frames(layer.outgoing()) == [(PONG, b"x" * 125)]


@pytest.mark.parametrize(
    ("content", "answer"),
    [
        (b"", 0),
        ((1000).to_bytes(2) + b"bye", 1000),
        ((1001).to_bytes(2), 1001),
        ((4999).to_bytes(2), 4999),
        ((1005).to_bytes(2), 1002),
        ((999).to_bytes(2), 1002),
        ((2999).to_bytes(2), 1002),
        (b"x", 1002),
        ((1000).to_bytes(2) + b"\xff", 1007),
    ],
)
def test_goodbye_is_answered_in_kind(content: bytes, answer: int) -> None:
    """RFC 6455 §5.5.1, §7.4"""
    assert ended(opened(), frame(TEXT, b"QUIT") + frame(CLOSE, content) + frame(TEXT, b"late"), b"QUIT\r\n") == answer


def test_a_server_that_ends_says_so() -> None:
    layer = opened()
    wire = layer.encode(b"ERROR :Bye\r\n")
    layer.close()
    wire += layer.outgoing()
    assert frames(wire) == [(TEXT, b"ERROR :Bye"), (CLOSE, (1000).to_bytes(2))]
    assert layer.decode(frame(CLOSE, (1000).to_bytes(2))) == b""
