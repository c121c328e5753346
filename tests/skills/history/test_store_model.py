"""A store beside a list in memory: whatever is written in whatever order, both answer alike."""

from collections.abc import Sequence
from itertools import count

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from culture.skills.history.entry import Entry, Sort
from culture.skills.history.store import Kept, Store, View
from culture.skills.history.words import plain, query
from tests.skills.history.entries import START, entry, event, redaction

WORDS = ("red", "green", "c++", "日本", "it's", "😀")
EXAMPLES = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
_fresh = count()


class Model:
    """What a store is: entries by id, in the order of time and then of coming."""

    def __init__(self) -> None:
        self._entries: dict[int, Entry] = {}
        self._came: dict[int, int] = {}

    def write(self, batch: Sequence[Entry]) -> None:
        for each in batch:
            if each.verb == "REDACT":
                seq = int(each.redacts.rpartition(".")[2])
                known = self._entries.get(seq, each._replace(seq=seq))
                self._keep(known)
                self._entries[seq] = known.blank()
            self._keep(each)

    def _keep(self, each: Entry) -> None:
        if each.seq not in self._entries:
            self._entries[each.seq] = each
            self._came[each.seq] = len(self._came)

    def visible(self, view: View) -> list[Entry]:
        rows = sorted(self._entries.values(), key=lambda each: (each.at, self._came[each.seq]))
        return [each for each in rows if self._may_see(each, view)]

    def _may_see(self, each: Entry, view: View) -> bool:
        closed_since = float("inf") if view.closed_since is None else view.closed_since
        return (
            (each.sort == Sort.MESSAGE or (view.events and each.sort == Sort.EVENT))
            and each.status in view.ranks
            and each.at >= view.since
            and (not each.closed or each.at >= closed_since)
        )

    def search(self, view: View, word: str, limit: int) -> list[Entry]:
        rows = [each for each in self.visible(view) if each.sort == Sort.MESSAGE and word in each.text.split()]
        return rows[-limit:]


times = st.integers(0, 6).map(lambda number: START + number)
said = st.builds(
    lambda seq, at, words, status, closed: entry(seq, " ".join(words), at=at, status=status, closed=closed),
    st.integers(0, 12),
    times,
    st.lists(st.sampled_from(WORDS), max_size=3),
    st.sampled_from(("", "", "@")),
    st.booleans(),
)
happened = st.builds(lambda seq, at: event(seq, at=at), st.integers(13, 18), times)
taken_back = st.builds(
    lambda seq, at, of: redaction(seq, f"o.e.{of}", at=at), st.integers(19, 24), times, st.integers(0, 14)
)
batches = st.lists(st.lists(said | said | said | happened | taken_back, max_size=12), min_size=1, max_size=5)
views = st.builds(
    lambda ranks, closed_since, since, events: View("", ranks, closed_since, since, events),
    st.sampled_from((("",), ("", "@"))),
    st.none() | times,
    times | st.just(0),
    st.booleans(),
)


def placed(batch: Sequence[Entry], place: str) -> list[Entry]:
    """The same in a place of its own, with ids of its own, as every example has."""
    rows = [each._replace(place=place, target=place, origin=place, epoch="e") for each in batch]
    return [each._replace(data=each.data.replace("o.e.", f"{place}.e.")) for each in rows]


def entries(found: Sequence[Kept]) -> list[Entry]:
    return [each.entry for each in found]


@EXAMPLES
@given(batches, st.lists(views, min_size=1, max_size=3), st.integers(1, 8), st.data())
def test_a_store_and_a_list_answer_alike(
    store: Store, written: list[list[Entry]], asked: list[View], limit: int, data: st.DataObject
) -> None:
    place = f"#room{next(_fresh)}"
    model = Model()
    for batch in written:
        store.write(placed(batch, place))
        model.write(placed(batch, place))
    for view in (each._replace(place=place) for each in asked):
        expected = model.visible(view)
        everything = store.page(view, None, None, 100, newest=True)
        assert entries(everything) == expected
        assert entries(store.page(view, None, None, limit, newest=True)) == expected[-limit:]
        assert entries(store.page(view, None, None, limit, newest=False)) == expected[:limit]
        if everything:
            at = data.draw(st.integers(0, len(everything) - 1))
            here = everything[at].position
            assert entries(store.page(view, here, None, limit, newest=False)) == expected[at + 1 :][:limit]
            assert entries(store.page(view, None, here, limit, newest=True)) == expected[:at][-limit:]
            assert store.position(place, expected[at].msgid) == here
            assert entries(store.page(view, None, here + 1, 1, newest=True)) == [expected[at]]
        for word in WORDS:
            assert entries(store.search(view, query(word), limit, 10.0)) == model.search(view, word, limit)


@EXAMPLES
@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40), max_size=8),
    st.data(),
)
def test_every_word_of_a_message_finds_it(store: Store, said: list[str], data: st.DataObject) -> None:
    place = f"#room{next(_fresh)}"
    store.write([entry(seq, text, place=place, origin=place) for seq, text in enumerate(said)])
    for seq, text in enumerate(said):
        for word in plain(text).split():
            found = store.search(View(place), query(word), 100, 10.0)
            assert seq in [each.entry.seq for each in found] or not (query(word).terms or query(word).needles)
    unrelated = data.draw(st.text(max_size=20))
    assert isinstance(store.search(View(place), query(unrelated), 100, 10.0), list)
