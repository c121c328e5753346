"""What every store knows of the order in which messages came: each is found again, from wherever one goes on."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from culture.server.errors import Failed
from culture.skills.history.entry import Entry
from culture.skills.history.missed import beginning
from culture.skills.history.postgres import PostgresStore
from culture.skills.history.punctuality import LAG
from culture.skills.history.references import parse
from culture.skills.history.sqlite import SQLiteStore
from culture.skills.history.store import LATEST, Arrival, Store, View
from tests.skills.history.entries import PLACE, SECOND, START, entry, event, private, redaction
from tests.support.clock import Clock
from tests.support.postgres import postgres

pytestmark = pytest.mark.requirement("F23")
ALL = View(PLACE, ("", "@"), 0)


class Kept:
    """A store whose clock is told the time, and closed with the test."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self.store = store
        self.clock = clock

    def write(self, *batch: Entry, at: float | None = None) -> None:
        """Write these so many seconds after the start; by default when the last of them is new."""
        self.clock.now = (batch[-1].at if at is None else START + at * SECOND) / SECOND
        self.store.write(batch)

    def since(self, seq: int, *, views: Sequence[View] = (ALL,), limit: int = 100) -> list[int]:
        """The numbers of what came behind a message, page after page."""
        (after,) = self.store.arrivals(f"spark.e1.{seq}").values()
        return self.behind(after, views=views, limit=limit)

    def behind(self, after: Arrival, *, views: Sequence[View] = (ALL,), limit: int = 100) -> list[int]:
        found: list[int] = []
        while some := self.store.missed(views, after, limit):
            assert len(some) <= limit
            found += [each.kept.entry.seq for each in some]
            after = some[-1].arrival
            (known,) = self.store.arrivals(some[-1].kept.entry.msgid).values()
            assert known == after
        return found


@contextmanager
def _kept(kind: str, folder: Path) -> Iterator[Kept]:
    clock = Clock()
    clock.now = START / SECOND
    with postgres().corner() if kind == "postgresql" else _no_database() as address:
        store = PostgresStore(address, "spark", clock) if address else SQLiteStore(folder / "history.db", clock)
        store.open()
        try:
            yield Kept(store, clock)
        finally:
            store.close()


@contextmanager
def _no_database() -> Iterator[str]:
    yield ""


@pytest.fixture(params=["postgresql", "sqlite"])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Kept]:
    with _kept(request.param, tmp_path) as opened:
        yield opened


def test_what_comes_in_time_came_in_the_order_of_time(kept: Kept) -> None:
    kept.write(*(entry(seq) for seq in range(1, 6)))
    assert kept.since(2) == [3, 4, 5]
    assert kept.store.arrivals("spark.e1.2")[PLACE].number == 0


def test_what_comes_late_came_behind_what_was_there(kept: Kept) -> None:
    kept.write(entry(1), entry(5))
    kept.write(entry(3), entry(2))
    kept.write(entry(6))
    kept.write(entry(4))
    assert kept.since(1) == [5, 3, 2, 6, 4]
    assert kept.since(5) == [3, 2, 6, 4]
    assert kept.since(3) == [2, 6, 4]
    assert kept.since(6) == [4]
    assert kept.since(4) == []


def test_the_order_inside_of_a_transaction_counts(kept: Kept) -> None:
    kept.write(entry(2), entry(1), entry(4), entry(3), at=4)
    assert kept.since(2) == [1, 4, 3]


def test_more_than_a_page_that_came_late_is_all_found(kept: Kept) -> None:
    kept.write(entry(100))
    kept.write(*(entry(seq) for seq in range(40, 0, -1)), at=101)
    kept.write(entry(200))
    assert kept.since(100, limit=7) == [*range(40, 0, -1), 200]


def test_what_comes_again_did_not_come_later(kept: Kept) -> None:
    kept.write(entry(1), entry(3))
    kept.write(entry(2))
    kept.write(entry(1), entry(2), entry(3), entry(4), at=60)
    assert kept.since(1) == [3, 2, 4]
    assert kept.since(3) == [2, 4]


def test_only_messages_that_may_be_seen_are_shown(kept: Kept) -> None:
    kept.write(entry(1), entry(9))
    batch = (event(2), entry(3, closed=True), entry(4, status="@"), entry(5), entry(6, place="#other"), entry(7))
    kept.write(*batch, at=9)
    kept.write(redaction(10, "spark.e1.5"))
    assert kept.since(9) == [3, 4, 7]
    assert kept.since(9, views=[View(PLACE)]) == [7]
    assert kept.since(9, views=[View(PLACE, closed_since=START + 4 * SECOND)]) == [7]
    assert kept.since(9, views=[ALL._replace(since=START + 4 * SECOND)]) == [4, 7]
    assert kept.since(9, views=[View("#other"), View("#nowhere"), View(PLACE)]) == [6, 7]
    assert kept.since(9, views=[]) == []


