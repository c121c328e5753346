"""Lines as they may come: whole, in pieces, too long, broken."""

import pytest

from culture.protocol.split import room
from tests.server.conftest import Crowd
from tests.support.client import Client


def ping_of(size: int) -> bytes:
    """A PING that takes this many bytes with its CR LF."""
    return b"PING :" + b"x" * (size - 8) + b"\r\n"


def codes(messages: list) -> list[str]:
    return [message.verb for message in messages]


@pytest.mark.fault("A1")
@pytest.mark.requirement("A29")
async def test_a_line_of_512_bytes_is_read(crowd: Crowd) -> None:
    """A1, RFC 2812 §2.3"""
    ori = await crowd.join("spark-ori")
    ori.send_raw(ping_of(512))
    # The answer carries our name as well, so its end is left out.
    answer = await ori.line()
    assert answer.startswith(b":spark PONG spark xxx")
    assert len(answer) == 512


@pytest.mark.fault("A2")
async def test_a_line_of_513_bytes_is_refused_and_the_connection_stays(crowd: Crowd) -> None:
    """A2"""
    ori = await crowd.join("spark-ori", "#a")
    ada = await crowd.join("spark-ada", "#a")
    await ori.sync()
    ori.send_raw(ping_of(513))
    assert codes(await ori.sync()) == ["417"]
    line = b"PRIVMSG #a :"
    ori.send_raw(line + b"x" * (513 - len(line) - 2) + b"\r\n")
    assert codes(await ori.sync()) == ["417"]
    assert await ada.sync() == []
    await ori.ask("PRIVMSG #a :still here")
    assert [each.params[1] for each in await ada.sync()] == ["still here"]


