"""References and selections: which part of the history a question means."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culture.server.core.ids import MICROSECONDS
from culture.server.core.render import iso_time
from culture.skills.history.references import MessageId, Moment, Span, find, is_known_type, parse
from culture.skills.history.selection import REFERENCES, select
from culture.skills.history.store import Kept, Store, View
from tests.skills.history.entries import PLACE, START, entry, event, numbers, redaction

TIMES = st.floats(0, 253_402_300_799, allow_nan=False)
VIEW = View(PLACE)


@given(TIMES)
def test_a_time_as_it_is_shown_means_what_was_shown_so(at: float) -> None:
    """On the wire, and read back from the disk."""
    kept = round(at * MICROSECONDS)
    moment = parse(f"timestamp={iso_time(at)}")
    assert isinstance(moment, Moment)
    assert moment.at <= kept < moment.end
    assert iso_time(kept / MICROSECONDS) == iso_time(at)


@given(st.text())
def test_whatever_is_sent_is_a_reference_or_none(word: str) -> None:
    reference = parse(word)
    assert reference is None or is_known_type(word)


@pytest.mark.parametrize(
    "word",
    [
        *("", "*", "msgid", "msgid=", "MSGID=a", "id=a", "timestamp=", "timestamp=1", "timestamp=2026-03-19"),
        *("timestamp=2026-03-19T10:00:00Z", "timestamp=2026-02-30T10:00:00.000Z"),
        "timestamp=2026-03-19T10:00:00.000+01:00",
    ],
)
def test_what_is_no_reference(word: str) -> None:
    assert parse(word) is None


def test_times_that_cannot_be_are_before_or_behind_everything(store: Store) -> None:
    store.write([entry(1)])
    for text, found in (("0001-01-01T00:00:00.000Z", [1]), ("9999-12-31T23:59:59.999Z", [])):
        reference = parse(f"timestamp={text}")
        assert reference is not None
        span = find(store, VIEW, reference)
        assert span is not None
        assert numbers(select(store, VIEW, "AFTER", [span], 10)) == found


def test_a_message_is_found_where_it_is_and_nowhere_else(store: Store) -> None:
    store.write([entry(1), event(2), entry(3)])
    for seq in (1, 2):
        span = find(store, VIEW, MessageId(f"spark.e1.{seq}"))
        assert span is not None
        assert numbers(select(store, VIEW._replace(events=True), "AROUND", [span], 1)) == [seq]
    assert find(store, VIEW, MessageId("spark.e1.9")) is None
    assert find(store, View("#other"), MessageId("spark.e1.1")) is None


def test_a_message_that_is_hidden_from_the_reader_is_unknown(store: Store) -> None:
    """From before the reader's time; what was taken back since is known."""
    store.write([entry(1, closed=True), entry(2), entry(3, closed=True), redaction(4, "spark.e1.3")])
    view = View(PLACE, closed_since=START + 2_500_000)
    known = {seq: find(store, view, MessageId(f"spark.e1.{seq}")) is not None for seq in (1, 2, 3)}
    assert known == {1: False, 2: True, 3: True}
    assert find(store, View(PLACE, since=START + 1_500_000), MessageId("spark.e1.1")) is None


class Listed:
    """The pages of a list: what a store does, in the plainest way."""

    def __init__(self, positions: list[int]) -> None:
        self._rows = [Kept(position, entry(position)) for position in positions]

    def page(self, view: View, after: int | None, before: int | None, limit: int, newest: bool) -> list[Kept]:
        rows = [
            row
            for row in self._rows
            if (after is None or row.position > after) and (before is None or row.position < before)
        ]
        return rows[max(len(rows) - limit, 0) :] if newest else rows[:limit]


POSITIONS = st.lists(st.integers(0, 60), unique=True, max_size=20).map(sorted)
SPANS = st.tuples(st.integers(0, 60), st.integers(0, 3)).map(lambda pair: Span(pair[0], sum(pair)))


@given(st.sampled_from(sorted(REFERENCES)), POSITIONS, SPANS, SPANS, st.integers(1, 25))
def test_a_selection_is_in_order_within_its_limit_and_leaves_no_gap(
    action: str, positions: list[int], one: Span, other: Span, limit: int
) -> None:
    spans = [one, other][: REFERENCES[action]]
    found = [row.position for row in select(Listed(positions), VIEW, action, spans, limit)]  # type: ignore[arg-type]
    wanted = {
        "LATEST": [each for each in positions if each > one.last],
        "BEFORE": [each for each in positions if each < one.first],
        "AFTER": [each for each in positions if each > one.last],
        "AROUND": positions,
        "BETWEEN": [each for each in positions if min(one, other).last < each < max(one, other).first],
    }[action]
    assert len(found) == min(limit, len(wanted))
    begin = positions.index(found[0]) if found else 0
    assert found == positions[begin : begin + len(found)]
    assert set(found) <= set(wanted)
    if action == "AROUND" and found and one.first in positions:
        assert one.first in found
