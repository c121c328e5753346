"""The messages that peers may have missed: kept on disk with their ids, and how far each peer's own log was read."""

import asyncio
import logging
import secrets
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from culture.federation.seen import Seen
from culture.server.database import Step, open_database, open_reader
from culture.server.ids import Stamp

log = logging.getLogger(__name__)

STEPS: tuple[Step, ...] = (
    """
    CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
    CREATE TABLE lines (
        id INTEGER PRIMARY KEY, origin TEXT NOT NULL, epoch TEXT NOT NULL, floor INTEGER NOT NULL DEFAULT 0,
        UNIQUE (origin, epoch)
    );
    CREATE TABLE entries (
        position INTEGER PRIMARY KEY, line INTEGER NOT NULL, seq INTEGER NOT NULL, at INTEGER NOT NULL,
        channel TEXT NOT NULL, data TEXT NOT NULL, peer TEXT, theirs INTEGER
    );
    CREATE UNIQUE INDEX entries_by_id ON entries (line, seq);
    CREATE INDEX entries_by_peer ON entries (peer, theirs) WHERE peer IS NOT NULL;
    CREATE TABLE cursors (peer TEXT PRIMARY KEY, log TEXT NOT NULL, position INTEGER NOT NULL);
    CREATE TABLE pruned (position INTEGER PRIMARY KEY, entries INTEGER NOT NULL);
    CREATE TABLE held (id TEXT PRIMARY KEY, server TEXT NOT NULL, at INTEGER NOT NULL, data TEXT NOT NULL)
    """,
)
MICROSECONDS = 1_000_000
# Positions that a crash may have handed out and not written are never handed out again.
_LEAP = 1_000_000
_AT_ONCE = 2_000
_ROWS = 500
_GATHER = 0.001
_RETRY = 0.25
_RECENT = 20_000  # entries that are known without asking the disk


class Entry(NamedTuple):
    """A message: its position in this log, its channel, and its line without the tags that are a link's own."""

    position: int
    channel: str
    data: str


class Cursor(NamedTuple):
    """How far a peer's log was read; another log of the same peer begins anew."""

    log: str
    position: int


class _Kept(NamedTuple):
    position: int
    stamp: Stamp
    channel: str
    data: str
    peer: str | None
    theirs: int | None


class _Read(NamedTuple):
    peer: str
    cursor: Cursor


class _Held(NamedTuple):
    id: str
    server: str
    data: str


class _Released(NamedTuple):
    id: str


_Op = _Kept | _Read | _Held | _Released


