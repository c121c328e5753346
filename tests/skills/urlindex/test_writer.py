"""What waits to be written: in order, bounded, and through the troubles of a disk."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from culture.skills.urlindex import store as writing
from culture.skills.urlindex.facts import OPEN, MessageWithLinks, RedactedMessage
from culture.skills.urlindex.store import LinkReader, UrlIndexStore, UrlIndexWriter
from tests.support.waiting import PATIENCE


class Ear:
    """Hears what operators are told, and waits for it."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.errors: list[BaseException] = []
        self._news = asyncio.Event()

    def tell(self, text: str) -> None:
        self.told.append(text)
        self._news.set()

    def fail(self, error: BaseException) -> None:
        self.errors.append(error)
        self._news.set()

    async def until(self, is_so: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not is_so():
                self._news.clear()
                await self._news.wait()


def heard(number: int) -> MessageWithLinks:
    return MessageWithLinks("#a", OPEN, "spark-ori", 1.0, f"m{number}", f"https://a.b/{number}")


def on_disk(path: Path) -> set[str]:
    return {link.msgid for link in LinkReader(path, PATIENCE).recent("#a", None, 100_000).links}


@asynccontextmanager
async def writer(path: Path, ear: Ear) -> AsyncIterator[tuple[UrlIndexWriter, UrlIndexStore]]:
    store = UrlIndexStore(path, 100_000)
    made = UrlIndexWriter(lambda: store, ear.tell, ear.fail, again=0.01)
    made.start()
    yield made, store
    await made.stop()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "links.db"


async def test_what_was_added_is_on_disk_once_it_is_settled(path: Path) -> None:
    ear = Ear()
    async with writer(path, ear) as (made, _):
        for number in range(1200):
            made.add(heard(number))
        made.add(RedactedMessage("m7"))
        await made.settled(PATIENCE)
        assert on_disk(path) == {f"m{number}" for number in range(1200) if number != 7}
        await made.settled(PATIENCE)
    assert (ear.told, ear.errors) == ([], [])


async def test_what_waits_at_the_end_is_written(path: Path) -> None:
    async with writer(path, Ear()) as (made, _):
        made.add(heard(1))
    assert on_disk(path) == {"m1"}


async def test_a_locked_file_is_told_once_and_nothing_is_lost(path: Path) -> None:
    ear = Ear()
    async with writer(path, ear) as (made, store):
        store._file.execute("PRAGMA busy_timeout=1")
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        for number in range(3):
            made.add(heard(number))
            await made.settled(0.05)
        await ear.until(lambda: bool(ear.told))
        assert on_disk(path) == set()
        other.execute("ROLLBACK")
        other.close()
        await made.settled(PATIENCE)
        assert on_disk(path) == {"m0", "m1", "m2"}
    assert ["cannot be written" in text for text in ear.told] == [True, False]
    assert "none was lost" in ear.told[1]
    assert ear.errors == []


async def test_a_full_disk_is_told_once_and_its_end_too(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What came while too many waited is counted."""
    monkeypatch.setattr(writing, "MOST_WAITING", 10)
    ear = Ear()
    async with writer(path, ear) as (made, store):
        [pages] = store._file.execute("PRAGMA page_count").fetchone()
        store._file.execute(f"PRAGMA max_page_count={pages}")
        made.add(MessageWithLinks("#a", OPEN, "spark-ori", 1.0, "big", "https://a.b/" + "x" * 1900 + " y" * 300))
        for number in range(50):
            made.add(heard(number))
        made.add(RedactedMessage("m0"))
        await ear.until(lambda: bool(ear.told))
        await made.settled(0.05)
        assert "full" in ear.told[0]
        assert len(ear.told) == 1
        store._file.execute("PRAGMA max_page_count=1000000")
        await made.settled(PATIENCE)
        assert on_disk(path) == {"big", *(f"m{number}" for number in range(1, 9))}
    assert len(ear.told) == 2
    assert "too many waited: 41" in ear.told[1]


async def test_a_lock_that_stays_does_not_hold_up_the_end(path: Path) -> None:
    ear = Ear()
    other = sqlite3.connect(path, isolation_level=None)
    async with asyncio.timeout(PATIENCE), writer(path, ear) as (made, store):
        store._file.execute("PRAGMA busy_timeout=1")
        other.execute("BEGIN IMMEDIATE")
        made.add(heard(1))
        await ear.until(lambda: bool(ear.told))
    other.close()
    assert "could not be written: 1" in ear.told[-1]
    assert ear.errors == []


async def test_a_broken_file_is_a_failure(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def malformed(_: object) -> None:
        raise sqlite3.DatabaseError("database disk image is malformed")

    ear = Ear()
    async with writer(path, ear) as (made, store):
        monkeypatch.setattr(store, "write", malformed)
        made.add(heard(1))
        await ear.until(lambda: bool(ear.errors))
    assert isinstance(ear.errors[0], sqlite3.DatabaseError)
