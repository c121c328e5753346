"""The file of the page: who is logged in, and which links let somebody in. It holds digests, never secrets."""

import hashlib
import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from culture.config import paths

_VERSION = 2
_SCHEMA = (
    "DROP TABLE IF EXISTS sessions",
    """
CREATE TABLE sessions (
  digest TEXT PRIMARY KEY, id TEXT NOT NULL UNIQUE, account TEXT NOT NULL COLLATE NOCASE, browser TEXT NOT NULL,
  made REAL NOT NULL, seen REAL NOT NULL, ends REAL NOT NULL, uid INTEGER, standing TEXT
)""",
    "CREATE INDEX sessions_account ON sessions (account)",
    "CREATE TABLE IF NOT EXISTS links "
    "(digest TEXT PRIMARY KEY, account TEXT NOT NULL COLLATE NOCASE, ends REAL NOT NULL, used REAL)",
    f"PRAGMA user_version = {_VERSION}",
)
"""Whoever was logged in by the file of an earlier version logs in again."""
_BUSY = 5.0


def database_file(folder: Path) -> Path:
    """Where it is."""
    return folder / "sessions.db"


class WebDatabase:
    """The file, open; several processes may have it open at once."""

    def __init__(self, folder: Path) -> None:
        file = database_file(folder)
        os.close(paths.open_private(file, os.O_RDWR))
        self._connection = sqlite3.connect(file, timeout=_BUSY, isolation_level=None, check_same_thread=False)
        self._connection.execute("PRAGMA journal_mode=WAL")
        if self._version() != _VERSION:
            self._begin()

    def _version(self) -> object:
        return self.ask("PRAGMA user_version")[0][0]

    def _begin(self) -> None:
        self.do("BEGIN IMMEDIATE")
        if self._version() != _VERSION:  # somebody else may have been faster
            for statement in _SCHEMA:
                self.do(statement)
        self.do("COMMIT")

    def ask(self, sql: str, *values: object) -> list[tuple[object, ...]]:
        """The rows of an answer."""
        return self._connection.execute(sql, values).fetchall()

    def do(self, sql: str, *values: object) -> int:
        """How many rows were changed."""
        return self._connection.execute(sql, values).rowcount

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()


@contextmanager
def opened(folder: Path) -> Iterator[WebDatabase]:
    """The file for a moment."""
    database = WebDatabase(folder)
    try:
        yield database
    finally:
        database.close()


def new_secret() -> str:
    """Something nobody guesses."""
    return secrets.token_urlsafe(32)


def digest(secret: str) -> str:
    """What is kept of it."""
    return hashlib.sha256(secret.encode()).hexdigest()
