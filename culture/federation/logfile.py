"""The file of the log: what is in it, and each change and question as one transaction of SQLite."""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from culture.federation.codec.fields import read_stamp
from culture.protocol.message import Message
from culture.runtime import REAL, Runtime
from culture.server.core.ids import MICROSECONDS, EventId
from culture.server.database import Step, open_database, open_reader, pieces, transaction

STEPS: tuple[Step, ...] = (
    """
    CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
    CREATE TABLE lines (
        id INTEGER PRIMARY KEY, origin TEXT NOT NULL, epoch TEXT NOT NULL, floor INTEGER NOT NULL DEFAULT 0,
        UNIQUE (origin, epoch)
    );
    CREATE TABLE entries (
        position INTEGER PRIMARY KEY, line INTEGER NOT NULL, seq INTEGER NOT NULL, at INTEGER NOT NULL,
        channel TEXT NOT NULL, data TEXT NOT NULL
    );
    CREATE UNIQUE INDEX entries_by_id ON entries (line, seq);
    CREATE TABLE cursors (peer TEXT PRIMARY KEY, log TEXT NOT NULL, position INTEGER NOT NULL);
    CREATE TABLE pruned (first INTEGER PRIMARY KEY, last INTEGER NOT NULL);
    CREATE TABLE held (id TEXT PRIMARY KEY, server TEXT NOT NULL, at INTEGER NOT NULL, data TEXT NOT NULL)
    """,
)
# More than can wait to be written: what a crash has lost has had positions below the next start's first.
_LEAP = 1_000_000
_PRUNED_AT_ONCE = 5_000


class Entry(NamedTuple):
    """A message: its position in this log, its channel, and its line without the tags that are a link's own."""

    position: int
    channel: str
    data: str


class Cursor(NamedTuple):
    """How far a peer's log was read; another log of the same peer begins anew."""

    log: str
    position: int


class Kept(NamedTuple):
    """A message that is new."""

    stamp: EventId
    entry: Entry


class Read(NamedTuple):
    """A peer's log was read up to here."""

    peer: str
    cursor: Cursor


class Held(NamedTuple):
    """A private message waits for a server."""

    id: str
    server: str
    data: str
    at: float


class Released(NamedTuple):
    """It has gone on."""

    id: str


class Lost(NamedTuple):
    """Messages that could not be kept, by their positions."""

    first: int
    last: int


class Settled(NamedTuple):
    """What is up to here is old enough to be on everybody's disk."""

    position: int


class TakenBack(NamedTuple):
    """A message of which only the id is left."""

    origin: str
    epoch: str
    seq: int


Change = Kept | Read | Held | Released | Lost | Settled | TakenBack


def later(change: Change, by: int) -> Change:
    """The same change, with positions that are so much further back in the log."""
    match change:
        case Kept(stamp, entry):
            return Kept(stamp, entry._replace(position=entry.position + by))
        case Lost(first, last):
            return Lost(first + by, last + by)
        case _:
            return change


class State(NamedTuple):
    """What a file says when it is opened."""

    id: str
    position: int
    """Where to go on: no position beyond it was ever used."""
    settled: int
    floors: list[tuple[str, str, int]]
    known: Iterable[tuple[str, str, int]]
    cursors: dict[str, Cursor]
    held: list[Held]


