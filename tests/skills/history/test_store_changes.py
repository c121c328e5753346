"""What every store does with what was there: taken back, moved, removed, counted, looked through."""

import pytest

from culture.skills.history.entry import Sort
from culture.skills.history.store import LATEST, Gap, Stats, Store, View
from culture.skills.history.words import query
from tests.skills.history.entries import PLACE, SECOND, START, ask, entry, event, numbers, private, redaction, texts

ADA, BEN = ("ada", "ada"), ("ben", "ben")


def found(store: Store, text: str, place: str = PLACE) -> list[int]:
    return numbers(store.search(View(place), query(text), 100, 5.0))


class TestRedaction:
    """Nothing is left of a message that was taken back, but its id."""

    def gone(self, store: Store) -> None:
        assert numbers(ask(store)) == [1, 3]
        assert found(store, "secret") == []
        assert all("secret" not in repr(each) for each in store.everything())
        assert "spark.e1.2" in [each.entry.msgid for each in store.everything() if each.entry.sort == Sort.REDACTED]
        assert list(store.verify()) == []

    def test_after_the_message(self, store: Store) -> None:
        store.write([entry(1), entry(2, "a secret", data='{"tags":{"x":"secret"}}'), entry(3)])
        assert found(store, "secret") == [2]
        position = store.position(PLACE, "spark.e1.2")
        store.write([redaction(4, "spark.e1.2")])
        self.gone(store)
        assert store.position(PLACE, "spark.e1.2") == position
        assert numbers(ask(store, View(PLACE, events=True))) == [1, 3, 4]
        assert store.get(View(PLACE), [position or 0]) == []

    def test_in_the_same_batch(self, store: Store) -> None:
        store.write([entry(1), entry(2, "a secret"), redaction(4, "spark.e1.2"), entry(3)])
        self.gone(store)

    def test_before_the_message(self, store: Store) -> None:
        store.write([entry(1), redaction(4, "spark.e1.2")])
        store.write([entry(2, "a secret"), entry(3)])
        self.gone(store)

    def test_before_the_message_in_the_same_batch(self, store: Store) -> None:
        store.write([redaction(4, "spark.e1.2"), entry(2, "a secret"), entry(1), entry(3)])
        self.gone(store)

    def test_it_does_not_come_back(self, store: Store) -> None:
        store.write([entry(1), entry(2, "a secret"), entry(3), redaction(4, "spark.e1.2")])
        store.write([entry(2, "a secret"), entry(2, "a secret", at=START + 90 * SECOND), redaction(4, "spark.e1.2")])
        store.close()
        store.open()
        store.write([entry(2, "a secret")])
        self.gone(store)

    def test_of_a_private_message(self, store: Store) -> None:
        secret = private(1, "a secret", ADA, BEN)
        store.write([secret, redaction(2, secret.msgid, place=secret.place, target="ben")])
        assert ask(store, secret.place) == []
        assert found(store, "secret", secret.place) == []
        assert store.talks("a:ada", 0, [], 0, LATEST) == []

    def test_of_a_private_message_by_somebody_who_has_logged_in_since(self, store: Store) -> None:
        secret = private(1, "a secret", (None, "ada"), BEN)
        other = private(2, "another", (None, "ada"), BEN)
        store.write([secret, other, entry(3, place="#other")])
        place = private(4, "", ADA, BEN).place
        store.write([redaction(4, secret.msgid, place=place, target="ben"), redaction(5, "spark.e1.3", place=place)])
        assert texts(ask(store, secret.place)) == ["another"]
        assert numbers(ask(store, "#other")) == [3]
        assert list(store.verify()) == []

    def test_elsewhere_takes_nothing_back(self, store: Store) -> None:
        store.write([entry(1), redaction(2, "spark.e1.1", place="#other"), redaction(3, "nonsense")])
        assert numbers(ask(store)) == [1]

    def test_one_known_only_by_its_redaction_can_be_paged_from(self, store: Store) -> None:
        store.write([redaction(4, "spark.e1.2"), entry(5)])
        position = store.position(PLACE, "spark.e1.2")
        assert position is not None
        assert numbers(ask(store, after=position)) == [5]


