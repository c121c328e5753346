"""What every store does with what is written: each entry once, in the order of time, shown to who may see it."""

import threading
from pathlib import Path

import pytest

from culture.skills.history.entry import Entry
from culture.skills.history.sqlite import SQLiteStore
from culture.skills.history.store import LATEST, TIES, Kept, Store, Talk, Unavailable, View, position_at, time_of
from tests.skills.history.entries import PLACE, SECOND, START, ask, entry, event, numbers, private, redaction, texts

ADA, BEN, CYD = ("ada", "ada"), ("ben", "ben"), (None, "Cyd")
ALWAYS = (0, LATEST)


def in_place(found: list[Kept]) -> list[tuple[str, int]]:
    return [(each.entry.place, each.entry.seq) for each in found]


@pytest.mark.requirement("D06")
def test_an_entry_is_read_as_it_was_written(store: Store) -> None:
    written = entry(
        1,
        "grüße\nline two",
        verb="NOTICE",
        source="ada!a@here",
        account=None,
        kind="agent",
        target="#General",
        status="@",
        closed=True,
        data='{"tags":{"+draft/reply":"x"}}',
    )
    store.write([written])
    (found,) = ask(store, View(PLACE, ranks=("", "@"), closed_since=0))
    assert found.entry == written
    assert time_of(found.position) == written.at
    assert list(store.everything()) == [found]


def test_nothing_is_written_and_nothing_is_there(store: Store) -> None:
    store.write([])
    assert ask(store) == []
    assert list(store.everything()) == []
    assert store.stats() == []
    assert not store.exists(PLACE)


def test_what_is_written_is_there_after_it_was_closed(store: Store) -> None:
    store.write([entry(1), entry(2)])
    store.close()
    store.open()
    store.write([entry(2), entry(3)])
    assert numbers(ask(store)) == [1, 2, 3]


def test_who_is_closed_is_not_available(store: Store) -> None:
    store.write([entry(1)])
    store.close()
    with pytest.raises(Unavailable):
        store.write([entry(2)])
    with pytest.raises(Unavailable):
        ask(store)
    store.close()
    store.open()
    assert numbers(ask(store)) == [1]


@pytest.mark.parametrize(
    ("after", "before", "limit", "newest", "expected"),
    [
        (None, None, 100, True, [1, 2, 3, 4, 5, 6, 7, 8, 9]),
        (None, None, 3, True, [7, 8, 9]),
        (None, None, 3, False, [1, 2, 3]),
        (4, None, 2, False, [5, 6]),
        (4, None, 2, True, [8, 9]),
        (None, 4, 2, True, [2, 3]),
        (None, 4, 2, False, [1, 2]),
        (2, 6, 100, False, [3, 4, 5]),
        (2, 6, 2, True, [4, 5]),
        (5, 6, 10, True, []),
        (9, None, 10, True, []),
        (None, None, 0, True, []),
        (None, None, 0, False, []),
    ],
)
def test_a_page_lies_between_two_positions(
    store: Store, after: int | None, before: int | None, limit: int, newest: bool, expected: list[int]
) -> None:
    store.write([entry(seq) for seq in range(1, 10)] + [entry(50, place="#other"), event(51)])
    at = {each.entry.seq: each.position for each in ask(store)}
    bounds = (None if after is None else at[after], None if before is None else at[before])
    assert numbers(store.page(View(PLACE), *bounds, limit, newest)) == expected


def test_a_page_between_two_times(store: Store) -> None:
    store.write([entry(seq) for seq in range(1, 6)])
    after, before = position_at(START + 2 * SECOND), position_at(START + 4 * SECOND)
    assert numbers(ask(store, after=after - 1, before=before)) == [2, 3]
    assert numbers(ask(store, after=position_at(LATEST * 3))) == []
    assert numbers(ask(store, before=position_at(-5))) == []


def test_other_places_are_not_seen(store: Store) -> None:
    store.write([entry(1), entry(2, place="#other")])
    assert numbers(ask(store, "#other")) == [2]
    assert ask(store, "#nowhere") == []


