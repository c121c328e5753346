"""The history's store filled with a million messages: how long each question takes then."""

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from statistics import quantiles

from bench.machine import describe
from bench.speech import CHANNELS, COMMON, QUIET, RARE, SPEAKERS, speech
from bench.table import markdown, number
from culture.config.skills import HistoryConfig
from culture.skills.history.entry import party
from culture.skills.history.store import LATEST, Store, TooSlow, View, position_at, time_of
from culture.skills.history.stores import store_of
from culture.skills.history.words import query

BATCH = 500
PAGE = 50
SECONDS = 1.0
ROWS = 1_000
AIM, AIM_OF_SEARCH = 5.0, 20.0


@dataclass(frozen=True, slots=True)
class Figures:
    """How long a question took, in milliseconds."""

    asked: int
    p50: float
    p99: float
    longest: float
    given_up: int


@dataclass(frozen=True, slots=True)
class Known:
    """A message that the store has."""

    place: str
    msgid: str
    position: int


Ask = Callable[[Store, Known], object]


def recent(store: Store, known: Known) -> object:
    """The last page."""
    return store.page(View(known.place), None, None, PAGE, newest=True)


def since(store: Store, known: Known) -> object:
    """A hundred messages behind an id."""
    return store.page(View(known.place), store.position(known.place, known.msgid), None, 100, newest=False)


def before(store: Store, known: Known) -> object:
    """The page before a message."""
    return store.page(View(known.place, events=True), None, known.position, PAGE, newest=True)


def after(store: Store, known: Known) -> object:
    """The page behind a message."""
    return store.page(View(known.place, events=True), known.position, None, PAGE, newest=False)


def around(store: Store, known: Known) -> object:
    """Half a page on either side of an id."""
    at = store.position(known.place, known.msgid) or 0
    view = View(known.place)
    return store.page(view, None, at, PAGE // 2, True), store.page(view, at - 1, None, PAGE // 2, False)


def by_time(ask: Ask) -> Ask:
    """The same by a time."""
    return lambda store, known: ask(store, replace(known, position=position_at(time_of(known.position))))


def searching(text: str, place: str | None = None) -> Ask:
    """A search, in the channel of the message or another."""
    asked = query(text)
    return lambda store, known: store.search(View(place or known.place), asked, ROWS, SECONDS)


def talks(store: Store, known: Known) -> object:
    """Everything that somebody may read, by its last message."""
    speaker = SPEAKERS[known.position % len(SPEAKERS)]
    return store.talks(party(speaker, speaker), 0, [View(channel) for channel in CHANNELS], 0, LATEST)


def missed(store: Store, known: Known) -> object:
    """What came to all channels behind an id."""
    return store.missed([View(channel) for channel in CHANNELS], store.arrivals(known.msgid)[known.place], PAGE)


QUESTIONS: dict[str, Ask] = {
    "recent": recent,
    "since": since,
    "before, by position": before,
    "after, by position": after,
    "around, by id": around,
    "before, by time": by_time(before),
    "after, by time": by_time(after),
    "talks": talks,
    "missed, by id": missed,
    "search: a rare word": searching(RARE),
    "search: the commonest word": searching(COMMON),
    "search: two words": searching("because not"),
    "search: eight words": searching("the a to of and is it in"),
    "search: punctuation": searching("C++"),
    "search: unspaced": searching("日本"),
    "search: emoji": searching("👍"),
    "search: nothing found": searching("nowhere"),
    "search: common, and one not found": searching("the nowhere"),
    "search: common, to a letter not found": searching("the!"),
    "search: common, in a quiet channel": searching(COMMON, QUIET),
    "search: punctuation alone": searching("->"),
}
"""What is asked, by name."""


def fill(store: Store, count: int) -> tuple[float, list[Known]]:
    """Write so many; seconds it took, and some that are there now."""
    entries, spent = speech(count), 0.0
    some: list[tuple[str, str]] = []
    while batch := list(islice(entries, BATCH)):
        begun = time.perf_counter()
        store.write(batch)
        spent += time.perf_counter() - begun
        some += [(entry.place, entry.msgid) for entry in batch[::50] if entry.place[0] == "#"]
    dice = random.Random(3)
    return spent, [
        Known(place, msgid, store.position(place, msgid) or 0)
        for place, msgid in dice.sample(some, min(len(some), 1_000))
    ]


def measure(store: Store, ask: Ask, known: Sequence[Known], most: float) -> Figures:
    """Ask about each, for so many seconds at most."""
    took: list[float] = []
    given_up = 0
    end = time.perf_counter() + most
    for each in known:
        begun = time.perf_counter()
        try:
            ask(store, each)
        except TooSlow:
            given_up += 1
        now = time.perf_counter()
        took.append((now - begun) * 1000)
        if now > end and len(took) > 1:
            break
    cuts = quantiles(took, n=100, method="inclusive")
    return Figures(len(took), cuts[49], cuts[98], max(took), given_up)


@contextmanager
def opened(where: str) -> Iterator[Store]:
    """The store, with nothing in it."""
    with tempfile.TemporaryDirectory(prefix="bench-store-") as folder:
        store = store_of(HistoryConfig(store=where), Path(folder), now=lambda: 0.0)  # what is written is not late
        store.open()
        try:
            if store.stats():
                raise SystemExit(f"{where} is not empty")
            yield store
        finally:
            store.close()


def _table(figures: dict[str, Figures]) -> str:
    rows = [["question", "p50 ms", "p99 ms", "longest ms", "asked", "given up", "aim"]]
    for name, each in figures.items():
        aim = AIM_OF_SEARCH if name.startswith("search") else AIM
        verdict = f"< {aim:.0f} ms: {'met' if each.p99 < aim else 'missed'}"
        times = [number(each.p50), number(each.p99), number(each.longest)]
        rows.append([name, *times, str(each.asked), str(each.given_up or ""), verdict])
    return markdown(rows)


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.store", description=__doc__)
    parser.add_argument("--messages", type=int, default=1_000_000, metavar="N", help="default %(default)s")
    parser.add_argument("--store", default="sqlite", metavar="sqlite|postgresql://…", help="default %(default)s")
    parser.add_argument("--seconds", type=float, default=3.0, help="for each question, at most (default %(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Fill, ask, and say how long it took."""
    options = _arguments(argv)
    with opened(options.store) as store:
        spent, known = fill(store, options.messages)
        print(f"{options.messages:,} written in {spent:.1f} s, {options.messages / spent:,.0f}/s\n")
        figures = {name: measure(store, ask, known, options.seconds) for name, ask in QUESTIONS.items()}
    print(_table(figures))
    if options.json:
        record = {
            "machine": describe(),
            "store": options.store.partition(":")[0],
            "messages": options.messages,
            "written_per_second": options.messages / spent,
            "questions": {name: asdict(each) for name, each in figures.items()},
        }
        options.json.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