class TestMove:
    """A channel gets another name."""

    def test_its_history_goes_with_it(self, store: Store) -> None:
        store.write([entry(1, "apples"), event(2)])
        position = store.position(PLACE, "spark.e1.1")
        store.move(PLACE, "#new", "#New")
        store.write([entry(3, "pears", place="#new"), entry(4, "plums")])
        assert texts(ask(store, "#new")) == ["apples", "pears"]
        assert numbers(ask(store, View("#new", events=True))) == [1, 2, 3]
        assert store.position("#new", "spark.e1.1") == position
        assert found(store, "apples", "#new") == [1]
        assert texts(ask(store)) == ["plums"]
        assert [talk.name for talk in store.talks("", 0, [View("#new")], 0, LATEST)] == ["#New"]
        assert [each.name for each in store.stats()] == ["#New", PLACE]
        assert list(store.verify()) == []

    def test_the_old_name_has_none(self, store: Store) -> None:
        store.write([entry(1)])
        store.move(PLACE, "#new", "#New")
        assert ask(store) == []
        assert not store.exists(PLACE)

    def test_onto_a_name_that_has_history(self, store: Store) -> None:
        store.write([entry(1, "apples"), entry(2, "pears", place="#new"), entry(3, "plums"), event(4)])
        store.write([event(5, "QUIT"), event(5, "QUIT", place="#new"), redaction(6, "spark.e1.9")])
        store.move(PLACE, "#new", "#New")
        assert texts(ask(store, "#new")) == ["apples", "pears", "plums"]
        assert numbers(ask(store, View("#new", events=True))) == [1, 2, 3, 4, 5, 6]
        assert found(store, "plums", "#new") == [3]
        assert found(store, "pears", "#new") == [2]
        assert ask(store, View(PLACE, events=True)) == []
        assert found(store, "plums") == []
        assert not store.exists(PLACE)
        assert [each.name for each in store.stats()] == ["#New"]
        store.write([entry(9, "taken back", place="#new"), entry(1, "apples", place="#new")])
        assert texts(ask(store, "#new")) == ["apples", "pears", "plums"]
        assert list(store.verify()) == []

    def test_there_and_back(self, store: Store) -> None:
        store.write([entry(1, "apples")])
        store.move(PLACE, "#new", "#new")
        store.write([entry(2, "pears")])
        store.move("#new", PLACE, PLACE)
        assert texts(ask(store)) == ["apples", "pears"]
        assert found(store, "apples") == [1]

    def test_only_the_spelling(self, store: Store) -> None:
        store.write([entry(1)])
        store.move(PLACE, PLACE, "#GENERAL")
        assert numbers(ask(store)) == [1]
        assert [each.name for each in store.stats()] == ["#GENERAL"]

    def test_of_what_has_no_history(self, store: Store) -> None:
        store.write([entry(1)])
        store.move("#nowhere", PLACE, PLACE)
        store.move("#nowhere", "#new", "#new")
        assert numbers(ask(store)) == [1]
        assert not store.exists("#new")


def test_what_was_kept_as_closed_is_opened_but_for_what_was_said_to_a_rank(store: Store) -> None:
    store.write([entry(1, closed=True), entry(2, closed=True), entry(3, closed=True, status="@"), entry(4)])
    store.write([entry(1, place="#other", closed=True)])
    store.reopen([(PLACE, "spark.e1.1"), (PLACE, "spark.e1.3"), (PLACE, "spark.e1.9"), ("#none", "spark.e1.2")])
    store.reopen([(PLACE, "nonsense")])
    assert numbers(ask(store, View(PLACE, ("", "@")))) == [1, 4]
    assert ask(store, "#other") == []


class TestPrune:
    """What is old is removed."""

    def test_from_one_channel(self, store: Store) -> None:
        store.write([entry(seq, f"word{seq}") for seq in range(10)])
        store.write([event(3, "QUIT", origin="thor"), entry(3, place="#other"), private(3, "x", ADA, BEN)])
        assert store.prune(PLACE, START + 4 * SECOND) == 5
        assert numbers(ask(store, View(PLACE, events=True))) == [4, 5, 6, 7, 8, 9]
        assert found(store, "word3") == []
        assert found(store, "word4") == [4]
        assert numbers(ask(store, "#other")) == [3]
        assert numbers(ask(store, "a:ada a:ben")) == [3]
        assert list(store.verify()) == []
        assert store.prune(PLACE, START + 4 * SECOND) == 0

    def test_from_all_private_conversations(self, store: Store) -> None:
        store.write([private(1, "old", ADA, BEN), private(2, "older", BEN, (None, "cyd")), private(9, "new", BEN, ADA)])
        store.write([entry(1)])
        assert store.prune(None, START + 5 * SECOND) == 2
        assert texts(ask(store, "a:ada a:ben")) == ["new"]
        assert store.talks("n:cyd", 0, [], 0, LATEST) == []
        assert numbers(ask(store)) == [1]

    def test_from_where_nothing_is(self, store: Store) -> None:
        assert store.prune("#nowhere", LATEST) == 0
        assert store.prune(None, LATEST) == 0

    def test_more_than_is_removed_at_once(self, store: Store) -> None:
        for start in range(0, 5_000, 500):
            store.write([entry(seq, place="#other" if seq % 2 else PLACE) for seq in range(start, start + 500)])
        assert store.prune(PLACE, START + 4_900 * SECOND) == 2_450
        assert numbers(ask(store)) == [*range(4_900, 5_000, 2)]
        assert len(ask(store, "#other", limit=5_000)) == 2_500
        assert list(store.verify()) == []

    def test_everything_and_then_more(self, store: Store) -> None:
        store.write([entry(1, "apples"), entry(2, at=START + SECOND)])
        assert store.prune(PLACE, LATEST) == 2
        store.write([entry(3, "pears", at=START + SECOND), entry(1, "apples")])
        assert numbers(ask(store)) == [3, 1]
        assert found(store, "apples") == [1]
        assert list(store.verify()) == []


