"""Events cross a link unchanged, and what is no event is told apart (E14)."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culture.federation import codec
from culture.federation.codec import Garbled, decode, encode
from culture.federation.codec.messages import joined
from culture.federation.plain import plain, read_plain
from culture.protocol import message as protocol
from culture.protocol.message import Message
from culture.protocol.modes import ModeChange
from culture.server import events as e
from culture.server.core.ids import EventId

PAGE = (Path(protocol.__file__).parent / "extensions" / "federation.md").read_text(encoding="utf-8")
SHOWN = [Message.parse(line) for line in re.findall(r"^    (\S.*)$", PAGE.partition("\nMessages:\n")[2], re.MULTILINE)]

words = st.text(st.characters(exclude_categories=("Cs", "Cc", "Zs")), min_size=1, max_size=12).filter(
    lambda text: text[0] not in ":#@+" and text.isprintable()
)
texts = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\r\n\0"), max_size=60)
nicks = words.map(lambda word: f"spark-{word}")
sources = st.tuples(nicks, words, words).map(lambda parts: "{}!{}@{}".format(*parts))
channels = words.map(lambda word: f"#{word}")
stamps = st.builds(
    EventId,
    st.from_regex(r"[a-z][a-z0-9]{0,11}", fullmatch=True),
    st.from_regex(r"[0-9a-f]{8}", fullmatch=True),
    st.integers(0, 10**15),
    st.integers(0, 4 * 10**15).map(lambda at: at / 1_000_000),
)
maybe = st.none() | words
status = st.sampled_from(["", "o", "v", "ov"])
kinds = st.sampled_from(["human", "agent", "bot", "unknown"])
lines = st.lists(st.builds(e.Line, texts, st.booleans()), min_size=1, max_size=4).map(
    lambda some: (e.Line(some[0].text, False), *some[1:])
)
tags = st.dictionaries(words.map(lambda word: "+" + re.sub("[;=]", "x", word)), texts, max_size=3)
changes = st.lists(
    st.builds(ModeChange, st.booleans(), st.sampled_from("ovbklimnst"), st.none() | texts), min_size=1, max_size=4
).map(tuple)


@st.composite
def said(draw: st.DrawFn) -> e.Said:
    verb = draw(st.sampled_from(["PRIVMSG", "NOTICE", "TAGMSG"]))
    some: tuple[e.Line, ...] = draw(st.just(()) | lines) if verb != "TAGMSG" else ()
    text = "" if verb == "TAGMSG" else joined(some) if some else draw(texts)
    return e.Said(
        draw(stamps),
        draw(sources),
        verb,
        draw(channels | nicks),
        text,
        draw(maybe),
        draw(kinds),
        draw(tags),
        tuple(draw(st.lists(words.map(lambda word: word.replace(",", "x")), max_size=2))),
        draw(st.sampled_from(["", "@"])),
        some,
    )


events = st.one_of(
    said(),
    st.builds(e.Arrived, stamps, nicks, words, words, texts, words, maybe, kinds, st.sampled_from(["", "B", "Bi"])),
    st.builds(e.Left, stamps, sources, texts),
    st.builds(e.Renamed, stamps, sources, nicks),
    st.builds(e.AwaySet, stamps, sources, st.none() | texts),
    st.builds(e.AccountSet, stamps, sources, maybe.filter(lambda each: each != "*"), kinds),
    st.builds(e.RealnameSet, stamps, sources, texts),
    st.builds(e.HostSet, stamps, sources, words, words),
    st.builds(e.Walloped, stamps, sources, texts),
    st.builds(e.UserModeSet, stamps, sources, changes),
    st.builds(e.ModeSet, stamps, sources, channels, changes),
    st.builds(e.Joined, stamps, sources, channels, status, maybe, texts),
    st.builds(e.Parted, stamps, sources, channels, st.none() | texts),
    st.builds(e.Kicked, stamps, sources, channels, nicks, texts),
    st.builds(e.TopicSet, stamps, sources, channels, texts),
    st.builds(e.Invited, stamps, sources, nicks, channels),
    st.builds(e.ChannelRenamed, stamps, sources, channels, channels, texts),
    st.builds(e.MetadataSet, stamps, sources, channels | nicks, words, st.none() | texts, words),
    st.builds(e.Redacted, stamps, sources, channels | nicks, words, st.none() | texts),
    st.builds(e.Receipted, stamps, sources, nicks, words, words),
    st.builds(e.Noted, stamps, sources, words, words, texts),
)


@pytest.mark.requirement("E07", "E14")
@given(events)
def test_an_event_crosses_a_link_unchanged(event: e.Event) -> None:
    """Through the line's text, as it goes over the wire."""
    there = decode(Message.parse(str(encode(event))))
    assert there._replace(id=event.id) == event
    assert there.id[:3] == event.id[:3]
    assert abs(there.id.at - event.id.at) < 0.000_001


@given(said())
def test_the_short_cut_says_the_same(event: e.Said) -> None:
    text = plain(event)
    assert decode(Message.parse(text)) == decode(encode(event))
    line = f"@n=7;seal={'a' * 32};{text[1:]}"
    short = read_plain(line)
    assert short is None or short == (7, f"@seal={'a' * 32};{text[1:]}", decode(Message.parse(line)))
    bare = event._replace(
        tags={}, mentions=(), lines=(), account=None, verb="PRIVMSG", text="hi", status="", target="#a"
    )
    assert read_plain(f"@n=7;seal={'a' * 32};{plain(bare)[1:]}") is not None


@pytest.mark.requirement("E14", "E18")
def test_every_verb_of_the_wire_has_an_example_on_the_page() -> None:
    assert {line.verb for line in SHOWN} >= codec.VERBS


@pytest.mark.requirement("E14")
@pytest.mark.parametrize("line", [line for line in SHOWN if "id" in line.tags], ids=lambda line: line.verb)
def test_the_lines_of_the_page_are_events(line: Message) -> None:
    event = decode(line)
    again = encode(event)
    assert decode(again) == event
    assert (again.verb, again.params, again.source) == (line.verb, line.params, line.source)


@pytest.mark.fault("D15")
@given(
    st.builds(
        Message,
        st.sampled_from(sorted(codec.VERBS)) | words,
        st.lists(texts, max_size=8).map(tuple),
        sources | st.just(""),
        st.dictionaries(st.sampled_from(["id", "at", "lines", "mentions", "kind", "x"]), texts, max_size=4),
    )
)
def test_what_is_no_event_is_told_apart(line: Message) -> None:
    try:
        event = decode(line)
    except Garbled:
        return
    assert type(event) in codec.EVENTS