def test_one_that_was_taken_back_is_still_a_place_to_go_on_from(kept: Kept) -> None:
    kept.write(entry(1), entry(3), entry(4))
    kept.write(entry(2))
    kept.write(redaction(5, "spark.e1.2"), redaction(6, "spark.e1.3"))
    kept.write(entry(7))
    assert kept.since(3) == [4, 7]
    assert kept.since(2) == [7]


def test_private_messages_are_found_too(kept: Kept) -> None:
    talk = private(2, "late", ("ada", "ada"), ("ben", "ben"))
    kept.write(entry(1), entry(3))
    kept.write(talk)
    assert kept.since(3, views=[ALL, View(talk.place)]) == [2]


def test_an_unknown_message_never_came(kept: Kept) -> None:
    kept.write(entry(1))
    for unknown in ("spark.e1.2", "spark.e2.1", "thor.e1.1", "nonsense", "", "spark.e1." + "9" * 30):
        assert kept.store.arrivals(unknown) == {}


def test_a_channel_with_another_name_keeps_the_order(kept: Kept) -> None:
    kept.write(entry(1), entry(3), entry(8, place="#new"))
    kept.write(entry(2), entry(7, place="#new"))
    kept.store.move(PLACE, "#new", "#New")
    assert kept.since(1, views=[View("#new")]) == [3, 8, 2, 7]
    assert list(kept.store.verify()) == []


def test_what_is_removed_is_missed_by_nobody(kept: Kept) -> None:
    kept.write(entry(1, place="#other"), entry(5, place="#other"), entry(50))
    kept.write(entry(2, place="#other"), entry(3), entry(40), at=50)
    kept.store.prune(PLACE, LATEST)
    assert kept.store.arrivals("spark.e1.3") == {}
    views = [ALL, View("#other")]
    kept.write(entry(30), at=60)  # before what is removed, and behind what is left
    assert kept.since(2, views=views) == [30]
    assert kept.since(1, views=views) == [5, 2, 30]
    assert list(kept.store.verify()) == []


def test_what_was_removed_elsewhere_is_still_what_others_came_behind(kept: Kept) -> None:
    kept.write(entry(50), entry(2, place="#other"), at=50)
    kept.store.prune(PLACE, LATEST)
    kept.store.close()
    kept.store.open()
    kept.write(entry(40), at=60)
    assert kept.since(2, views=[ALL, View("#other")]) == [40]


class TestReferences:
    """Of the references that a client gives the first that is known counts, unless it may have come twice."""

    def begin(self, kept: Kept, *given: int | str) -> list[int]:
        words = (f"timestamp={each}" if isinstance(each, str) else f"msgid=spark.e1.{each}" for each in given)
        references = [reference for word in words if (reference := parse(word)) is not None]
        return kept.behind(beginning(kept.store, [ALL], references))

    def test_the_first_that_is_known(self, kept: Kept) -> None:
        kept.write(*(entry(seq) for seq in (1, 2, 3, 4)))
        assert self.begin(kept, 3, 1) == [4]
        assert self.begin(kept, 9, 2, 1) == [3, 4]
        with pytest.raises(Failed):
            self.begin(kept, 8, 9)

    def test_one_that_came_late_may_have_come_before(self, kept: Kept) -> None:
        """3 was heard, and lost in a crash; when it comes again 2 is there, which nobody heard."""
        kept.write(entry(1))
        kept.clock.now += 100
        kept.store.close()
        kept.store.open()
        kept.write(entry(2), entry(3), at=110)
        kept.write(entry(120))
        assert self.begin(kept, 3, 1) == [2, 3, 120]
        assert self.begin(kept, 3, "2025-06-15T15:07:40.000Z") == [2, 3, 120]
        assert self.begin(kept, 120, 3, 1) == []
        assert self.begin(kept, 3) == [120]


