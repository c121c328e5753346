"""The page's SQLite file: browser sessions and login links, as SHA-256 digests."""

import hashlib
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from culture.lib.files import create_private

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
"""Creates the tables; the sessions of an earlier version are dropped, so people log in again."""
_BUSY_TIMEOUT = 5.0


def database_file(folder: Path) -> Path:
    """Return the path of the web page's SQLite file in its data folder ``folder``."""
    return folder / "sessions.db"


class WebDatabase:
    """The web page's open SQLite file; several processes may have it open at once."""

    def __init__(self, folder: Path) -> None:
        file = database_file(folder)
        create_private(file)
        self._connection = sqlite3.connect(file, timeout=_BUSY_TIMEOUT, isolation_level=None, check_same_thread=False)
        self._connection.execute("PRAGMA journal_mode=WAL")
        if self._version() != _VERSION:
            self._create_tables()

    def _version(self) -> object:
        return self.ask("PRAGMA user_version")[0][0]

    def _create_tables(self) -> None:
        self.do("BEGIN IMMEDIATE")
        if self._version() != _VERSION:  # another process may have created them since
            for statement in _SCHEMA:
                self.do(statement)
        self.do("COMMIT")

    def ask(self, sql: str, *values: object) -> list[tuple[object, ...]]:
        """Run an SQL query with ``values`` for its placeholders and return its rows."""
        return self._connection.execute(sql, values).fetchall()

    def do(self, sql: str, *values: object) -> int:
        """Run an SQL statement with ``values`` for its placeholders; return how many rows changed."""
        return self._connection.execute(sql, values).rowcount

    def close(self) -> None:
        """Close the SQLite file."""
        self._connection.close()


@contextmanager
def open_database(folder: Path) -> Iterator[WebDatabase]:
    """Open the web page's SQLite file, which is in ``folder``, for the time of a ``with`` block."""
    database = WebDatabase(folder)
    try:
        yield database
    finally:
        database.close()


def new_secret() -> str:
    """Return a random secret of 256 bits, safe in an URL."""
    return secrets.token_urlsafe(32)


def digest(secret: str) -> str:
    """Return the SHA-256 of a secret, in hex; the SQLite file holds this, not the secret."""
    return hashlib.sha256(secret.encode()).hexdigest()
