"""How events read."""

from collections.abc import Iterable

import pytest

from culture.protocol.modes import ModeChange
from culture.server.core.ids import EventId
from culture.server.events import (
    ChannelRenamed,
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
from culture.skills.logger.format import ChannelLogFormat, Logged

AT = EventId("spark", "e", 1, 1_773_914_400.0)
ORI = "spark-ori!ori@host"


def said(text: str, verb: str = "PRIVMSG", stamp: EventId = AT, lines: tuple[Line, ...] = ()) -> Said:
    return Said(stamp, ORI, verb, "#a", text, None, "human", {}, (), "", lines)


def read(
    event: Logged, concerned: Iterable[str] = (), scribe: ChannelLogFormat | None = None
) -> list[tuple[str, str, str]]:
    rows = list((scribe or ChannelLogFormat()).rows(event, concerned))
    assert {row.at for row in rows} <= {event.id.at}
    return [(row.channel, row.who, row.text) for row in rows]


@pytest.mark.parametrize(
    ("event", "who", "text"),
    [
        (said("hello"), "spark-ori", "hello"),
        (said("\x01ACTION waves\x01"), " *", "spark-ori waves"),
        (said("\x01VERSION\x01"), "--", "CTCP VERSION from spark-ori: "),
        (said("beware", "NOTICE"), "--", "Notice(spark-ori): beware"),
        (Joined(AT, ORI, "#a"), "-->", "spark-ori (ori@host) has joined #a"),
        (Parted(AT, ORI, "#a"), "<--", "spark-ori (ori@host) has left #a"),
        (Parted(AT, ORI, "#a", "tea"), "<--", "spark-ori (ori@host) has left #a (tea)"),
        (Kicked(AT, ORI, "#a", "spark-eve", "noise"), "<--", "spark-ori has kicked spark-eve (noise)"),
        (TopicSet(AT, ORI, "#a", "plans"), "--", "spark-ori has changed the topic of #a to: plans"),
        (TopicSet(AT, ORI, "#a", ""), "--", "spark-ori has unset the topic of #a"),
        (ModeSet(AT, "spark", "#a", (ModeChange(True, "o", "spark-ada"),)), "--", "Mode #a [+o spark-ada] by spark"),
    ],
)
def test_an_event_of_one_channel(event: Logged, who: str, text: str) -> None:
    assert read(event) == [("#a", who, text)]


def test_somebody_leaves_all_channels_at_once() -> None:
    text = "spark-ori (ori@host) has quit (bye)"
    assert read(Left(AT, ORI, "bye"), ("#a", "#b")) == [("#a", "<--", text), ("#b", "<--", text)]


def test_a_nick_changes_in_every_channel() -> None:
    assert read(Renamed(AT, ORI, "spark-owl"), ("#b",)) == [("#b", "--", "spark-ori is now known as spark-owl")]


def test_a_renamed_channel_ends_one_log_and_begins_another() -> None:
    text = "spark-ori has renamed #a to #b (tidy)"
    assert read(ChannelRenamed(AT, ORI, "#a", "#b", "tidy")) == [("#a", "--", text), ("#b", "--", text)]


def test_the_key_of_a_channel_is_in_no_log() -> None:
    changes = (ModeChange(True, "k", "sesame"), ModeChange(True, "l", "5"), ModeChange(False, "k", "sesame"))
    assert read(ModeSet(AT, ORI, "#a", changes)) == [("#a", "--", "Mode #a [+kl-k * 5 *] by spark-ori")]


def test_many_modes_are_one_line() -> None:
    changes = tuple(ModeChange(True, "b", f"{'x' * 60}{number}!*@*") for number in range(30))
    [(_, _, text)] = read(ModeSet(AT, ORI, "#a", changes))
    assert "x29!*@*] by spark-ori" in text


def test_a_message_of_several_lines() -> None:
    event = said("one\n\nthree", lines=(Line("one", False), Line("", False), Line("three", False)))
    assert read(event) == [("#a", "spark-ori", "one"), ("#a", " |", ""), ("#a", " |", "three")]


def test_what_was_taken_back_is_named() -> None:
    scribe = ChannelLogFormat()
    read(said("oops"), scribe=scribe)
    event = Redacted(AT._replace(seq=2), ORI, "#a", AT.msgid, "typo")
    assert read(event, scribe=scribe) == [
        ("#a", "--", "spark-ori took back what spark-ori said at 2026-03-19 10:00:00 (typo)")
    ]
    assert read(event._replace(reason=None), scribe=scribe) == [("#a", "--", "spark-ori took back an earlier message")]


def test_only_the_last_messages_are_remembered() -> None:
    scribe = ChannelLogFormat()
    for seq in range(10_001):
        read(said("x", stamp=AT._replace(seq=seq)), scribe=scribe)
    for seq, what in ((0, "an earlier message"), (1, "what spark-ori said at 2026-03-19 10:00:00")):
        event = Redacted(AT, ORI, "#a", AT._replace(seq=seq).msgid, None)
        assert read(event, scribe=scribe) == [("#a", "--", f"spark-ori took back {what}")]