def test_those_of_one_microsecond_stay_in_the_order_they_came(store: Store) -> None:
    store.write([entry(seq, at=START) for seq in (3, 1, 2)])
    store.write([entry(seq, at=START) for seq in (5, 4)])
    store.write([entry(6, at=START + 1), entry(7, at=START)])
    found = ask(store)
    assert numbers(found) == [3, 1, 2, 5, 4, 7, 6]
    assert len({each.position for each in found}) == 7
    assert {time_of(each.position) for each in found[:6]} == {START}


@pytest.mark.parametrize("size", [3_000, 37])
def test_more_than_fit_into_one_microsecond(store: Store, size: int) -> None:
    entries = [entry(seq, at=START) for seq in range(3_000)]
    for start in range(0, len(entries), size):
        store.write(entries[start : start + size])
    store.write([entry(5_000, at=START + 1), entry(5_001, at=START - 1), entry(5_002, at=START)])
    found = ask(store, limit=4_000)
    assert len(entries) > 1 << TIES
    assert sorted(numbers(found)) == [*range(3_000), 5_000, 5_001, 5_002]
    assert numbers(found)[0] == 5_001
    assert numbers(found)[1:3_001] == [*range(3_000)]
    assert all(each.entry.at - START < 5 for each in found)


def test_a_late_entry_goes_where_it_belongs(store: Store) -> None:
    store.write([entry(1), entry(5), entry(9)])
    store.write([entry(3), entry(10), entry(7), entry(2), entry(11)])
    assert numbers(ask(store)) == [1, 2, 3, 5, 7, 9, 10, 11]
    store.write([entry(0), entry(4, at=START + 5 * SECOND)])
    assert numbers(ask(store)) == [0, 1, 2, 3, 5, 4, 7, 9, 10, 11]


def test_late_entries_of_one_microsecond_are_all_kept(store: Store) -> None:
    store.write([entry(9_000)])
    store.write([entry(seq, at=START) for seq in range(2_500)])
    assert numbers(ask(store, limit=3_000)) == [*range(2_500), 9_000]


def test_an_entry_written_again_is_there_once(store: Store) -> None:
    store.write([entry(1, "first"), entry(2), entry(1, "again")])
    store.write([entry(2), entry(3), entry(1, "and again"), entry(4), entry(3)])
    found = ask(store)
    assert numbers(found) == [1, 2, 3, 4]
    assert texts(found)[0] == "first"
    store.write([entry(1, "much later", at=START + 100 * SECOND)])
    assert texts(ask(store))[0] == "first"
    assert len(ask(store)) == 4


def test_it_is_said_of_a_message_that_another_has_its_id(store: Store) -> None:
    """As after an old file of ids was put back; what comes again, or was taken back, is no other message."""
    assert store.write([entry(1, "first"), entry(2, "second"), redaction(3, "spark.e1.2")]) == set()
    assert store.write([entry(1, "first"), entry(2, "second"), entry(4)]) == set()
    assert store.write([entry(5), entry(1, "other"), entry(1, "first", place="#new")]) == {"spark.e1.1"}
    assert texts(ask(store))[0] == "first"


def test_one_event_in_two_places_is_two_entries(store: Store) -> None:
    store.write([event(1, "QUIT"), event(1, "QUIT", place="#other")])
    assert numbers(ask(store, View(PLACE, events=True))) == [1]
    assert numbers(ask(store, View("#other", events=True))) == [1]


@pytest.mark.fault("D8")
def test_what_servers_said_in_the_same_microsecond_is_in_one_order_everywhere(store: Store, tmp_path: Path) -> None:
    """D8: whichever came first, and with how many others."""
    said = [entry(number, at=START, origin=origin) for number in (1, 2) for origin in ("spark", "thor", "odin")]
    for one in reversed(said[3:]):
        store.write([said[said.index(one) - 3]])
        store.write([one])
    other = SQLiteStore(tmp_path / "other.db")
    other.open()
    other.write([*said, entry(3, at=START - 1)])
    orders = [[each.entry.msgid for each in ask(each) if each.entry.at == START] for each in (store, other)]
    other.close()
    assert orders[0] == orders[1] and len(orders[0]) == 6
    assert all(orders[0].index(f"{origin}.e1.1") < orders[0].index(f"{origin}.e1.2") for origin in ("spark", "odin"))


