"""What peers may have missed is on disk, in order, and its positions are never used twice."""

import asyncio
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from culture.federation import log as module
from culture.federation import logfile
from culture.federation.log import EventLog
from culture.federation.logfile import Cursor, Held, Kept
from culture.server.core.ids import EventId
from tests.federation.virtual import HandLog
from tests.support.waiting import PATIENCE, until

LOG = "log.db"


def stamp(seq: int, origin: str = "thor", at: float = 1_800_000_000.0) -> EventId:
    return EventId(origin, "e1", seq, at)


Open = Callable[..., EventLog]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    logs: list[EventLog] = []

    def make(epoch: str = "own", tell: Callable[[str], None] = lambda text: None) -> EventLog:
        logs.append(EventLog(tmp_path / LOG, lambda: None, tell))
        logs[-1].open(epoch)
        return logs[-1]

    yield make
    for each in logs:
        each.close(5)


def written(log: EventLog) -> None:
    log.await_written(5)
    assert not log.waiting


async def test_what_was_appended_is_there_after_a_start(opened: Open) -> None:
    log = opened()
    positions = [log.append(stamp(seq), "#x", f"@id=thor.e1.{seq} x") for seq in range(1, 1_200)]
    log.append(stamp(5_000), "", "")
    log.read_up_to("odin", Cursor("theirs", 77))
    log.hold(Held("spark.e.1", "odin", "a line", 5.0))
    log.hold(Held("spark.e.2", "odin", "another", 6.0))
    log.release(Held("spark.e.1", "odin", "a line", 5.0))
    log.close(5)
    again = opened()
    assert again.id == log.id
    assert [entry.position for entry in await again.after(0, 10_000)] == positions
    assert [entry.position for entry in await again.after(positions[3], 2)] == positions[4:6]
    assert again.settled == log.position
    assert again.seen.knows("thor", "e1", 5_000) and not again.seen.knows("thor", "e1", 1_200)
    assert again.cursors == {"odin": Cursor("theirs", 77)} == again.durable
    assert [held.id for held in again.held["odin"].values()] == ["spark.e.2"]


class Growing(deque[Any]):
    """A queue to which somebody else adds whenever it is gone through."""

    def __iter__(self) -> Iterator[Any]:
        for each in super().__iter__():
            yield each
            self.append(each)


