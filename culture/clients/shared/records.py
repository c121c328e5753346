"""The file in which a daemon remembers: one SQLite database per agent, every change committed at once."""

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from culture.lib.files import create_private
from culture.runtime import REAL, Runtime

SCHEMA = """
CREATE TABLE IF NOT EXISTS messages (
    number INTEGER PRIMARY KEY,
    msgid TEXT NOT NULL UNIQUE,
    place TEXT NOT NULL,
    private INTEGER NOT NULL,
    sender TEXT NOT NULL,
    account TEXT,
    kind TEXT NOT NULL,
    text TEXT NOT NULL,
    said REAL NOT NULL,
    received REAL NOT NULL,
    stale INTEGER NOT NULL,
    state TEXT NOT NULL,
    turn INTEGER,
    given INTEGER NOT NULL DEFAULT 0,
    crashes INTEGER NOT NULL DEFAULT 0,
    hops INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX IF NOT EXISTS messages_of_agents ON messages (received) WHERE kind <> 'human';
CREATE INDEX IF NOT EXISTS messages_open ON messages (number) WHERE state IN ('unread', 'given');
CREATE INDEX IF NOT EXISTS messages_held ON messages (number) WHERE state IN ('held', 'unvouched');
CREATE TABLE IF NOT EXISTS overheard (msgid TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS withheld (
    number INTEGER PRIMARY KEY,
    msgid TEXT NOT NULL UNIQUE,
    place TEXT NOT NULL,
    private INTEGER NOT NULL,
    sender TEXT NOT NULL,
    account TEXT,
    kind TEXT NOT NULL,
    text TEXT NOT NULL,
    said REAL NOT NULL,
    released INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS turns (
    number INTEGER PRIMARY KEY,
    place TEXT NOT NULL,
    task TEXT NOT NULL,
    began REAL NOT NULL,
    ended REAL,
    outcome TEXT,
    tokens INTEGER NOT NULL DEFAULT 0,
    cost_usd REAL NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS outbox (
    number INTEGER PRIMARY KEY,
    place TEXT NOT NULL,
    text TEXT NOT NULL,
    notice INTEGER NOT NULL,
    tags TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS sendings (
    key TEXT PRIMARY KEY,
    said TEXT NOT NULL DEFAULT '[]'
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS questions (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    place TEXT NOT NULL,
    text TEXT NOT NULL,
    options TEXT NOT NULL,
    tool TEXT NOT NULL,
    electorate TEXT NOT NULL,
    task TEXT NOT NULL,
    asked REAL NOT NULL,
    deadline REAL NOT NULL,
    action TEXT NOT NULL,
    msgids TEXT NOT NULL DEFAULT '[]',
    answer TEXT,
    choice TEXT NOT NULL DEFAULT '',
    closed REAL,
    told INTEGER NOT NULL DEFAULT 0,
    discussed INTEGER NOT NULL DEFAULT 0,
    asides INTEGER NOT NULL DEFAULT 0,
    overruled INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX IF NOT EXISTS questions_open ON questions (number) WHERE answer IS NULL;
CREATE TABLE IF NOT EXISTS votes (
    question INTEGER NOT NULL,
    msgid TEXT NOT NULL,
    nick TEXT NOT NULL,
    kind TEXT NOT NULL,
    account TEXT,
    operator INTEGER NOT NULL,
    choice TEXT NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (question, msgid)
);
CREATE TABLE IF NOT EXISTS verdicts (
    question INTEGER PRIMARY KEY,
    verified TEXT NOT NULL,
    why TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS details (question INTEGER PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS remarks (
    msgid TEXT PRIMARY KEY,
    question INTEGER NOT NULL,
    text TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS answers (
    msgid TEXT PRIMARY KEY,
    text TEXT NOT NULL,
    context_pct REAL,
    session TEXT
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS alerts (
    number INTEGER PRIMARY KEY,
    place TEXT NOT NULL,
    event TEXT NOT NULL,
    text TEXT NOT NULL,
    count INTEGER NOT NULL DEFAULT 1,
    decided REAL NOT NULL,
    state TEXT NOT NULL DEFAULT 'open'
);
CREATE TABLE IF NOT EXISTS notes (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
PRAGMA user_version = 1;
"""


_DISK = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN})
"""Errors that say of the disk that nothing can be written."""


class Records:
    """An open database; what is done inside ``change`` happens whole or not at all."""

    def __init__(self, path: Path, *, runtime: Runtime = REAL) -> None:
        self.path = path
        self.on_full: Callable[[str], None] = lambda why: None
        """Called with the reason of each write that the disk refused."""
        create_private(path)
        self._connection = runtime.connect(path, isolation_level=None)
        self.execute("PRAGMA journal_mode = WAL")
        # Survives kill -9. A power cut takes messages and the mark behind them together, so they come again.
        self.execute("PRAGMA synchronous = NORMAL")
        self._connection.executescript(SCHEMA)

    def execute(self, statement: str, parameters: Sequence[Any] | Mapping[str, Any] = ()) -> sqlite3.Cursor:
        """Run one statement; outside of ``change`` it is committed at once."""
        try:
            return self._connection.execute(statement, parameters)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF in _DISK:
                self.on_full(str(error))
            raise

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    @contextmanager
    def change(self) -> Iterator[Self]:
        """Several changes as one; within another it is a part of that."""
        if self._is_changing():
            yield self
            return
        self.execute("BEGIN IMMEDIATE")
        try:
            yield self
            self.execute("COMMIT")
        except BaseException:
            # A full disk may have undone it already.
            if self._is_changing():
                self.execute("ROLLBACK")
            raise

    def _is_changing(self) -> bool:
        return self._connection.in_transaction