def test_ids_differ_by_origin_and_epoch(store: Store) -> None:
    store.write([entry(1), entry(1, origin="thor"), entry(1, epoch="e2")])
    found = ask(store)
    assert [each.entry.msgid for each in found] == ["spark.e1.1", "spark.e2.1", "thor.e1.1"]
    assert [store.position(PLACE, each.entry.msgid) for each in found] == [each.position for each in found]


@pytest.mark.parametrize("at", [-1, -(10**30), LATEST, LATEST + 1, 253_402_300_799 * SECOND, 10**30])
def test_an_absurd_time_is_kept_at_the_end_of_time(store: Store, at: int) -> None:
    store.write([entry(1), entry(2, at=at), entry(3), entry(4, at=at)])
    assert numbers(ask(store)) == ([2, 4, 1, 3] if at < 0 else [1, 3, 2, 4])
    assert list(store.verify()) == []


def test_many_at_the_end_of_time(store: Store) -> None:
    store.write([entry(seq, at=10**20) for seq in range(1_500)])
    assert numbers(ask(store, limit=2_000)) == [*range(1_500)]


BAD = {"a lone surrogate": entry(2, "\ud800"), "no text": entry(2)._replace(text=None)}  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
def test_a_bad_entry_fails_its_batch_and_no_other(store: Store, bad: Entry) -> None:
    store.write([entry(1)])
    with pytest.raises(Exception) as raised:
        store.write([entry(3, place="#new"), bad, entry(4)])
    assert not isinstance(raised.value, Unavailable)
    assert not store.exists("#new")
    store.write([entry(3, place="#new"), entry(4)])
    assert numbers(ask(store)) == [1, 4]
    assert numbers(ask(store, "#new")) == [3]
    assert list(store.verify()) == []


class TestViews:
    """What a reader may see."""

    def test_events_are_for_who_asks_for_them(self, store: Store) -> None:
        store.write([event(1), entry(2), event(3, "TOPIC"), entry(4, verb="NOTICE"), event(5, "PART")])
        assert numbers(ask(store)) == [2, 4]
        assert numbers(ask(store, View(PLACE, events=True))) == [1, 2, 3, 4, 5]
        assert numbers(ask(store, View(PLACE, events=True), limit=2, newest=True)) == [4, 5]
        assert numbers(ask(store, View(PLACE, events=True), limit=3)) == [1, 2, 3]

    def test_a_message_for_a_rank_is_for_those_of_the_rank(self, store: Store) -> None:
        store.write([entry(1), entry(2, status="@"), entry(3, status="+"), entry(4)])
        assert numbers(ask(store)) == [1, 4]
        assert numbers(ask(store, View(PLACE, ranks=("", "+")))) == [1, 3, 4]
        assert numbers(ask(store, View(PLACE, ranks=("", "+", "@")))) == [1, 2, 3, 4]
        assert numbers(ask(store, View(PLACE, ranks=()))) == []

    def test_what_was_said_behind_closed_doors_is_for_who_was_there(self, store: Store) -> None:
        store.write([entry(1), entry(2, closed=True), event(3, closed=True), entry(4), entry(5, closed=True)])
        assert numbers(ask(store)) == [1, 4]
        assert numbers(ask(store, View(PLACE, closed_since=0))) == [1, 2, 4, 5]
        assert numbers(ask(store, View(PLACE, closed_since=START + 4 * SECOND))) == [1, 4, 5]
        assert numbers(ask(store, View(PLACE, closed_since=START + 5 * SECOND))) == [1, 4, 5]
        assert numbers(ask(store, View(PLACE, closed_since=START + 5 * SECOND + 1))) == [1, 4]
        assert numbers(ask(store, View(PLACE, closed_since=START + 3 * SECOND, events=True))) == [1, 3, 4, 5]

    def test_nothing_from_before_a_time(self, store: Store) -> None:
        store.write([entry(seq) for seq in range(5)])
        assert numbers(ask(store, View(PLACE, since=START + 3 * SECOND))) == [3, 4]
        assert numbers(ask(store, View(PLACE, since=START + 3 * SECOND), newest=True, limit=1)) == [4]
        first = ask(store)[0].position
        assert numbers(ask(store, View(PLACE, since=START + 3 * SECOND), after=first)) == [3, 4]
        assert numbers(ask(store, View(PLACE, since=LATEST * 2))) == []

    def test_a_page_is_full_though_much_may_not_be_seen(self, store: Store) -> None:
        store.write([entry(seq, closed=seq % 10 > 0, status="@" if seq % 20 else "") for seq in range(200)])
        assert numbers(ask(store, newest=True, limit=5)) == [100, 120, 140, 160, 180]

    def test_messages_are_got_by_position_as_far_as_they_may_be_seen(self, store: Store) -> None:
        store.write(
            [entry(1), entry(2, closed=True), entry(3, status="@"), event(4), entry(5, place="#other"), entry(6)]
        )
        at = {each.entry.seq: each.position for each in store.everything()}
        asked = [at[6], at[1], at[2], at[3], at[4], at[5], 12345, at[1] + 1]
        assert numbers(store.get(View(PLACE), asked)) == [6, 1]
        assert numbers(store.get(View(PLACE, ranks=("", "@"), closed_since=0), asked)) == [6, 1, 2, 3]
        assert numbers(store.get(View(PLACE, since=START + 2 * SECOND), asked)) == [6]
        assert store.get(View(PLACE), []) == []


