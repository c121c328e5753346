"""The thread that writes, and what the loop does while it does: nothing is forgotten, nobody waits for ever."""

import asyncio
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from culture.config.model import Operator
from culture.config.skills import Embeddings, HistoryConfig
from culture.server.core.ids import MICROSECONDS
from culture.server.ircd import IRCd
from culture.skills.history import skill as parts
from culture.skills.history.archive import MOST_SEARCHES
from culture.skills.history.entry import Entry
from culture.skills.history.skill import History as Skill
from culture.skills.history.sqlite import SQLiteStore
from culture.skills.history.store import Damaged, Store, Unavailable
from culture.skills.history.writer import Move, Writer
from tests.skills.history.entries import entry, redaction
from tests.support.client import registered
from tests.support.servers import Serve, serving
from tests.support.waiting import PATIENCE

OPERATORS = (Operator(name="root", password="very secret"),)
CAPS = "message-tags agentirc.dev/receipts"


def skill_of(ircd: IRCd) -> Skill:
    found = ircd.parts.skills.get("history")
    assert isinstance(found, Skill)
    return found


class Ear:
    """Hears what the writer says, and waits for it."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.errors: list[BaseException] = []

    def tell(self, text: str) -> None:
        self.told.append(text)

    def fail(self, error: BaseException) -> None:
        self.errors.append(error)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "history.db"


def texts(path: Path) -> list[str]:
    store = SQLiteStore(path)
    store.open()
    found = [each.entry.text for each in store.everything()]
    store.close()
    return found


def test_who_follows_what_is_written_may_find_the_store_unavailable(path: Path) -> None:
    """It is told again; the writer goes on."""
    ear, tries = Ear(), 0
    writer = Writer(SQLiteStore(path), 100, lambda: None, ear.tell)
    writer.failed = ear.fail

    def follow(items: Sequence[object]) -> None:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise Unavailable("database is locked")

    writer.wrote = follow
    writer.start()
    writer.put(entry(1, "one"))
    writer.put(redaction(2, "spark.e1.1"))
    writer.stop(PATIENCE)
    assert ear.errors == []
    assert tries >= 3
    assert writer.written == 2


@pytest.mark.parametrize("when", ["at the start", "later"])
def test_a_damaged_file_ends_it_with_what_to_do(path: Path, monkeypatch: pytest.MonkeyPatch, when: str) -> None:
    """Once, and not for each message; nobody is to wait for it any more."""
    ear, settled = Ear(), threading.Event()
    store = SQLiteStore(path)
    if when == "at the start":
        path.write_bytes(b"something else entirely " * 100)
    else:
        monkeypatch.setattr(store, "write", broken)
    writer = Writer(store, 100, settled.set, ear.tell)
    writer.failed = ear.fail
    for number in range(10):
        writer.put(entry(number))
    writer.start()
    assert settled.wait(PATIENCE)
    assert writer.is_stuck
    writer.stop(PATIENCE)
    assert [type(error) for error in ear.errors] == [Damaged]
    assert ear.told == []
    assert writer.written == 0


@pytest.mark.requirement("D06")
def test_loss_of_messages_that_found_no_room_is_in_the_store(path: Path) -> None:
    """The disk was slow: what came meanwhile beyond the limit is counted and reported, once it can be."""
    ear, begun, gate = Ear(), threading.Event(), threading.Event()
    store = SQLiteStore(path)
    writer = Writer(store, 3, lambda: None, ear.tell)

    def wait() -> None:
        begun.set()
        gate.wait(PATIENCE)

    writer.before = wait
    before = time.time()
    writer.start()
    try:
        assert [writer.put(entry(number)) for number in range(5)] == [True, True, True, False, False]
        assert begun.wait(PATIENCE)
    finally:
        gate.set()
        writer.stop(PATIENCE)
    store.open()
    [gap] = store.gaps()
    store.close()
    assert gap.lost == 2 and before * MICROSECONDS - 1 <= gap.since <= gap.until <= time.time() * MICROSECONDS
    assert "lost to the history" in ear.told[0] and ear.told[1].startswith("2 messages were lost")
    assert len(ear.told) == 2 and len(texts(path)) == 3


def test_batch_with_one_refused_entry_is_written_in_its_order(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All but that one; the number of the one that is not stored is known."""
    ear, written = Ear(), list[str]()
    store = SQLiteStore(path)
    write = store.write

    def refuse(batch: Sequence[Entry]) -> set[str]:
        if any(each.text == "refused" for each in batch):
            raise ValueError("this cannot be stored")
        return write(batch)

    monkeypatch.setattr(store, "write", refuse)
    writer = Writer(store, 100, lambda: None, ear.tell)
    writer.wrote = lambda items: written.extend(each.text for each in items if isinstance(each, Entry))
    for number, text in enumerate(("one", "two", "refused", "four", "five"), 1):
        writer.put(entry(number, text))
    writer.start()
    writer.stop(PATIENCE)
    assert written == ["one", "two", "refused", "four", "five"]
    assert texts(path) == ["one", "two", "four", "five"]
    assert writer.unkept == {3} and writer.written == 5
    assert len(ear.told) == 1 and "spark.e1.3 cannot be kept" in ear.told[0]


def test_what_was_taken_before_a_channel_was_renamed_is_written_before(path: Path) -> None:
    """Else it would stay behind under the old name."""
    store = SQLiteStore(path)
    writer = Writer(store, 100, lambda: None, Ear().tell)
    for item in (entry(1, "before", place="#old"), Move("#old", "#new"), entry(2, "after", place="#new")):
        writer.put(item)
    writer.start()
    writer.stop(PATIENCE)
    store.open()
    found = [(each.entry.place, each.entry.text) for each in store.everything()]
    store.close()
    assert found == [("#new", "before"), ("#new", "after")]


