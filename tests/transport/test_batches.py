"""Lines that belong together."""

import pytest

from culture.protocol.message import Message as Line
from culture.protocol.message import ProtocolError
from culture.transport.batches import Item, ReceivedBatch, ReceivedBatches, text_of


def taken(*lines: str) -> list[Item]:
    batches = ReceivedBatches()
    return [item for line in lines for item in batches.take(Line.parse(line))]


def test_a_batch_comes_when_it_is_complete_with_those_inside_of_it() -> None:
    items = taken(
        "@label=c1 :s BATCH +1 labeled-response",
        "@batch=1 :s BATCH +2 chathistory #general",
        "@batch=2 :ori!o@h PRIVMSG #general :one",
        ":bob!b@h PRIVMSG #general :live",
        "@batch=2;msgid=x :s BATCH +3 draft/multiline #general",
        "@batch=3 :ori!o@h PRIVMSG #general :two",
        "@batch=3;draft/multiline-concat :ori!o@h PRIVMSG #general :, three",
        "@batch=3 :ori!o@h PRIVMSG #general :",
        "@batch=3 :ori!o@h PRIVMSG #general :four",
        ":s BATCH -3",
        "@batch=2 :ori!o@h PRIVMSG #general :five",
        ":s BATCH -2",
        ":s BATCH -1",
    )
    live, outer = items
    assert isinstance(live, Line) and live.params[-1] == "live"
    assert isinstance(outer, ReceivedBatch) and outer.tags["label"] == "c1"
    (history,) = outer.items
    assert isinstance(history, ReceivedBatch)
    one, long, five = history.items
    assert isinstance(long, ReceivedBatch) and long.tags["msgid"] == "x" and text_of(long) == "two, three\n\nfour"
    assert [line.params[-1] for line in (one, five) if isinstance(line, Line)] == ["one", "five"]


def test_what_only_marks_a_group_is_passed_on_line_by_line() -> None:
    items = taken(":s BATCH +1 netsplit a b", "@batch=1 :ori!o@h QUIT :a b", ":s BATCH -1", ":s BATCH -1")
    assert [item.verb for item in items if isinstance(item, Line)] == ["QUIT"] and len(items) == 1


def test_a_batch_without_end_ends_the_connection() -> None:
    batches = ReceivedBatches()
    list(batches.take(Line.parse(":s BATCH +1 chathistory #general")))
    line = Line("PRIVMSG", ("#general", "x" * 8000), "ori!o@h", {"batch": "1"})
    with pytest.raises(ProtocolError):
        for _ in range(10_000):
            list(batches.take(line))


def test_batches_that_are_never_closed_end_the_connection() -> None:
    batches = ReceivedBatches()
    with pytest.raises(ProtocolError):
        for number in range(1000):
            list(batches.take(Line.parse(f":s BATCH +{number} netsplit a b")))
