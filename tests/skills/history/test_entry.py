"""An event, what is kept of it, and the event again."""

from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culture.protocol.message import NO_TAGS
from culture.protocol.modes import ModeChange
from culture.server.core.ids import EventId
from culture.server.core.render import iso_time
from culture.server.events import (
    AwaySet,
    Event,
    Joined,
    Kicked,
    Left,
    Line,
    ModeSet,
    Parted,
    Redacted,
    Renamed,
    Said,
    TopicSet,
)
from culture.skills.history.entry import (
    Entry,
    Sort,
    conversation,
    event_entry,
    event_of,
    party,
    said_entry,
    split_msgid,
)

moments = st.floats(1_600_000_000, 2_500_000_000).map(lambda at: round(at, 6))
stamps = st.builds(EventId, st.sampled_from(("spark", "a.b")), st.just("e1"), st.integers(1, 10**9), moments)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
some = texts.filter(bool)
source = st.just("ada!a@here")
channel = st.just("#General")
changes = st.lists(st.builds(ModeChange, st.booleans(), st.sampled_from("ovb"), st.none() | texts), max_size=3).map(
    tuple
)
tags = st.dictionaries(st.sampled_from(("+draft/reply", "+x/y")), texts, max_size=2).map(
    lambda found: MappingProxyType(found) if found else NO_TAGS
)
lines = st.lists(st.builds(Line, texts, st.booleans()), max_size=3).map(tuple)
events: st.SearchStrategy[Event] = st.one_of(
    st.builds(Joined, stamps, source, channel, st.sampled_from(("", "o")), st.just("ada"), texts),
    st.builds(Parted, stamps, source, channel, st.none() | st.just("") | some),
    st.builds(Left, stamps, source, texts),
    st.builds(Renamed, stamps, source, some),
    st.builds(Kicked, stamps, source, channel, texts, texts),
    st.builds(TopicSet, stamps, source, channel, texts),
    st.builds(ModeSet, stamps, source, channel, changes),
    st.builds(Redacted, stamps, source, channel, texts, st.none() | some),
)
messages = st.builds(
    Said,
    stamps,
    source,
    st.sampled_from(("PRIVMSG", "NOTICE")),
    channel,
    texts,
    st.none() | st.just("ada"),
    st.sampled_from(("", "agent")),
    tags,
    st.lists(some, max_size=2).map(tuple),
    st.sampled_from(("", "@")),
    lines,
    st.none(),
)


@given(events)
def test_an_event_is_the_same_again(event: Event) -> None:
    kept = event_entry(event, "#General", "ada", closed=True)
    assert kept is not None
    assert (kept.sort, kept.place, kept.target, kept.closed) == (Sort.EVENT, "#general", "#General", True)
    assert event_of(kept) == event


@given(messages)
def test_a_message_is_the_same_again(said: Said) -> None:
    kept = said_entry(said, "#general", closed=False)
    assert (kept.sort, kept.msgid, kept.nick) == (Sort.MESSAGE, said.id.msgid, "ada")
    assert event_of(kept) == said


@given(st.floats(1_600_000_000, 9_000_000_000))
def test_a_time_is_shown_as_it_was(at: float) -> None:
    said = Said(EventId("spark", "e1", 1, at), "ada!a@here", "PRIVMSG", "#general", "x", None, "", NO_TAGS)
    again = event_of(said_entry(said, "#general", closed=False))
    assert iso_time(again.id.at) == iso_time(at)


def test_nothing_is_kept_of_what_concerns_no_channel() -> None:
    assert event_entry(AwaySet(EventId("spark", "e1", 1, 1.0), "ada!a@here", "gone"), "#general", None, False) is None


def test_what_is_left_of_a_message() -> None:
    kept = Entry("#a", "spark", "e1", 1, 5, "PRIVMSG", "ada!a@h", "ada", "agent", "secret", "#a", "@", True, '{"a":1}')
    assert kept.blank() == Entry("#a", "spark", "e1", 1, 5, "", "", None, "", "", "#a", "@", True, "")
    assert kept.blank().sort == Sort.REDACTED
    assert kept.redacts == ""
    assert kept._replace(verb="REDACT", data='{"msgid":"spark.e1.9"}').redacts == "spark.e1.9"


@given(
    st.from_regex(r"[a-z.]{1,9}", fullmatch=True),
    st.from_regex(r"[a-z0-9]{1,5}", fullmatch=True),
    st.integers(0, 10**18 - 1),
)
def test_an_id_is_read(origin: str, epoch: str, seq: int) -> None:
    assert split_msgid(f"{origin}.{epoch}.{seq}") == (origin, epoch, seq)


@pytest.mark.parametrize(
    "text", ["", ".", "..", "1", "a.1", "a.b.", "a.b.c", "a.b.-1", "a.b.01", "a.b.²", "a..1", ".b.1"]
)
def test_what_is_no_id(text: str) -> None:
    assert split_msgid(text) is None


@given(st.text())
def test_any_text_may_be_taken_for_an_id(text: str) -> None:
    found = split_msgid(text)
    assert found is None or ".".join(map(str, found)) == text


def test_a_conversation_is_the_same_from_both_sides() -> None:
    ada, cyd = party("ada", "Ada_"), party(None, "Cyd")
    assert (ada, cyd) == ("a:ada", "n:cyd")
    assert conversation(ada, cyd) == conversation(cyd, ada) == "a:ada n:cyd"
