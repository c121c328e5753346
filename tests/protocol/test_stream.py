"""Bytes → lines."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culture.protocol.message import ProtocolError
from culture.protocol.stream import CLIENT_TAGS_LIMIT, LINE_LIMIT, TAGS_LIMIT, LineBuffer, Oversize, oversize

wire = st.lists(st.sampled_from([b"\r\n", b"\r", b"\n", b"PING x", b"\xc3\xa9", b"\0", b"\x1f", b"\x85", b" "])).map(
    b"".join
)


def chunks(data: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({min(cut, len(data)) for cut in cuts})
    return [data[start:end] for start, end in zip([0, *places], [*places, len(data)], strict=True)]


def fed(buffer: LineBuffer, parts: list[bytes]) -> list[bytes]:
    return [line for part in parts for line in buffer.feed(part)]


@pytest.mark.fault("A7")
@given(wire, st.lists(st.integers(0, 80)))
def test_how_the_bytes_arrive_makes_no_difference(data: bytes, cuts: list[int]) -> None:
    """A7: any chunking gives the same lines; a reference splits the whole at once"""
    *expected, _ = re.split(rb"\r\n|\r|\n", data)
    assert fed(LineBuffer(), chunks(data, cuts)) == [line for line in expected if line]


@pytest.mark.fault("A7")
def test_byte_by_byte() -> None:
    """A7"""
    data = b"NICK spark-ori\r\nUSER ori 0 * :Ori\r\n"
    assert fed(LineBuffer(), [bytes([byte]) for byte in data]) == [b"NICK spark-ori", b"USER ori 0 * :Ori"]


@pytest.mark.fault("A5")
@pytest.mark.parametrize("end", [b"\r", b"\n", b"\r\n", b"\r\n\n", b"\n\r", b"\r\r\n"])
def test_each_line_end_ends_a_line(end: bytes) -> None:
    """A5: lone CR, lone LF, CRLF, CRLFLF"""
    assert LineBuffer().feed(b"PING 1" + end + b"PING 2" + end) == [b"PING 1", b"PING 2"]


@pytest.mark.fault("A8")
def test_a_character_split_over_two_reads_arrives_whole() -> None:
    """A8"""
    data = "PRIVMSG #a :né 🙂\r\n".encode()
    for cut in range(len(data)):
        [line] = fed(LineBuffer(), [data[:cut], data[cut:]])
        assert line.decode() == "PRIVMSG #a :né 🙂"


def test_nothing_is_dropped_but_empty_lines() -> None:
    assert LineBuffer().feed(b"\r\n\0\r\n \r\n") == [b"\0", b" "]


def test_nothing_in_nothing_out() -> None:
    buffer = LineBuffer()
    assert buffer.feed(b"") == []
    assert buffer.feed(b"PI") == []
    assert buffer.feed(b"") == []
    assert buffer.feed(b"NG x\n") == [b"PING x"]


def test_a_line_that_never_ends_is_refused() -> None:
    """A3: 16,384 bytes without newline, in one piece or in many"""
    with pytest.raises(ProtocolError):
        LineBuffer().feed(b"x" * 16_384)
    with pytest.raises(ProtocolError):
        fed(LineBuffer(), [b"x" * 1024] * 16)


def test_an_unfinished_line_may_reach_the_limit() -> None:
    buffer = LineBuffer()
    assert buffer.feed(b"x" * (TAGS_LIMIT + LINE_LIMIT)) == []
    with pytest.raises(ProtocolError):
        buffer.feed(b"x")


@pytest.mark.fault("A4")
def test_the_tail_of_an_overlong_line_is_no_line_of_its_own() -> None:
    """A4: wherever the bytes are cut, what follows the limit stays part of the line that is refused"""
    line = b"PRIVMSG #a :" + b"x" * (LINE_LIMIT - 14) + b"QUIT :tail"
    for cut in (LINE_LIMIT - 2, LINE_LIMIT, LINE_LIMIT + 1):
        assert fed(LineBuffer(), [line[:cut], line[cut:] + b"\r\n"]) == [line]
    assert oversize(line) is Oversize.BODY


@pytest.mark.requirement("A29")
def test_a_line_has_512_bytes_with_its_end() -> None:
    """RFC 2812 §2.3"""
    assert oversize(b"x" * 510) is None
    assert oversize(b"x" * 511) is Oversize.BODY


@pytest.mark.fault("A11")
def test_a_client_has_4094_bytes_for_tags() -> None:
    """A11: 4,094 bytes of client tags pass, 4,095 do not; the body has its own limit beside them"""
    body = b"TAGMSG #a :" + b"x" * 499
    assert len(body) == 510
    assert oversize(b"@" + b"t" * CLIENT_TAGS_LIMIT + b" " + body) is None
    assert oversize(b"@" + b"t" * (CLIENT_TAGS_LIMIT + 1) + b" " + body) is Oversize.TAGS
    assert oversize(b"@" + b"t" * CLIENT_TAGS_LIMIT + b" " + body + b"x") is Oversize.BODY
    assert oversize(b"@t " + body + b"x") is Oversize.BODY
    assert oversize(b"@" + b"t" * 5000) is Oversize.TAGS


def test_another_limit_for_tags() -> None:
    """A server's lines may carry more, and a strict one may allow less."""
    assert oversize(b"@" + b"t" * 8189 + b" PING", tags_limit=8189) is None
    assert oversize(b"@" + b"t" * 21 + b" PING", tags_limit=20) is Oversize.TAGS
    assert oversize(b"PING " + b"x" * 100, tags_limit=20) is None