class TestCutoff:
    """What is too much is older than a time."""

    def test_the_newest_remain(self, store: Store) -> None:
        store.write([entry(seq, "x" * 10) for seq in range(1, 11)] + [entry(11, "y" * 500, place="#other")])
        assert store.cutoff(PLACE, 100) is None
        assert store.cutoff(PLACE, 1_000) is None
        cutoff = store.cutoff(PLACE, 35)
        assert cutoff is not None
        store.prune(PLACE, cutoff)
        assert numbers(ask(store)) == [8, 9, 10]
        assert store.cutoff(PLACE, 35) is None

    def test_bytes_are_counted_of_texts_and_data(self, store: Store) -> None:
        store.write([entry(1, "ää"), entry(2, "x", data='{"a":1}')])
        assert sum(each.bytes for each in store.stats()) == 12
        assert store.cutoff(PLACE, 12) is None
        assert store.cutoff(PLACE, 11) == START + SECOND + 1
        assert store.cutoff(PLACE, 7) == START + 2 * SECOND + 1

    def test_those_of_one_microsecond_go_together(self, store: Store) -> None:
        store.write([entry(seq, "x" * 10, at=START) for seq in range(5)] + [entry(9, "x" * 10)])
        cutoff = store.cutoff(PLACE, 30)
        assert cutoff == START + 1
        assert store.prune(PLACE, cutoff) == 5
        assert numbers(ask(store)) == [9]

    def test_of_all_private_conversations(self, store: Store) -> None:
        store.write([private(1, "x" * 10, ADA, BEN), private(2, "x" * 10, BEN, (None, "cyd")), entry(3, "x" * 100)])
        assert store.cutoff(None, 20) is None
        assert store.cutoff(None, 19) == START + SECOND + 1

    def test_of_what_has_no_history(self, store: Store) -> None:
        assert store.cutoff("#nowhere", 0) is None
        assert store.cutoff(None, 0) is None


def test_how_much_there_is(store: Store) -> None:
    store.write([entry(1, "ä"), event(2), entry(3, "xyz", data="{}"), entry(4, "12345", place="#b", target="#B")])
    store.write([private(5, "hush", ADA, BEN), private(6, "hush", BEN, (None, "cyd"))])
    assert store.stats() == [
        Stats("#B", 1, 0, 5, START + 4 * SECOND, START + 4 * SECOND),
        Stats(PLACE, 2, 1, 7, START + SECOND, START + 3 * SECOND),
        Stats("*", 2, 0, 8, START + 5 * SECOND, START + 6 * SECOND),
    ]


def test_everything_in_order(store: Store) -> None:
    store.write([entry(3), private(1, "hush", ADA, BEN), event(2), entry(4, place="#other")])
    store.write([redaction(5, "spark.e1.3")])
    everything = list(store.everything())
    assert numbers(everything) == [1, 2, 3, 4, 5]
    assert [each.entry.sort for each in everything] == [Sort.MESSAGE, Sort.EVENT, Sort.REDACTED, Sort.MESSAGE, 1]
    assert numbers(list(store.everything(PLACE))) == [2, 3, 5]
    assert numbers(list(store.everything("a:ada a:ben"))) == [1]
    assert list(store.everything("#nowhere")) == []


def test_everything_is_what_there_was_when_it_was_asked_for(store: Store) -> None:
    store.write([entry(seq) for seq in range(100)])
    reading = store.everything()
    first = next(reading)
    store.write([entry(500)])
    store.prune(PLACE, LATEST)
    assert numbers([first, *reading]) == [*range(100)]
    assert list(store.everything()) == []


@pytest.mark.requirement("D06")
def test_messages_that_could_not_be_kept_are_noted(store: Store) -> None:
    assert store.gaps() == []
    store.note_gap(START + 5, START + 9, 3)
    store.note_gap(START, START + 2, 1_000)
    store.close()
    store.open()
    assert store.gaps() == [Gap(START, START + 2, 1_000), Gap(START + 5, START + 9, 3)]
    assert list(store.verify()) == []


def test_a_whole_store_has_no_problems(store: Store) -> None:
    assert list(store.verify()) == []
    store.write([entry(1, "C++ 日本語 😀"), entry(2, "!!!"), event(3), private(4, "hush", ADA, BEN), entry(5, "")])
    store.write([redaction(6, "spark.e1.1"), redaction(7, "spark.e1.99"), entry(0, "late")])
    store.move(PLACE, "#new", "#new")
    store.prune("#new", START + 2 * SECOND)
    assert list(store.verify()) == []