class TestSinceATime:
    """By when it came, and not by when it was said."""

    def test_what_came_in_time_is_there(self, kept: Kept) -> None:
        for seq in range(1, 60):
            kept.write(entry(seq))
        found = kept.behind(kept.store.since(START + 40 * SECOND))
        assert found == [*range(40 - LAG // SECOND, 60)]

    def test_what_came_late_is_there(self, kept: Kept) -> None:
        kept.write(entry(1), entry(20))
        kept.write(entry(2), at=50)
        kept.write(entry(100))
        kept.write(entry(3), at=200)
        assert kept.behind(kept.store.since(START + 190 * SECOND)) == [3]
        assert kept.behind(kept.store.since(START + 150 * SECOND)) == [3]
        assert kept.behind(kept.store.since(START + 60 * SECOND)) == [100, 3]
        assert kept.behind(kept.store.since(START + 50 * SECOND)) == [2, 100, 3]

    def test_what_came_long_after_its_time_is_there_though_nothing_else_was_newer(self, kept: Kept) -> None:
        kept.write(entry(1))
        kept.write(entry(300), entry(301), at=900)
        assert kept.behind(kept.store.since(START + 600 * SECOND)) == [300, 301]
        assert kept.since(1) == [300, 301]

    def test_what_comes_from_before_the_start_came_late(self, kept: Kept) -> None:
        kept.write(entry(1))
        kept.clock.now = START / SECOND + 50
        kept.store.close()
        kept.store.open()
        kept.write(entry(49), entry(51))
        assert kept.store.arrivals("spark.e1.49")[PLACE].number > 0
        assert kept.store.arrivals("spark.e1.51")[PLACE].number == 0
        assert kept.since(1) == [49, 51]

    def test_a_clock_that_is_set_back_leaves_nothing_out(self, kept: Kept) -> None:
        kept.write(entry(100), at=100)
        kept.write(entry(50), at=101)
        kept.write(entry(10), at=10)
        kept.write(entry(11), at=11)
        assert kept.behind(kept.store.since(START + 101 * SECOND)) == [100, 50, 10, 11]

    def test_any_time_is_one(self, kept: Kept) -> None:
        kept.write(entry(1))
        kept.write(entry(5), entry(3))
        assert kept.behind(kept.store.since(0)) == [1, 5, 3]
        assert kept.behind(kept.store.since(-LATEST)) == [1, 5, 3]
        assert kept.behind(kept.store.since(LATEST * 4)) == []


EXAMPLES = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
_fresh = count(1)
batches = st.lists(
    st.tuples(st.integers(0, 40), st.lists(st.tuples(st.integers(0, 12), st.integers(0, 40)), min_size=1, max_size=5)),
    max_size=5,
)


@EXAMPLES
@given(batches=batches, again=st.booleans(), limit=st.integers(1, 4))
def test_whatever_comes_in_whatever_order_is_missed_in_that_order(
    kept: Kept, batches: list[tuple[int, list[tuple[int, int]]]], again: bool, limit: int
) -> None:
    place = f"#p{next(_fresh)}"
    view, epoch = View(place), f"e{next(_fresh)}"
    came: dict[int, int] = {}
    for now, rows in batches:
        batch = [entry(seq, at=START + at * SECOND, place=place, epoch=epoch) for seq, at in rows]
        kept.write(*batch, at=now)
        came |= {each.seq: now for each in batch if each.seq not in came}
        if again:
            kept.store.close()
            kept.store.open()
    order = list(came)
    for number, seq in enumerate(order):
        (after,) = kept.store.arrivals(f"spark.{epoch}.{seq}").values()
        found: list[int] = []
        while some := kept.store.missed([view], after, limit):
            found += [each.kept.entry.seq for each in some]
            after = some[-1].arrival
        assert found == order[number + 1 :]
    latest = 0
    for seq, now in came.items():
        latest = max(latest, now)  # a clock that was set back is taken to stand still
        if now == latest:
            since = kept.store.missed([view], kept.store.since(START + now * SECOND), 100)
            found = [each.kept.entry.seq for each in since]
            assert set(order[order.index(seq) :]) <= set(found)


class TestShared:
    """Two servers with one database: each has its own order of what came to it."""

    @pytest.fixture
    def pair(self) -> Iterator[tuple[Kept, Kept]]:
        with postgres().corner() as address, ExitStack() as stack:
            clock = Clock()
            clock.now = START / SECOND
            stores = [PostgresStore(address, name, clock) for name in ("spark", "thor")]
            for store in stores:
                store.open()
                stack.callback(store.close)
            yield Kept(stores[0], clock), Kept(stores[1], clock)

    def test_what_another_wrote_comes_when_it_is_told(self, pair: tuple[Kept, Kept]) -> None:
        spark, thor = pair
        spark.write(entry(1))
        thor.write(entry(1))
        thor.write(entry(2), entry(3))
        assert spark.since(1) == []  # they are split
        assert spark.store.arrivals("spark.e1.2") == {}
        spark.write(entry(4))
        assert spark.since(1) == [4]
        spark.write(entry(2), entry(3), at=5)
        thor.write(entry(4), at=5)
        assert spark.since(4) == [2, 3]
        assert spark.since(1) == [4, 2, 3]
        assert thor.since(1) == [2, 3, 4]
        assert thor.since(2) == [3, 4]

    def test_what_comes_again_did_not_come_later(self, pair: tuple[Kept, Kept]) -> None:
        spark, thor = pair
        thor.write(entry(1), entry(3))
        spark.write(entry(1), entry(2), entry(3))
        spark.write(entry(1), entry(2), entry(3), entry(4))
        assert spark.since(1) == [2, 3, 4]
        assert [spark.since(seq) for seq in (2, 3, 4)] == [[3, 4], [4], []]
        assert list(spark.store.verify()) == []

    def test_a_server_knows_its_order_again(self, pair: tuple[Kept, Kept]) -> None:
        spark, thor = pair
        thor.write(entry(5))
        spark.write(entry(6), entry(5))
        spark.store.close()
        spark.store.open()
        spark.write(entry(7))
        assert spark.since(6) == [5, 7]
        assert spark.behind(spark.store.since(START)) == [6, 5, 7]
