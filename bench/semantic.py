"""The search by meaning: what it finds, how fast, and what the server's loop notices of it."""

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import quantiles

from bench.machine import describe
from bench.table import markdown
from culture.config.skills import Embeddings
from culture.skills.history.entry import Entry
from culture.skills.history.semantic import Semantic
from culture.skills.history.sqlite import SQLiteStore
from culture.skills.history.store import Store, View
from culture.skills.history.words import query
from tests.skills.history.semantic.paraphrases import channel, questions

PLACE = "#bench"
START = 1_750_000_000_000_000
FIRST = 5
PATIENCE = 3600.0
TICK = 0.001

Row = tuple[str, str]


def _message(number: int, text: str) -> Entry:
    at = START + number * 1_000_000
    return Entry(PLACE, "bench", "e", number, at, "PRIVMSG", "a!a@a", None, "", text, PLACE)


@contextmanager
def _store(folder: Path, texts: Sequence[str]) -> Iterator[Store]:
    store = SQLiteStore(folder / "history.db")
    store.open()
    try:
        for start in range(0, len(texts), 1_000):
            store.write([_message(start + n, text) for n, text in enumerate(texts[start : start + 1_000])])
        yield store
    finally:
        store.close()


@contextmanager
def _running(store: Store, folder: Path) -> Iterator[Semantic]:
    semantic = Semantic(store, folder, Embeddings())
    semantic.start()
    try:
        yield semantic
    finally:
        semantic.stop()


def _recall() -> list[Row]:
    """Of the questions, those whose message is among the first hits."""
    said, asked = channel(), questions()
    with tempfile.TemporaryDirectory() as name, _store(Path(name), said) as store:
        with _running(store, Path(name)) as semantic:
            semantic.caught_up(PATIENCE)
            by_meaning = _found(lambda text: semantic.search(View(PLACE), text, FIRST, 10))
        by_words = _found(lambda text: store.search(View(PLACE), query(text), FIRST, 10))
    where = f"of {len(asked)} questions, in the first {FIRST} of {len(said)} messages"
    return [(f"SEMANTIC finds, {where}", str(by_meaning)), (f"SEARCH finds, {where}", str(by_words))]


def _found(ask: Callable[[str], Sequence[tuple[int, Entry]]]) -> int:
    return sum(each.about in [entry.text for _, entry in ask(each.ask)] for each in questions())


async def _lateness(until: Callable[[], bool]) -> list[float]:
    """How late a loop is that wants to run every millisecond."""
    late = []
    while not until():
        due = time.perf_counter() + TICK
        await asyncio.sleep(TICK)
        late.append((time.perf_counter() - due) * 1_000)
    return late


async def _while_loading(semantic: Semantic) -> list[float]:
    """The same until the first question is answered."""
    answer = asyncio.ensure_future(asyncio.to_thread(semantic.search, View(PLACE), "anything", FIRST, PATIENCE))
    late = await _lateness(answer.done)
    await answer
    return late


def _speed(number: int) -> list[Row]:
    said = channel()
    texts = [f"{said[n % len(said)]} {n}" for n in range(number)]
    with tempfile.TemporaryDirectory() as name, _store(Path(name), texts) as store:
        end = time.monotonic() + 5
        idle = asyncio.run(_lateness(lambda: time.monotonic() > end))
        with _running(store, Path(name)) as semantic:
            begun, worked = time.monotonic(), time.process_time()
            loading = asyncio.run(_while_loading(semantic))
            busy = asyncio.run(_lateness(lambda: semantic.caught_up(0)))
            took, worked = time.monotonic() - begun, time.process_time() - worked
        size = (Path(name) / "vectors.db").stat().st_size
        with _running(store, Path(name)) as semantic:
            begun = time.monotonic()
            semantic.caught_up(PATIENCE)
            again = time.monotonic() - begun
            begun = time.monotonic()
            semantic.search(View(PLACE), "anything", FIRST, PATIENCE)
            first = (time.monotonic() - begun) * 1_000
            times = _times(semantic)
    return [
        (f"catching up with {number:,} messages", f"{took:.0f} s, {number / took:,.0f} messages/s"),
        ("processor time of it, with the waiting loop's", f"{worked:.0f} s"),
        ("a restart with nothing to do", f"{again:.1f} s"),
        ("bytes per message on disk", f"{size / number:.0f}"),
        ("first question (vectors are read)", f"{first:.0f} ms"),
        ("further questions, p50 / p99", _middle_and_end(times)),
        ("lateness of an idle loop, p50 / p99 / worst", f"{_middle_and_end(idle)} / {max(idle):.1f} ms"),
        ("the same while the model is loaded", f"{_middle_and_end(loading)} / {max(loading):.1f} ms"),
        ("the same while catching up", f"{_middle_and_end(busy)} / {max(busy):.1f} ms"),
    ]


def _times(semantic: Semantic) -> list[float]:
    times = []
    for each in questions() * 5:
        begun = time.perf_counter()
        semantic.search(View(PLACE), each.ask, FIRST, PATIENCE)
        times.append((time.perf_counter() - begun) * 1_000)
    return times


def _middle_and_end(values: Sequence[float]) -> str:
    cuts = quantiles(values, n=100, method="inclusive")
    return f"{cuts[49]:.1f} / {cuts[98]:.1f} ms"


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, and write a table."""
    parser = argparse.ArgumentParser(prog="python -m bench.semantic", description=__doc__)
    parser.add_argument("--messages", type=int, default=200_000, help="default 200,000")
    arguments = parser.parse_args(argv)
    print(markdown([("what", "figure"), *_recall(), *_speed(arguments.messages)]))
    print(describe())
    return 0


if __name__ == "__main__":
    sys.exit(main())