def broken(batch: Sequence[Entry]) -> None:
    raise Damaged("database disk image is malformed: restore a backup")


async def test_a_server_with_a_damaged_history_says_what_to_do_and_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "data" / "history").mkdir(parents=True, mode=0o700)
    (tmp_path / "data" / "history" / "history.db").write_bytes(b"something else entirely " * 100)
    async with serving(tmp_path) as ircd, registered(ircd.port, "spark-ori", "message-tags") as ori:
        await ori.join("#a")
        assert "restore a backup" in ircd.parts.skills.off["history"]
        [answer] = await ori.ask("HISTORY RECENT #a")
        assert answer.params[:2] == ("HISTORY", "SKILL_OFF")
    assert any("restore a backup or move the file away" in record.getMessage() for record in caplog.records)


async def test_who_was_made_to_wait_goes_on_when_the_writer_is_no_more(tmp_path: Path) -> None:
    """The disk was slow, then the thread died: the connection is read again."""
    history = HistoryConfig(pending=10, semantic=Embeddings(enabled=False))
    async with serving(tmp_path, history=history) as ircd, registered(ircd.port, "spark-ori", CAPS) as ori:
        await ori.join("#x")
        await ori.ask("HISTORY RECENT #x 1")
        store, gate = skill_of(ircd)._store, threading.Event()

        def hang(batch: Sequence[Entry]) -> None:
            gate.wait(PATIENCE)
            raise Damaged("database disk image is malformed")

        store.write = hang  # type: ignore[method-assign]
        slowed, paused = asyncio.Event(), skill_of(ircd)._intake._slowed
        slow_down = skill_of(ircd)._intake._slow_down
        skill_of(ircd)._intake._slow_down = lambda session: (slow_down(session), slowed.set())  # type: ignore
        for number in range(9):
            ori.send(f"PRIVMSG #x :{number}")
        await asyncio.wait_for(slowed.wait(), PATIENCE)
        assert len(paused) == 1
        gate.set()
        await ori.sync()
        assert "history" in ircd.parts.skills.off


async def test_readers_who_gave_up_are_forgotten(tmp_path: Path) -> None:
    async with serving(tmp_path) as ircd, registered(ircd.port, "spark-ori") as ori:
        await ori.join("#x")
        intake, writer = skill_of(ircd)._intake, skill_of(ircd)._writer
        writer.taken += 1  # which never comes
        for _ in range(5):
            await intake.written(0.001)
        assert intake._readers == {}
        writer.taken -= 1


async def test_a_receipt_is_given_though_the_writer_was_quicker(tmp_path: Path) -> None:
    """It has written the message before the loop goes on behind ``put``."""
    async with serving(tmp_path) as ircd, registered(ircd.port, "spark-ori", CAPS) as ori:
        await ori.join("#x")
        await ori.ask("HISTORY RECENT #x 1")
        writer = skill_of(ircd)._writer
        put, written = writer.put, threading.Event()
        count = writer._count

        def put_and_wait(item: Any) -> bool:
            done = put(item)
            written.wait(PATIENCE)
            return done

        def counted(items: Any) -> None:
            count(items)
            written.set()

        writer.put, writer._count = put_and_wait, counted  # type: ignore[method-assign]
        ori.send("PRIVMSG #x :quick")
        receipt = await ori.expect("TAGMSG")
        assert receipt.tags["agentirc.dev/receipt"] == "stored"


async def test_searches_keep_nobody_from_reading(serve: Serve) -> None:
    """However many want one: what is quickly told is told, and who comes too many is told to come again."""
    async with serve() as ircd, registered(ircd.port, "spark-ori") as ori:
        await ori.join("#x")
        await ori.ask("PRIVMSG #x :hello")
        archive, gate = skill_of(ircd)._archive, threading.Event()

        def long(store: Store) -> None:
            gate.wait(PATIENCE)

        searches = [asyncio.create_task(archive.search(long)) for _ in range(MOST_SEARCHES)]
        tending = asyncio.create_task(archive.tend(long))
        rows = await ori.ask("HISTORY RECENT #x 10")
        assert [row.params[-1] for row in rows] == ["hello", "End of results"]
        [declined] = await ori.ask("HISTORY SEARCH #x :hello")
        assert declined.params[:2] == ("HISTORY", "UNAVAILABLE")
        gate.set()
        await asyncio.gather(*searches, tending)
        rows = await ori.ask("HISTORY SEARCH #x :hello")
        assert [row.params[-1] for row in rows] == ["hello", "End of results"]


async def test_what_was_said_is_on_disk_after_the_end_whatever_else_takes_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search, the tidying and the model are not waited for before the last messages are written."""
    gate = threading.Event()

    def long(store: Store) -> None:
        gate.wait(PATIENCE)

    monkeypatch.setattr(parts.Semantic, "stop", lambda semantic: gate.wait(PATIENCE))
    try:
        async with (
            serving(tmp_path, limits={"shutdown_timeout": 0.5}) as ircd,
            registered(ircd.port, "spark-ori") as ori,
        ):
            await ori.join("#x")
            for number in range(500):
                ori.send(f"PRIVMSG #x :{number}")
            await ori.sync()
            archive = skill_of(ircd)._archive
            under_way = [asyncio.create_task(each(long)) for each in (archive.read, archive.search, archive.tend)]
        for task in under_way:
            task.cancel()
        said = [text for text in texts(tmp_path / "data" / "history" / "history.db") if text.isdigit()]
        assert said == [str(number) for number in range(500)]
    finally:
        gate.set()
