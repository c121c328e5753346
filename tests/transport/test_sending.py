"""Text → lines: nothing lost, nothing that could be a command."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culture.protocol.caps import MULTILINE
from culture.protocol.message import NO_TAGS
from culture.protocol.message import Message as Line
from culture.protocol.stream import LINE_LIMIT
from culture.transport import NotSent
from culture.transport.batches import ReceivedBatch, ReceivedBatches, text_of
from culture.transport.message_sender import MultilineLimits, client_tags, split_messages

PREFIX = "spark-ada!~ada@127.0.0.1"
texts = st.text(st.characters() | st.sampled_from("\r\n\0\x01 `a"), max_size=1500)
limits = st.builds(
    lambda size, lines: MultilineLimits(f"max-bytes={size},max-lines={lines}"),
    st.integers(600, 5000),
    st.integers(2, 40),
)


def said(verb: str, text: str, limit: MultilineLimits | None) -> list[list[Line]]:
    try:
        return split_messages(verb, "#general", text, NO_TAGS, PREFIX, limit)
    except NotSent as refused:
        assert refused.reason == "there is nothing to say"
        return []


@pytest.mark.fault("E20")
@given(texts, st.none() | limits, st.sampled_from(["PRIVMSG", "NOTICE"]))
def test_no_text_becomes_a_command(text: str, limit: MultilineLimits | None, verb: str) -> None:
    for lines in said(verb, text, limit):
        for line in lines:
            wire = bytes(line)
            assert len(wire.splitlines()) == 1 and b"\0" not in wire and b"\x01" not in wire
            back = Line.parse(wire.decode().rstrip("\r\n"))
            assert (back.verb == verb and back.params[0] == "#general") or back.verb == "BATCH"
            if back.verb == verb:
                assert len(f":{PREFIX} {line._replace(tags=NO_TAGS)}\r\n".encode()) <= LINE_LIMIT


def words(text: str) -> str:
    return re.sub(r"[\s\0\x01]+", "", text.encode(errors="replace").decode())


@pytest.mark.fault("E20")
@given(texts, st.none() | limits)
def test_nothing_but_space_is_lost(text: str, limit: MultilineLimits | None) -> None:
    """Whatever reads a batch puts it together again."""
    heard = ""
    for lines in said("PRIVMSG", text, limit):
        batches = ReceivedBatches()
        for line in lines:
            for item in batches.take(line):
                heard += text_of(item) if isinstance(item, ReceivedBatch) else item.params[-1]
    assert words(heard) == words(text)


@given(texts, limits)
def test_a_batch_keeps_to_the_limits(text: str, limit: MultilineLimits) -> None:
    for lines in said("PRIVMSG", text, limit):
        if lines[0].verb == "BATCH":
            inner = lines[1:-1]
            assert len(inner) <= limit.lines
            assert sum(len(line.params[-1].encode()) + 1 for line in inner) <= limit.bytes
            assert any(line.params[-1].strip(" \t") for line in inner)


def test_a_text_that_fits_is_an_ordinary_line() -> None:
    limit = MultilineLimits("max-bytes=4096,max-lines=100")
    assert split_messages("PRIVMSG", "#general", "hello\n", {"+a": "b"}, PREFIX, limit) == [
        [Line("PRIVMSG", ("#general", "hello"), tags={"+a": "b"})]
    ]


def test_several_lines_are_a_batch_with_the_tags_on_its_first() -> None:
    (lines,) = split_messages(
        "NOTICE", "#general", "one\n\n  two", {"+a": "b"}, PREFIX, MultilineLimits("max-bytes=4096")
    )
    name = lines[0].params[0][1:]
    assert lines == [
        Line("BATCH", (f"+{name}", MULTILINE, "#general"), tags={"+a": "b"}),
        *(Line("NOTICE", ("#general", text), tags={"batch": name}) for text in ("one", "", "  two")),
        Line("BATCH", (f"-{name}",)),
    ]


@pytest.mark.parametrize("target", ["", "a b", "a,b", ":a", "#a\r\nQUIT", "a\0"])
def test_a_target_is_one_word(target: str) -> None:
    with pytest.raises(NotSent, match="neither a nick nor a channel"):
        split_messages("PRIVMSG", target, "hello", NO_TAGS, PREFIX, None)


def test_only_tags_of_clients_are_sent() -> None:
    assert client_tags({"+a": "b c", "msgid": "1", "label": "x"}, True) == {"+a": "b c"}
    assert client_tags({"+a": "b"}, False) == {}
    with pytest.raises(NotSent):
        client_tags({"+a": "b" * 5000}, True)
    with pytest.raises(NotSent):
        client_tags({"+a b": "c"}, True)