def test_the_position_of_a_message_is_found_by_its_id(store: Store) -> None:
    store.write([entry(1), entry(2), event(3), entry(2, place="#other")])
    (found,) = [each for each in ask(store) if each.entry.seq == 2]
    assert store.position(PLACE, found.entry.msgid) == found.position
    assert store.position("#other", found.entry.msgid) not in (None, found.position)
    assert store.position(PLACE, "spark.e1.3") is not None
    for unknown in ("spark.e1.9", "spark.e2.1", "thor.e1.1", "", "1", "a.b", "spark.e1.01", "spark.e1." + "9" * 30):
        assert store.position(PLACE, unknown) is None
    assert store.position("#nowhere", found.entry.msgid) is None


def test_a_message_is_located_by_those_who_may_know_of_it(store: Store) -> None:
    """One that was taken back is, too."""
    store.write([entry(1), entry(2, closed=True), entry(3, status="@", closed=True), redaction(4, "spark.e1.2")])
    every = View(PLACE, ("", "+", "@"), 0)
    views = {
        "member": View(PLACE, closed_since=0),
        "later": every._replace(closed_since=START + 60 * SECOND),
        "operator": every,
        "since": every._replace(since=START + 2 * SECOND),
        "stranger": View(PLACE),
        "elsewhere": every._replace(place="#other"),
    }
    located = {who: [n for n in (1, 2, 3) if store.locate(view, f"spark.e1.{n}")] for who, view in views.items()}
    assert located == {
        "member": [1, 2],
        "later": [1],
        "operator": [1, 2, 3],
        "since": [2, 3],
        "stranger": [1],
        "elsewhere": [],
    }
    assert store.locate(every, "nonsense") is None


def test_messages_of_all_channels_follow_a_position(store: Store) -> None:
    store.write([entry(1), private(2, "hush", ADA, BEN), event(3), entry(4, place="#other"), entry(5), entry(6)])
    found = store.messages(0, 3)
    assert in_place(found) == [(PLACE, 1), ("#other", 4), (PLACE, 5)]
    assert in_place(store.messages(found[-1].position, 10)) == [(PLACE, 6)]
    assert store.messages(LATEST << TIES, 10) == []


def test_a_place_exists_once_something_was_kept_there(store: Store) -> None:
    store.write([entry(1)])
    assert store.exists(PLACE)
    assert not store.exists("#other")
    store.prune(PLACE, LATEST)
    assert store.exists(PLACE)