@pytest.mark.fault("A1")
@pytest.mark.parametrize("verb", ["PRIVMSG", "NOTICE"])
async def test_what_fits_only_without_the_senders_name_is_refused_never_cut(crowd: Crowd, verb: str) -> None:
    """A1: the relayed line counts."""
    ori = await crowd.join("spark-ori", "#a")
    ada = await crowd.join("spark-ada", "#a")
    await ori.sync()
    overhead = len(f":spark-ori!~tester@127.0.0.1 {verb} #a :\r\n")
    assert room("spark-ori!~tester@127.0.0.1", verb, "#a") == 512 - overhead
    longest = "é" * ((512 - overhead) // 2)
    longest += "x" * (512 - overhead - len(longest.encode()))
    assert await ori.ask(f"{verb} #a :{longest}") == []
    assert (await ada.expect(verb, "#a")).params[1] == longest
    [refusal] = await ori.ask(f"{verb} #a :{longest}y")
    assert refusal.verb == "417"
    assert str(512 - overhead) in refusal.params[-1]
    assert await ada.sync() == []


@pytest.mark.fault("A1")
async def test_a_topic_that_is_too_long_is_refused_never_cut(crowd: Crowd) -> None:
    """A1"""
    ori = await crowd.join("spark-ori", "#a")
    assert codes(await ori.ask("TOPIC #a :" + "x" * 390)) == ["TOPIC"]
    assert codes(await ori.ask("TOPIC #a :" + "y" * 391)) == ["417"]
    assert codes(await ori.ask("TOPIC #a :" + "é" * 196)) == ["417"]
    assert (await ori.ask("TOPIC #a"))[0].params[-1] == "x" * 390


@pytest.mark.fault("A3")
async def test_a_flood_without_a_line_end_ends_the_connection(crowd: Crowd) -> None:
    """A3"""
    ori = await crowd.join("spark-ori")
    ada = await crowd.join("spark-ada")
    ori.send_raw(b"x" * 16_384)
    assert codes(await ori.ended()) == ["ERROR"]
    assert await ada.sync() == []


@pytest.mark.fault("A3")
async def test_the_flood_begins_where_no_line_can_still_become_right(crowd: Crowd) -> None:
    """A3: 8,191 bytes for tags and 512 for the rest; one more ends it."""
    ori = await crowd.join("spark-ori")
    ada = await crowd.join("spark-ada")
    ori.send_raw(b"x" * (8_191 + 512))
    await ada.sync()
    ori.send_raw(b"\r\n")
    assert codes(await ori.sync()) == ["417"]
    ori.send_raw(b"x" * (8_191 + 512 + 1))
    assert codes(await ori.ended()) == ["ERROR"]


@pytest.mark.fault("A4")
@pytest.mark.parametrize("size", [513, 600, 5_000, 8_600])
async def test_the_tail_of_an_over_long_line_is_never_a_command(crowd: Crowd, size: int) -> None:
    """A4"""
    ori = await crowd.join("spark-ori", "#a")
    ada = await crowd.join("spark-ada", "#a")
    await ori.sync()
    tail = b" QUIT PRIVMSG #a :smuggled"
    line = b"PRIVMSG #a :" + b"x" * (size - len(tail) - 14) + tail + b"\r\n"
    for start in range(0, len(line), 100):
        ori.send_raw(line[start : start + 100])
    assert codes(await ori.sync()) == ["417"]
    assert await ada.sync() == []


@pytest.mark.fault("A5")
@pytest.mark.parametrize("end", [b"\r\n", b"\n", b"\r", b"\r\n\n", b"\n\r\r\n"])
async def test_every_line_end_counts_and_empty_lines_do_not(crowd: Crowd, end: bytes) -> None:
    """A5"""
    ori = await crowd.join("spark-ori")
    ori.send_raw(end + b"PING one" + end + b"PING two" + end)
    assert [(await ori.receive()).params[1] for _ in range(2)] == ["one", "two"]
    assert await ori.sync() == []


@pytest.mark.fault("A6")
async def test_a_line_with_nul_is_dropped(crowd: Crowd) -> None:
    """A6"""
    ori = await crowd.join("spark-ori", "#a")
    ada = await crowd.join("spark-ada", "#a")
    await ori.sync()
    ori.send_raw(b"PRIVMSG #a :one\0two\r\nPRIVMSG #a :three\r\n")
    assert await ori.sync() == []
    assert [each.params for each in await ada.sync()] == [("#a", "three")]


@pytest.mark.fault("A7")
@pytest.mark.fault("A8")
async def test_text_that_comes_byte_by_byte_arrives_whole(crowd: Crowd) -> None:
    """A7, A8: characters split over reads too."""
    ori = await crowd.join("spark-ori", "#a")
    ada = await crowd.join("spark-ada", "#a")
    await ori.sync()
    for byte in "PRIVMSG #a :héllo wörld 🎉 日本語\r\n".encode():
        ori.send_raw(bytes((byte,)))
        await ori.writer.drain()
        # Another client's round trip puts each byte into a read of its own.
        await ada.sync()
    await ori.sync()
    assert [each.params for each in ada.seen if each.verb == "PRIVMSG"] == [("#a", "héllo wörld 🎉 日本語")]


@pytest.mark.fault("A9")
@pytest.mark.parametrize("text", [b"caf\xe9", b"\xff\xfe", b"\xc3", b"\xed\xa0\x80", b"\xf5\x80\x80\x80"])
async def test_invalid_utf8_is_refused_and_never_relayed(crowd: Crowd, text: bytes) -> None:
    """A9, IRCv3 UTF8ONLY"""
    ori = await crowd.join("spark-ori", "#a")
    ada = await crowd.join("spark-ada", "#a")
    await ori.sync()
    ori.send_raw(b"PRIVMSG #a :" + text + b"\r\n")
    [refusal] = await ori.sync()
    assert (refusal.verb, refusal.params[:2]) == ("FAIL", ("PRIVMSG", "INVALID_UTF8"))
    assert await ada.sync() == []


@pytest.mark.fault("A9")
async def test_the_refusal_names_the_verb_and_carries_the_label(crowd: Crowd) -> None:
    """A9: also where tags come first; a label that is no text itself cannot come back."""
    ori = await crowd.join("spark-ori", caps="message-tags batch labeled-response")
    for line, label in (
        (b"@label=one;+t=x PRIVMSG #a :caf\xe9", "one"),
        (b"@+t=\xe9;label=two privmsg #a :x", "two"),
        (b"@label=\xff PRIVMSG #a :x", None),
        (b"  @+t :source PRIVMSG #a :caf\xe9", None),
    ):
        ori.send_raw(line + b"\r\n")
        [refusal] = await ori.sync()
        assert (refusal.verb, refusal.params[:2]) == ("FAIL", ("PRIVMSG", "INVALID_UTF8"))
        assert refusal.tags.get("label") == label
    ori.send_raw(b"\xff\xfe x\r\n")
    assert [each.params[0] for each in await ori.sync()] == ["*"]


@pytest.mark.fault("A11")
async def test_4094_bytes_of_client_tags_pass_and_one_more_is_refused(crowd: Crowd) -> None:
    """A11, IRCv3 message-tags"""
    ori = await crowd.join("spark-ori", "#a", caps="message-tags")
    ada = await crowd.join("spark-ada", "#a", caps="message-tags")
    await ori.sync()
    value = "v" * (4094 - len("+t="))
    assert await ori.ask(f"@+t={value} PRIVMSG #a :{'x' * 400}") == []
    assert (await ada.expect("PRIVMSG")).tags["+t"] == value
    assert codes(await ori.ask(f"@+t={value}v PRIVMSG #a :x")) == ["417"]
    assert await ada.sync() == []


@pytest.mark.fault("A11")
async def test_unknown_escapes_in_tags_lose_their_backslash(crowd: Crowd) -> None:
    """A11"""
    ori = await crowd.join("spark-ori", "#a", caps="message-tags")
    ada = await crowd.join("spark-ada", "#a", caps="message-tags")
    await ori.ask(r"@+t=a\bc\:\s\\d\ TAGMSG #a")
    assert (await ada.expect("TAGMSG")).tags["+t"] == "abc; \\d"


@pytest.mark.fault("A12")
@pytest.mark.parametrize("line", ["POST / HTTP/1.1", "GET /x HTTP/1.0", "OPTIONS * HTTP/1.1"])
async def test_a_browser_that_knocks_is_turned_away_at_once(crowd: Crowd, line: str) -> None:
    """A12: a web page could otherwise speak IRC through a form."""
    web: Client = await crowd.connect()
    web.send_raw(f"{line}\r\nHost: x\r\n\r\nNICK spark-web\r\nUSER a 0 * :a\r\n".encode())
    assert codes(await web.ended()) == ["ERROR"]
