"""SQLite files: durable settings, schema migrations step by step, inserts in bulk."""

import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

from culture.lib.files import create_private
from culture.runtime import REAL, Runtime

BUSY = 0.5  # seconds to wait for another writer
_ROWS = 512  # most rows in one statement

Item = TypeVar("Item")

Step = str | Callable[[sqlite3.Connection], None]
"""One change of the schema: SQL or a function. New steps are added at the end only."""


_FILES = ("", "-wal")


class TooNew(Exception):
    """A SQLite file has a schema of a newer version of culture."""


class Deleted(OSError):
    """A file of an open SQLite database was deleted or replaced."""


class Database(sqlite3.Connection):
    """A SQLite connection for writing, which checks at each commit that its files still exist.

    SQLite goes on writing to files that were deleted, moved or replaced, and every COMMIT succeeds; when the process
    ends the data is gone. So each transaction compares the files' inodes. (Without WAL SQLite compares them itself.)
    """

    _inodes: Mapping[str, int] = MappingProxyType({})

    def note_files(self, path: Path) -> None:
        """Store the inodes of the database's files, which ``check_files`` compares."""
        self._inodes = {file: os.stat(file).st_ino for suffix in _FILES if os.path.exists(file := f"{path}{suffix}")}

    def check_files(self) -> None:
        """Raise Deleted if a file of the database was deleted, moved or replaced."""
        for file, inode in self._inodes.items():
            try:
                is_there = os.stat(file).st_ino == inode
            except FileNotFoundError:
                is_there = False
            if not is_there:
                raise Deleted(f"{file} was deleted or replaced: put it back, or restart the server to begin a new one")


def open_database(path: Path, steps: Sequence[Step], *, busy: float = BUSY, runtime: Runtime = REAL) -> Database:
    """Open a SQLite database for writing (mode 0600, WAL); a commit is on disk when it returns.

    ``steps`` make the schema, each from the one before: a file of an older schema is migrated in one transaction, one
    of a newer schema raises TooNew. ``busy``: seconds to wait for other writers. The connection is in autocommit mode:
    use ``transaction`` to write more than one row.
    """
    create_private(path)
    connection = runtime.connect(path, timeout=busy, isolation_level=None, check_same_thread=False, factory=Database)
    assert isinstance(connection, Database)
    try:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA foreign_keys=ON")
        migrate(connection, steps)
        connection.note_files(path)
    except BaseException:
        connection.close()
        raise
    return connection


def open_reader(path: Path, *, busy: float = BUSY, runtime: Runtime = REAL) -> sqlite3.Connection:
    """Open a SQLite database for reading only, which does not block writers.

    ``busy``: seconds to wait while the file is locked.
    """
    return runtime.connect(
        f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=busy, isolation_level=None, check_same_thread=False
    )


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Commit all changes of the block, or none if it raises an exception.

    Raises Deleted, and commits nothing, if a file of the database is gone.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        if isinstance(connection, Database):
            connection.check_files()
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # a full disk may have ended it already
            connection.execute("ROLLBACK")
        raise


def migrate(connection: sqlite3.Connection, steps: Sequence[Step]) -> None:
    """Run those schema steps that the database has not had yet, all or none.

    Raises TooNew if it has more steps than ``steps``.
    """
    if version(connection) == len(steps):
        return
    with transaction(connection):
        done = version(connection)  # another process may have migrated it
        if done > len(steps):
            raise TooNew(f"schema {done}, and this program knows {len(steps)}: use the newer version of culture")
        for step in steps[done:]:
            _make(connection, step)
        connection.execute(f"PRAGMA user_version={len(steps)}")


def version(connection: sqlite3.Connection) -> int:
    """Return the number of schema steps that the database has had."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _make(connection: sqlite3.Connection, step: Step) -> None:
    if callable(step):
        step(connection)
        return
    statement = ""
    for piece in step.split(";"):
        statement += f"{piece};"
        if sqlite3.complete_statement(statement):  # else the semicolon is inside a text, a comment or a trigger
            connection.execute(statement)
            statement = ""
    connection.execute(statement)


def pieces(rows: Sequence[Item]) -> Iterator[Sequence[Item]]:
    """Yield the rows in slices whose lengths are powers of two: few SQL statements are prepared."""
    start = 0
    while left := len(rows) - start:
        size = min(_ROWS, 1 << (left.bit_length() - 1))
        yield rows[start : start + size]
        start += size
