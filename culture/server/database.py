"""SQLite files: opened with what durability needs, and brought to the newest schema step by step; rows in bulk."""

import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

from culture.config import paths

BUSY = 0.5  # seconds to wait for somebody else's write before saying so
_ROWS = 512

Item = TypeVar("Item")

Step = str | Callable[[sqlite3.Connection], None]
"""One change of the schema: SQL, or a function that makes it. Steps are only ever added, at the end."""


_FILES = ("", "-wal")


class TooNew(Exception):
    """The file was written by a newer version of the program."""


class Deleted(OSError):
    """A file of an open database is not there any more under its name."""


class Database(sqlite3.Connection):
    """A connection that writes, and knows its files by their inodes.

    SQLite goes on in files that were deleted, moved or replaced, and every COMMIT succeeds; with the process all of it
    is gone. Without WAL SQLite itself compares the inode, too, before it writes.
    """

    _inodes: Mapping[str, int] = MappingProxyType({})

    def note_files(self, path: Path) -> None:
        """These are its files."""
        self._inodes = {file: os.stat(file).st_ino for suffix in _FILES if os.path.exists(file := f"{path}{suffix}")}

    def check_files(self) -> None:
        """Raise Deleted where one of them is gone."""
        for file, inode in self._inodes.items():
            try:
                is_there = os.stat(file).st_ino == inode
            except FileNotFoundError:
                is_there = False
            if not is_there:
                raise Deleted(f"{file} was deleted or replaced: put it back, or restart the server to begin a new one")


def open_database(path: Path, steps: Sequence[Step], *, busy: float = BUSY) -> Database:
    """Open for writing, for this user alone (0600), in WAL mode, every commit on disk when it returns.

    A file of an older schema is migrated in one transaction; one of a newer schema raises TooNew.
    The connection is in autocommit mode: whoever writes more than a row does it in a ``transaction``.
    """
    paths.private_directory(path.parent)
    if path.is_symlink() or not path.exists():
        # Never of a file that may be open: with any descriptor of it that is closed POSIX drops all locks that this
        # process has there, and the next program that closes the database takes away the -wal from under it.
        os.close(paths.open_private(path, os.O_RDWR))
    connection = sqlite3.connect(path, timeout=busy, isolation_level=None, check_same_thread=False, factory=Database)
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


def open_reader(path: Path, *, busy: float = BUSY) -> sqlite3.Connection:
    """Open to read only; writers are not held up."""
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=busy, isolation_level=None, check_same_thread=False
    )


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Change all of it, or nothing; Deleted where a file of the database is gone."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        if isinstance(connection, Database):
            connection.check_files()
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # a full disk may have undone it already
            connection.execute("ROLLBACK")
        raise


def migrate(connection: sqlite3.Connection, steps: Sequence[Step]) -> None:
    """Make the steps that this file has not seen; all of them, or none."""
    if version(connection) == len(steps):
        return
    with transaction(connection):
        done = version(connection)  # somebody else may have been first
        if done > len(steps):
            raise TooNew(f"schema {done}, and this program knows {len(steps)}: use the newer version of culture")
        for step in steps[done:]:
            _make(connection, step)
        connection.execute(f"PRAGMA user_version={len(steps)}")


def version(connection: sqlite3.Connection) -> int:
    """How many steps a file has seen."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _make(connection: sqlite3.Connection, step: Step) -> None:
    if callable(step):
        step(connection)
        return
    statement = ""
    for piece in step.split(";"):
        statement += f"{piece};"
        if sqlite3.complete_statement(statement):  # else the semicolon stood in a text, a comment or a trigger
            connection.execute(statement)
            statement = ""
    connection.execute(statement)


def pieces(rows: Sequence[Item]) -> Iterator[Sequence[Item]]:
    """The rows in pieces for a statement each, powers of two in size: SQLite has to understand few statements."""
    start = 0
    while left := len(rows) - start:
        size = min(_ROWS, 1 << (left.bit_length() - 1))
        yield rows[start : start + size]
        start += size