class LogFile:
    """Writes; for one thread at a time."""

    def __init__(self, path: Path, runtime: Runtime = REAL) -> None:
        self._runtime = runtime
        self._connection = open_database(path, STEPS, runtime=runtime)
        self._connection.execute("PRAGMA secure_delete=FAST")  # what was taken back is not left in the file
        self._numbers: dict[tuple[str, str], int] = {}

    def close(self) -> None:
        """Give the file back."""
        self._connection.close()

    def check(self) -> None:
        """Raise OSError where it was deleted; any thread may."""
        self._connection.check_files()

    def begin(self, epoch: str, caps: str = "") -> State:
        """Read what is known, and go on behind every position that was ever used.

        The epoch is that of the server's own ids: with another one the file is an old one that was put back, and
        what was said since then had the same positions; so it counts as another log. ``caps`` says what can be read
        here of the peers' logs: where that is more than before, they are read anew, and what is known is passed over.
        A log that says more than before likewise counts as another, so that peers read it anew.
        """
        connection = self._connection
        with transaction(connection):
            facts = dict(connection.execute("SELECT name, value FROM facts").fetchall())
            is_older = not set(caps.split(",")) <= set(facts.get("caps", "").split(",")) | {""}
            is_same = facts.get("epoch") == epoch and not is_older
            id = facts["log"] if is_same and "log" in facts else self._runtime.token_hex(8)
            last = max(
                int(facts.get("reserved", "0")),
                self._number("SELECT max(position) FROM entries"),
                self._number("SELECT max(last) FROM pruned"),
            )
            if is_older:
                connection.execute("DELETE FROM cursors")
                for (data,) in connection.execute(_REDACTIONS).fetchall():
                    self._take_back_told(data)
            for fact in (("epoch", epoch), ("log", id), ("caps", caps), ("reserved", str(last + _LEAP))):
                connection.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", fact)
        return self._state(id, last + _LEAP, int(facts.get("settled", "0")))

    def _state(self, id: str, position: int, settled: int) -> State:
        ask = self._connection.execute
        return State(
            id,
            position,
            settled,
            ask("SELECT origin, epoch, floor FROM lines").fetchall(),
            ask("SELECT origin, epoch, seq FROM entries JOIN lines ON lines.id = line"),
            {peer: Cursor(of, at) for peer, of, at in ask("SELECT peer, log, position FROM cursors")},
            [Held(id, server, data, at / MICROSECONDS) for id, server, data, at in ask(_HELD)],
        )

    def _number(self, question: str) -> int:
        return int(self._connection.execute(question).fetchone()[0] or 0)

    def write(self, changes: Sequence[Change]) -> None:
        """All of them, or none."""
        connection = self._connection
        cursors = {change.peer: change.cursor for change in changes if isinstance(change, Read)}
        try:
            with transaction(connection):
                self._keep([change for change in changes if isinstance(change, Kept)])
                for change in changes:
                    if not isinstance(change, Kept):
                        self._change(change)
                for peer, cursor in cursors.items():
                    connection.execute("INSERT OR REPLACE INTO cursors VALUES (?, ?, ?)", (peer, *cursor))
        except BaseException:
            self._numbers.clear()
            raise

    def _keep(self, kept: Sequence[Kept]) -> None:
        line = self._line
        rows = [
            (position, line(origin, epoch), seq, round(at * MICROSECONDS), channel, data)
            for (origin, epoch, seq, at), (position, channel, data) in kept
        ]
        for some in pieces(rows):
            self._connection.execute(_insert(len(some)), tuple(chain.from_iterable(some)))

    def _change(self, change: Change) -> None:
        match change:
            case Held(id, server, data, at):
                row = (id, server, int(at * MICROSECONDS), data)
                self._connection.execute("INSERT OR IGNORE INTO held VALUES (?, ?, ?, ?)", row)
            case Released():
                self._connection.execute("DELETE FROM held WHERE id = ?", change)
            case Settled(position):
                self._settle(position)
            case TakenBack(origin, epoch, seq):
                self._connection.execute(_BLANK, (self._line(origin, epoch), seq))
            case Lost():
                self._connection.execute("INSERT OR REPLACE INTO pruned VALUES (?, ?)", change)

    def _settle(self, position: int) -> None:
        """Of private messages that all who keep them have, only the ids are needed from then on."""
        question = "SELECT coalesce((SELECT value FROM facts WHERE name = 'settled'), 0)"
        before = self._number(question)
        self._connection.execute("INSERT OR REPLACE INTO facts VALUES ('settled', ?)", (str(position),))
        where = "position > ? AND position <= ? AND channel = '' AND data <> ''"
        self._connection.execute(f"UPDATE entries SET data = '' WHERE {where}", (before, position))

    def _take_back_told(self, data: str) -> None:
        """Older versions kept the text of what was taken back, and told it to whoever had missed it."""
        line = Message.parse(data)
        taken = taken_back(line.params[1]) if line.verb == "REDACT" and len(line.params) > 1 else None
        # Whoever has no say takes back what its own users said.
        is_theirs = taken is not None and line.tags.get("id", "").startswith(f"{taken.origin}.")
        if taken is not None and (is_theirs or _UNVOUCHED not in line.tags):
            self._change(taken)

    def _line(self, origin: str, epoch: str) -> int:
        key = (origin, epoch)
        known = self._numbers.get(key)
        if known is None:
            self._connection.execute("INSERT OR IGNORE INTO lines (origin, epoch) VALUES (?, ?)", key)
            question = "SELECT id FROM lines WHERE origin = ? AND epoch = ?"
            known = self._numbers[key] = int(self._connection.execute(question, key).fetchone()[0])
        return known


