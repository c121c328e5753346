"""What is in doubt: kept aside for a while, and no longer."""

from typing import cast

from culture.federation.doubts import Doubts
from culture.federation.link import Link
from culture.protocol.message import Message
from culture.server.core.ids import EventId

LINE = Message("PRIVMSG", ("#x", "hello"), "thor-ada")


def stamp(seq: int) -> EventId:
    return EventId("thor", "epoch", seq, 0.0)


def test_what_is_told_again_and_again_keeps_nothing_behind_it_in_doubt() -> None:
    link, doubts = cast(Link, object()), Doubts(10.0)
    for seq in (1, 2):
        doubts.note(link, LINE, stamp(seq), seq, now=0.0)
    doubts.note(link, LINE, stamp(1), 1, now=9.0)
    assert doubts.first(link) == 1
    doubts.expire(now=11.0)
    assert doubts.first(link) is None


def test_a_server_is_asked_once_as_soon_as_it_is_linked() -> None:
    link, doubts = cast(Link, object()), Doubts(10.0)
    for seq in (1, 2):
        doubts.note(link, LINE, stamp(seq), None, now=0.0)
    assert doubts.overdue(1.0, linked=()) == []
    doubts.resolve(stamp(2))
    assert doubts.overdue(1.0, linked=("odin",)) == []
    assert doubts.overdue(1.0, linked=("thor",)) == [("thor", LINE)]
    assert doubts.overdue(1.0, linked=("thor",)) == []


def test_nobody_is_asked_about_what_was_given_up() -> None:
    link, doubts = cast(Link, object()), Doubts(10.0)
    doubts.note(link, LINE, stamp(1), None, now=0.0)
    assert doubts.overdue(1.0, linked=()) == []
    doubts.expire(now=11.0)
    assert doubts.overdue(12.0, linked=("thor",)) == []