class EventLog:
    """Appends from the loop's thread, writes in a thread of its own, reads in another.

    ``committed`` is the position up to which everything is on disk; ``settled`` is called (in the writer's thread)
    after each transaction.
    """

    def __init__(self, path: Path, settled: Callable[[], None], tell: Callable[[str], None]) -> None:
        self._path = path
        self._settled = settled
        self._tell = tell
        self._ops: deque[_Op] = deque()
        self._wake = threading.Event()
        self._stopping = False
        self._is_idle = False
        self._thread = threading.Thread(target=self._run, name="federation-log", daemon=True)
        self._readers = ThreadPoolExecutor(1, thread_name_prefix="federation-reader")
        self._reader: sqlite3.Connection | None = None
        self._numbers: dict[tuple[str, str], int] = {}
        self.seen = Seen()
        self.recent: deque[Entry] = deque(maxlen=_RECENT)
        self.cursors: dict[str, Cursor] = {}
        self.held: dict[str, _Held] = {}
        self.durable: dict[str, Cursor] = {}
        """The cursors as far as they are on disk."""
        self.id = ""
        self.survived = 0
        """The last position that was on disk at the start: peers may have seen later ones."""
        self.position = 0
        self.committed = 0
        self.written = self._taken = 0

    def open(self) -> None:
        """Read what is known; blocks."""
        connection = open_database(self._path, STEPS)
        try:
            self._load(connection)
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        self._thread.start()

    def close(self, patience: float) -> None:
        """Write what is left, within so many seconds; blocks."""
        self._stopping = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(patience)
        self._readers.shutdown(wait=True, cancel_futures=True)
        if self._reader is not None:
            self._reader.close()

    def _load(self, connection: sqlite3.Connection) -> None:
        connection.execute("INSERT OR IGNORE INTO facts VALUES ('log', ?)", (secrets.token_hex(8),))
        self.id = connection.execute("SELECT value FROM facts WHERE name = 'log'").fetchone()[0]
        for number, origin, epoch, floor in connection.execute("SELECT id, origin, epoch, floor FROM lines").fetchall():
            self._numbers[origin, epoch] = number
            self.seen.begin(origin, epoch, floor)
            for (seq,) in connection.execute("SELECT seq FROM entries WHERE line = ?", (number,)):
                self.seen.add(origin, epoch, seq)
        for peer, of, position in connection.execute("SELECT peer, log, position FROM cursors"):
            self.cursors[peer] = Cursor(of, position)
        for held in connection.execute("SELECT id, server, data FROM held"):
            self.held[held[0]] = _Held(*held)
        last = connection.execute("SELECT coalesce(max(position), 0) FROM entries").fetchone()[0]
        beyond = connection.execute("SELECT coalesce(max(position), 0) FROM pruned").fetchone()[0]
        self.survived = max(last, beyond)
        self.position = self.committed = self.survived + _LEAP
        self.durable = dict(self.cursors)

    def append(self, stamp: Stamp, channel: str, data: str, peer: str | None = None, theirs: int | None = None) -> int:
        """Keep a message that is new, and at which position of its log a peer had it; the position in this one.

        One without a channel is kept for its id alone.
        """
        self.seen.add(stamp.origin, stamp.epoch, stamp.seq)
        self.position += 1
        self._put(_Kept(self.position, stamp, channel, data, peer, theirs))
        self.recent.append(Entry(self.position, channel, data))
        return self.position

    def read_up_to(self, peer: str, cursor: Cursor) -> None:
        """Everything of a peer's log is here up to this; durable with what came before it."""
        self.cursors[peer] = cursor
        self._put(_Read(peer, cursor))

    def hold(self, id: str, server: str, data: str) -> None:
        """Keep a private message until the next server on its way has it."""
        self.held[id] = _Held(id, server, data)
        self._put(self.held[id])

    def release(self, id: str) -> None:
        """The next server has it."""
        if self.held.pop(id, None) is not None:
            self._put(_Released(id))

    def held_for(self, server: str) -> list[tuple[str, str]]:
        """Id and line of what is held for a server."""
        return [(held.id, held.data) for held in self.held.values() if held.server == server]

    async def after(self, position: int, limit: int) -> list[Entry]:
        """Up to so many entries behind a position, as far as they are on disk."""
        return await asyncio.get_running_loop().run_in_executor(self._readers, self._after, position, limit)

    async def from_peer(self, peer: str, beyond: int) -> list[Entry]:
        """What a peer sent and may have lost itself: what had higher positions than this in its own log."""
        return await asyncio.get_running_loop().run_in_executor(self._readers, self._from_peer, peer, beyond)

    async def missing(self, position: int) -> int:
        """How many entries behind a position are no longer kept."""
        return await asyncio.get_running_loop().run_in_executor(self._readers, self._missing, position)

    async def prune(self, before: float) -> int:
        """Let go of what is older; how many that were."""
        return await asyncio.to_thread(self._prune, int(before * MICROSECONDS))

    def ordered(self) -> int:
        """How many changes were made so far: once as many are ``written``, all of them are on disk."""
        return self._taken

    def _put(self, op: _Op) -> None:
        self._ops.append(op)
        self._taken += 1
        if self._is_idle:
            self._is_idle = False
            self._wake.set()

    @property
    def _reading(self) -> sqlite3.Connection:
        if self._reader is None:
            self._reader = open_reader(self._path)
        return self._reader

    def _after(self, position: int, limit: int) -> list[Entry]:
        rows = self._reading.execute(
            "SELECT position, channel, data FROM entries WHERE position > ? ORDER BY position LIMIT ?",
            (position, limit),
        )
        return [Entry(*row) for row in rows]

    def _from_peer(self, peer: str, beyond: int) -> list[Entry]:
        rows = self._reading.execute(
            "SELECT position, channel, data FROM entries WHERE peer = ? AND theirs > ? AND channel <> ''"
            " ORDER BY position",
            (peer, beyond),
        )
        return [Entry(*row) for row in rows]

    def _missing(self, position: int) -> int:
        row = self._reading.execute("SELECT coalesce(sum(entries), 0) FROM pruned WHERE position > ?", (position,))
        return int(row.fetchone()[0])

    def _prune(self, before: int) -> int:
        connection = open_database(self._path, STEPS, busy=10.0)
        try:
            connection.execute("BEGIN IMMEDIATE")
            row = connection.execute("SELECT count(*), max(position) FROM entries WHERE at < ?", (before,)).fetchone()
            if row[0]:
                connection.execute(
                    "UPDATE lines SET floor = max(floor, coalesce((SELECT max(seq) + 1 FROM entries"
                    " WHERE line = lines.id AND at < ?), 0))",
                    (before,),
                )
                connection.execute("DELETE FROM entries WHERE at < ?", (before,))
                connection.execute("INSERT OR REPLACE INTO pruned VALUES (?, ?)", (row[1], row[0]))
            connection.execute("COMMIT")
            return int(row[0])
        finally:
            connection.close()

    def _run(self) -> None:
        try:
            while self._await_ops():
                time.sleep(_GATHER)
                ops = [self._ops.popleft() for _ in range(min(len(self._ops), _AT_ONCE))]
                while not self._wrote(ops):
                    if self._stopping:
                        log.error("%d changes of the federation's log could not be written", len(ops))
                        return
                    time.sleep(_RETRY)
        finally:
            self._connection.close()

    def _await_ops(self) -> bool:
        while not self._ops:
            if self._stopping:
                return False
            self._wake.clear()
            self._is_idle = True
            if not self._ops and not self._stopping:
                self._wake.wait()
            self._is_idle = False
        return True

    def _wrote(self, ops: Sequence[_Op]) -> bool:
        connection = self._connection
        try:
            connection.execute("BEGIN IMMEDIATE")
            self._write(ops)
            connection.execute("COMMIT")
        except (sqlite3.Error, OSError) as error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            self._numbers = dict(self._known_lines())
            self._tell(f"what links carry cannot be kept at present: {error}")
            return False
        self.written += len(ops)
        self.durable |= {op.peer: op.cursor for op in ops if isinstance(op, _Read)}
        self.committed = max((op.position for op in ops if isinstance(op, _Kept)), default=self.committed)
        self._settled()
        return True

    def _known_lines(self) -> Iterable[tuple[tuple[str, str], int]]:
        for number, origin, epoch in self._connection.execute("SELECT id, origin, epoch FROM lines"):
            yield (origin, epoch), number

    def _write(self, ops: Sequence[_Op]) -> None:
        connection = self._connection
        rows = [
            (
                *(op.position, self._line(op.stamp), op.stamp.seq, round(op.stamp.at * MICROSECONDS)),
                *(op.channel, op.data, op.peer, op.theirs),
            )
            for op in ops
            if isinstance(op, _Kept)
        ]
        for start in range(0, len(rows), _ROWS):
            some = rows[start : start + _ROWS]
            values = ",".join(["(?,?,?,?,?,?,?,?)"] * len(some))
            connection.execute(f"INSERT OR IGNORE INTO entries VALUES {values}", tuple(chain.from_iterable(some)))
        for op in ops:
            if isinstance(op, _Held):
                connection.execute(
                    "INSERT OR IGNORE INTO held VALUES (?, ?, ?, ?)",
                    (op.id, op.server, int(time.time() * MICROSECONDS), op.data),
                )
            elif isinstance(op, _Released):
                connection.execute("DELETE FROM held WHERE id = ?", op)
        for peer, cursor in {op.peer: op.cursor for op in ops if isinstance(op, _Read)}.items():
            connection.execute("INSERT OR REPLACE INTO cursors VALUES (?, ?, ?)", (peer, *cursor))

    def _line(self, stamp: Stamp) -> int:
        known = self._numbers.get((stamp.origin, stamp.epoch))
        if known is None:
            self._connection.execute("INSERT OR IGNORE INTO lines (origin, epoch) VALUES (?, ?)", stamp[:2])
            known = self._connection.execute(
                "SELECT id FROM lines WHERE origin = ? AND epoch = ?", stamp[:2]
            ).fetchone()[0]
            self._numbers[stamp.origin, stamp.epoch] = known
        return int(known)