class TestTalks:
    """Conversations, by who takes part in them."""

    def test_a_party_has_its_own(self, store: Store) -> None:
        store.write([private(1, "a", ADA, BEN), private(2, "b", BEN, ADA), private(3, "c", CYD, ADA)])
        ben, cyd = Talk("ben", START + 2 * SECOND, "a:ada a:ben"), Talk("Cyd", START + 3 * SECOND, "a:ada n:cyd")
        assert store.talks("a:ada", 0, [], *ALWAYS) == [ben, cyd]
        assert store.talks("a:ben", 0, [], *ALWAYS) == [ben._replace(name="ada")]
        assert store.talks("n:cyd", 0, [], *ALWAYS) == [cyd._replace(name="ada")]
        assert store.talks("n:ada", 0, [], *ALWAYS) == []
        assert store.talks("", 0, [], *ALWAYS) == []

    def test_they_are_read_by_both(self, store: Store) -> None:
        store.write([private(1, "a", ADA, BEN), private(2, "b", BEN, ADA)])
        assert texts(ask(store, "a:ada a:ben")) == ["a", "b"]

    def test_the_other_has_the_nick_that_it_last_had(self, store: Store) -> None:
        store.write([private(1, "a", ADA, BEN), private(2, "b", ("ben", "ben_"), ADA)])
        assert [talk.name for talk in store.talks("a:ada", 0, [], *ALWAYS)] == ["ben_"]
        store.write([private(3, "c", ADA, ("ben", "Benno"))])
        assert [talk.name for talk in store.talks("a:ada", 0, [], *ALWAYS)] == ["Benno"]

    def test_somebody_talks_to_oneself(self, store: Store) -> None:
        store.write([private(1, "note", ADA, ADA)])
        assert store.talks("a:ada", 0, [], *ALWAYS) == [Talk("ada", START + SECOND, "a:ada a:ada")]

    def test_the_bounds_are_left_out(self, store: Store) -> None:
        store.write([private(1, "a", ADA, BEN), private(3, "c", CYD, ADA)])
        first, last = START + SECOND, START + 3 * SECOND
        assert [talk.name for talk in store.talks("a:ada", 0, [], first, last + 1)] == ["Cyd"]
        assert [talk.name for talk in store.talks("a:ada", 0, [], first - 1, last)] == ["ben"]
        assert store.talks("a:ada", 0, [], first, last) == []

    def test_only_the_last_message_counts(self, store: Store) -> None:
        store.write([private(1, "a", ADA, BEN), private(9, "b", BEN, ADA)])
        assert store.talks("a:ada", 0, [], 0, START + 5 * SECOND) == []

    def test_nothing_from_before_a_time(self, store: Store) -> None:
        store.write([private(1, "a", ADA, BEN), private(3, "c", CYD, ADA)])
        assert [talk.name for talk in store.talks("a:ada", START + 2 * SECOND, [], *ALWAYS)] == ["Cyd"]

    def test_channels_come_with_their_name_as_far_as_they_may_be_seen(self, store: Store) -> None:
        store.write([entry(1, target="#General"), entry(2, place="#other"), entry(5, place="#other", closed=True)])
        store.write([private(4, "a", ADA, BEN), event(7)])
        channels = [View(PLACE), View("#other"), View("#nowhere")]
        assert store.talks("a:ada", 0, channels, *ALWAYS) == [
            Talk("#General", START + SECOND, PLACE),
            Talk("#other", START + 2 * SECOND, "#other"),
            Talk("ben", START + 4 * SECOND, "a:ada a:ben"),
        ]
        assert store.talks("a:cyd", 0, channels[1:], *ALWAYS) == [Talk("#other", START + 2 * SECOND, "#other")]
        opened = View("#other", closed_since=0)
        assert store.talks("a:cyd", 0, [opened], *ALWAYS) == [Talk("#other", START + 5 * SECOND, "#other")]


def test_many_threads_read_while_one_writes(store: Store) -> None:
    wrong: list[object] = []

    def read() -> None:
        try:
            seen = 0
            while seen < 400:
                found = ask(store, limit=1_000)
                if numbers(found) != [*range(len(found))] or len(found) < seen:
                    wrong.append(numbers(found))
                    return
                seen = len(found)
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for start in range(0, 400, 20):
        store.write([entry(seq) for seq in range(start, start + 20)])
    for thread in threads:
        thread.join(30)
    assert not wrong
    assert not any(thread.is_alive() for thread in threads)