@cache
def _insert(rows: int) -> str:
    """A message that is there already stays as it is; a position that is would be our bug."""
    values = ",".join(["(?,?,?,?,?,?)"] * rows)
    return f"INSERT INTO entries VALUES {values} ON CONFLICT (line, seq) DO NOTHING"


def taken_back(msgid: str) -> TakenBack | None:
    """What to write of a message that was taken back; None where that is no id."""
    try:
        origin, epoch, seq, _ = read_stamp({"id": msgid, "at": "0"})
    except ValueError:
        return None
    return TakenBack(origin, epoch, seq)


_UNVOUCHED = "unvouched"
_REDACTIONS = "SELECT data FROM entries WHERE data LIKE '% REDACT %'"
_BLANK = "UPDATE entries SET data = '' WHERE line = ? AND seq = ?"
_HELD = "SELECT id, server, data, at FROM held ORDER BY at"
_COLUMNS = "position, channel, data"


class LogReader:
    """Reads beside whoever writes; opened when first asked."""

    def __init__(self, path: Path, runtime: Runtime = REAL) -> None:
        self._path = path
        self._runtime = runtime
        self._opened: sqlite3.Connection | None = None

    def close(self) -> None:
        """Give the file back."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def after(self, position: int, limit: int) -> list[Entry]:
        """Up to so many messages to channels behind a position, but for those that were taken back."""
        where = "position > ? AND channel <> '' AND data <> '' ORDER BY position LIMIT ?"
        return [Entry(*row) for row in self._ask(f"SELECT {_COLUMNS} FROM entries WHERE {where}", position, limit)]

    def since(self, position: int, limit: int) -> list[Entry]:
        """The same with private messages that are for somebody here: never for peers."""
        where = "position > ? ORDER BY position LIMIT ?"
        return [Entry(*row) for row in self._ask(f"SELECT {_COLUMNS} FROM entries WHERE {where}", position, limit)]

    def missing(self, position: int) -> int:
        """How many behind a position are no longer kept."""
        question = "SELECT coalesce(sum(last - max(first - 1, ?)), 0) FROM pruned WHERE last > ?"
        return int(next(self._ask(question, position, position))[0])

    def _ask(self, question: str, *values: object) -> Iterator[Any]:
        if self._opened is None:
            self._opened = open_reader(self._path, runtime=self._runtime)
        return iter(self._opened.execute(question, values).fetchall())


def prune(path: Path, before: float, runtime: Runtime = REAL) -> int:
    """Let go of the messages that are older; how many those were. Others write in between."""
    connection = open_database(path, STEPS, busy=10.0, runtime=runtime)
    try:
        gone = 0
        while some := _prune_some(connection, int(before * MICROSECONDS)):
            gone += some
            runtime.sleep(0)
        return gone
    finally:
        connection.close()


def _prune_some(connection: sqlite3.Connection, before: int) -> int:
    """Some of them. They are looked for before anybody who writes has to wait: only pruning takes entries away."""
    question = "SELECT position, channel, line, seq FROM entries WHERE at < ? ORDER BY position LIMIT ?"
    rows = connection.execute(question, (before, _PRUNED_AT_ONCE)).fetchall()
    if not rows:
        return 0
    floors: dict[int, int] = {}
    for _, _, line, seq in rows:
        floors[line] = max(floors.get(line, 0), seq + 1)
    raised = [(floor, line) for line, floor in floors.items()]
    with transaction(connection):
        connection.executemany("UPDATE lines SET floor = max(floor, ?) WHERE id = ?", raised)
        connection.executemany("DELETE FROM entries WHERE position = ?", [row[:1] for row in rows])
        for run in _runs(position for position, channel, _, _ in rows if channel):
            _note_pruned(connection, run)
    return len(rows)


def _runs(positions: Iterable[int]) -> Iterator[Lost]:
    first = last = None
    for position in positions:
        if first is None or last is None or position != last + 1:
            if first is not None and last is not None:
                yield Lost(first, last)
            first = position
        last = position
    if first is not None and last is not None:
        yield Lost(first, last)


def _note_pruned(connection: sqlite3.Connection, run: Lost) -> None:
    """One row for each run of positions, however often it grew."""
    grown = connection.execute("UPDATE pruned SET last = ? WHERE last = ?", (run.last, run.first - 1)).rowcount
    if not grown:
        connection.execute("INSERT OR REPLACE INTO pruned VALUES (?, ?)", run)