async def test_what_is_said_while_the_log_is_written_does_not_end_it(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loop says on and on, in another thread than the one that writes."""
    monkeypatch.setattr(module, "deque", Growing)
    log = opened()
    log.failed = pytest.fail
    positions = [log.append(stamp(seq), "#x", f"@id=thor.e1.{seq} x") for seq in range(1, 50)]
    written(log)
    assert [entry.position for entry in await log.after(0, 100)] == positions


def test_nobody_waits_for_a_log_that_cannot_go_on(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()

    def broken(changes: object) -> None:
        raise RuntimeError("our bug")

    log = opened()
    log.failed = lambda error: ended.set()
    monkeypatch.setattr(log._file, "write", broken)
    log.append(stamp(1), "#x", "one")
    assert ended.wait(PATIENCE)
    began = time.monotonic()
    assert log.await_written(PATIENCE)
    assert time.monotonic() - began < PATIENCE


async def test_what_a_crash_may_have_kept_from_others_is_known(tmp_path: Path, opened: Open) -> None:
    log = opened()
    early = log.append(stamp(1), "#x", "early")
    log.settle(early)
    late = log.append(stamp(2), "#x", "late")
    written(log)
    copy = tmp_path / "as after a crash"
    with closing(sqlite3.connect(tmp_path / LOG)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)
    again = EventLog(copy, lambda: None, lambda text: None)
    again.open("own")
    assert [entry.position for entry in await again.after(again.settled, 10)] == [late]
    again.close(5)


@pytest.mark.fault("D9")
async def test_a_position_is_never_used_twice_however_often_the_server_dies(tmp_path: Path) -> None:
    """Even where nothing was written in a life, peers may have seen its positions."""
    used: set[int] = set()
    for life in range(4):
        log = EventLog(tmp_path / LOG, lambda: None, lambda text: None)
        log.begin = lambda: None  # type: ignore[method-assign]
        log.open("own")
        fresh = {log.append(stamp(life * 100 + seq), "#x", "@id=x x") for seq in range(50)}
        assert not used & fresh
        used |= fresh
        log._file.close()
        log.close(0)


async def test_a_log_that_was_put_back_is_another_log(opened: Open) -> None:
    """What was said since the copy was made had the same positions."""
    log = opened("before")
    log.append(stamp(1), "#x", "@id=thor.e1.1 x")
    log.close(5)
    again = opened("after")
    assert again.id != log.id
    assert again.seen.knows("thor", "e1", 1)


async def test_a_message_that_is_there_already_stays_and_takes_no_other_with_it(opened: Open) -> None:
    log = opened()
    first = log.append(stamp(1), "#x", "one")
    log.append(stamp(1), "#x", "the same again")
    third = log.append(stamp(2), "#x", "two")
    written(log)
    assert [tuple(entry) for entry in await log.after(0, 10)] == [(first, "#x", "one"), (third, "#x", "two")]


@pytest.mark.fault("D10")
async def test_what_is_pruned_is_counted_exactly(opened: Open) -> None:
    log = opened()
    old = [log.append(stamp(seq, at=1_000.0), "#x", "old") for seq in range(1, 11)]
    log.append(stamp(11, at=1_000.0), "", "")
    old += [log.append(stamp(seq, at=1_000.0), "#x", "old") for seq in range(12, 15)]
    new = [log.append(stamp(seq), "#x", "new") for seq in range(15, 18)]
    written(log)
    assert await log.missing(0) == 0
    assert await log.prune(2_000.0) == 14
    assert await log.prune(2_000.0) == 0
    assert [await log.missing(position) for position in (old[0] - 1, old[3], old[9], old[-1], new[0])] == [
        13,
        9,
        3,
        0,
        0,
    ]
    assert [entry.position for entry in await log.after(0, 10)] == new
    log.close(5)
    again = opened()
    assert again.seen.knows("thor", "e1", 3) and not again.seen.knows("thor", "e1", 18)
    assert again.append(stamp(18), "#x", "next") > new[-1]


async def test_runs_of_what_is_pruned_grow_together(opened: Open, tmp_path: Path) -> None:
    log = opened()
    for seq in range(1, 5):
        log.append(stamp(seq, at=seq * 1_000.0), "#x", "old")
    written(log)
    for before in (1_500.0, 2_500.0, 3_500.0):
        assert await log.prune(before) == 1
    with closing(sqlite3.connect(tmp_path / LOG)) as connection:
        assert len(connection.execute("SELECT * FROM pruned").fetchall()) == 1
    assert await log.missing(1) == 3


async def test_who_writes_does_not_wait_for_what_is_old_to_be_looked_for(opened: Open, tmp_path: Path) -> None:
    """A log of millions takes its time to be looked through, every hour."""
    log = opened()
    log.append(stamp(1), "#x", "one")
    written(log)
    with closing(sqlite3.connect(tmp_path / LOG, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        async with asyncio.timeout(5):
            assert await log.prune(0.5) == 0


class TestTrouble:
    """The disk is full, or somebody else holds the file."""

    async def test_operators_are_told_once_and_again_when_it_works(
        self, opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(module, "_PATIENCE", 0.0)
        monkeypatch.setattr(module, "_RETRY", 0.01)
        told: list[str] = []
        log = opened(tell=told.append)
        with closing(sqlite3.connect(tmp_path / LOG, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            log.append(stamp(1), "#x", "one")
            log.read_up_to("odin", Cursor("theirs", 1))
            await until(lambda: log.is_stuck and bool(told))
            log.append(stamp(2), "#x", "two")
            assert [entry.data for entry in log.unwritten(log.forgotten) or ()] == ["one", "two"]
            assert not log.durable and log.waiting == 3
            other.execute("ROLLBACK")
        await until(lambda: not log.waiting)
        await until(lambda: len(told) == 2)
        assert "cannot be kept" in told[0] and "kept again" in told[1]
        assert log.durable == {"odin": Cursor("theirs", 1)}
        assert [entry.data for entry in await log.after(0, 10)] == ["one", "two"]

    async def test_a_batch_that_failed_is_written_later_in_its_order(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A cursor on disk stands for all messages that came before it."""
        log, tried = HandLog(tmp_path / LOG, lambda: None, lambda text: None), list[list[str]]()
        log.open("own")
        write = logfile.LogFile.write

        def fail_at_first(file: logfile.LogFile, changes: Any) -> None:
            tried.append([each.entry.data if isinstance(each, Kept) else type(each).__name__ for each in changes])
            if len(tried) == 1:
                raise sqlite3.OperationalError("database or disk is full")
            write(file, changes)

        monkeypatch.setattr(logfile.LogFile, "write", fail_at_first)
        log.append(stamp(1), "#x", "one")
        log.append(stamp(2), "#x", "two")
        log.read_up_to("odin", Cursor("theirs", 2))
        assert not log.write_some() and not log.durable and log.waiting == 3
        log.append(stamp(3), "#x", "three")
        assert log.write_some() and log.waiting == 0
        assert tried == [["one", "two", "Read"], ["one", "two", "Read", "three"]]
        log.close(0)

    async def test_what_does_not_fit_in_memory_is_a_gap_and_said_so(
        self, opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(module, "_MOST", 10)
        monkeypatch.setattr(module, "_RETRY", 0.01)
        log = opened()
        with closing(sqlite3.connect(tmp_path / LOG, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            before = log.position
            for seq in range(1, 26):
                log.append(stamp(seq), "#x", str(seq))
            assert log.is_full and log.waiting == 10
            other.execute("ROLLBACK")
        await until(lambda: not log.waiting)
        log.append(stamp(26), "#x", "26")
        written(log)
        assert [entry.data for entry in await log.after(before, 100)] == [*map(str, range(1, 11)), "26"]
        assert await log.missing(before) == 15

    async def test_a_failure_that_is_ours_is_told(self, opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
        failures: list[BaseException] = []

        def fail(*_: Any) -> None:
            raise OverflowError("our bug")

        log = opened()
        log.failed = failures.append
        monkeypatch.setattr(logfile.LogFile, "write", fail)
        log.append(stamp(1), "#x", "one")
        await until(lambda: bool(failures))
        assert isinstance(failures[0], OverflowError)


async def test_who_goes_first_is_waited_for(opened: Open) -> None:
    log = opened()
    for seq in range(1, 100):
        log.append(stamp(seq), "#x", "x")
    assert await asyncio.to_thread(log.await_written, PATIENCE)
    assert log.written == log.taken == 99


async def test_who_waits_for_a_log_that_cannot_be_written_hears_that_it_is_not(opened: Open, tmp_path: Path) -> None:
    log = opened()
    with closing(sqlite3.connect(tmp_path / LOG, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        log.append(stamp(1), "#x", "one")
        await until(lambda: log.is_stuck)
        assert not await asyncio.to_thread(log.await_written, 0.01)
        other.execute("ROLLBACK")
    assert await asyncio.to_thread(log.await_written, PATIENCE)


async def test_memory_holds_what_the_disk_has_not(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SPARE", 5)
    log = opened()
    for seq in range(1, 50):
        log.append(stamp(seq), "#x", str(seq))
        written(log)
    assert len(log.recent) <= 7
    assert log.unwritten(log.forgotten - 1) is None
    assert log.unwritten(log.position - 2) == list(log.recent)[-2:]
