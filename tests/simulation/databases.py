"""SQLite connections whose commits take virtual time, can fail, and note what they made durable.

A connection of the product is of its own class (``culture.server.database.Database``) or of ``sqlite3.Connection``;
here it gets the methods of ``Recorded`` before its own. Everything else is the real SQLite.
"""

import sqlite3
from functools import cache
from typing import TYPE_CHECKING, Any

from tests.simulation.threads import thread_or_none

if TYPE_CHECKING:
    from tests.simulation.world import Host

_COMMIT = 0.0008
_RETRY = 0.002
_LEVELS = {"OFF": 0, "NORMAL": 1, "FULL": 2, "EXTRA": 3, "0": 0, "1": 1, "2": 2, "3": 3}
_FULL = 2
_DEFINITIONS = ("CREATE", "ALTER", "DROP", "PRAGMA user_version")
_WRITES = ("INSERT", "UPDATE", "DELETE", "REPLACE", *_DEFINITIONS)
_SMALL_LOG = 24  # pages after which a checkpoint comes, in half of the lives; SQLite's own 1,000 are rarely reached


class Recorded(sqlite3.Connection):
    """A connection that writes."""

    host: "Host"
    path = ""
    patience = 0.0
    level = _FULL
    changes_before = 0
    has_new_schema = False
    """Whether the transaction has changed the tables."""

    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        """Run a statement; a COMMIT takes time, and a crash may come before and after it."""
        if sql == "COMMIT":
            return self._commit()
        if sql.startswith("BEGIN"):
            self.changes_before, self.has_new_schema = self.total_changes, False
        if self._trouble() and not self.in_transaction and sql.startswith(_WRITES):
            return self._write_in_trouble(sql, *parameters)
        schema = self._schema() if sql.startswith(_DEFINITIONS) else None
        result = self._patiently(sql, *parameters)
        if schema is not None and schema != self._schema():
            self.has_new_schema = True
        if sql.startswith("PRAGMA synchronous="):
            self.level = _LEVELS[sql.partition("=")[2].strip().upper()]
        elif not self.in_transaction and not sql.startswith("SELECT"):
            self._note()
        return result

    def executemany(self, *parameters: Any) -> sqlite3.Cursor:
        """Run a statement several times."""
        if self.in_transaction or not self._trouble():
            result = super().executemany(*parameters)
        else:
            self.execute("BEGIN")
            result = super().executemany(*parameters)
            self.execute("COMMIT")
        if not self.in_transaction:
            self._note()
        return result

    def close(self) -> None:
        """Close the connection; the last one of a database makes a checkpoint and deletes the log."""
        super().close()
        if self.host.is_alive and self.host.disk is not None:
            self.host.disk.note_commit(self.path, is_synced=False)

    def _patiently(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        """Wait in virtual time for another writer, as SQLite would in real time."""
        world, thread = self.host.world, thread_or_none()
        until = world.now + self.patience
        while True:
            try:
                return super().execute(sql, *parameters)
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or thread is None or world.now >= until:
                    raise
                thread.wait(_RETRY)

    def _write_in_trouble(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        """Run a statement that may write, outside of a transaction, while writes fail."""
        self.execute("BEGIN")
        result = self.execute(sql, *parameters)
        self.execute("COMMIT")
        return result

    def _schema(self) -> list[Any]:
        versions = ("PRAGMA schema_version", "PRAGMA user_version")
        return [sqlite3.Connection.execute(self, each).fetchone() for each in versions]

    def _has_changes(self) -> bool:
        """Return whether there is anything to commit: else nothing is written, and nothing fails."""
        return self.has_new_schema or self.total_changes != self.changes_before

    def _trouble(self) -> str:
        """Return the trouble that this connection meets: without a sync it does not see that one fails."""
        assert self.host.disk is not None
        trouble = self.host.disk.trouble
        return trouble if trouble == "full" or self.level >= _FULL else ""

    def _commit(self) -> sqlite3.Cursor:
        disk, world = self.host.disk, self.host.world
        assert disk is not None
        disk.pass_point("before", self.path, world.delay(_COMMIT))
        if (trouble := self._trouble()) and self._has_changes():
            world.happened[trouble] += 1
            super().execute("ROLLBACK")
            raise _error(trouble)
        result = self._patiently("COMMIT")
        self._note()
        world.note("commit", self.host.name, self.path[-20:])
        disk.pass_point("after", self.path, world.delay(_COMMIT / 4))
        return result

    def _note(self) -> None:
        assert self.host.disk is not None
        self.host.disk.note_commit(self.path, is_synced=self.level >= _FULL)


def _error(kind: str) -> sqlite3.OperationalError:
    """Return the error that SQLite raises while the disk is full, or cannot be synced."""
    error = sqlite3.OperationalError("database or disk is full" if kind == "full" else "disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_FULL if kind == "full" else sqlite3.SQLITE_IOERR_FSYNC
    error.sqlite_errorname = "SQLITE_FULL" if kind == "full" else "SQLITE_IOERR_FSYNC"
    return error


@cache
def _recorded(kind: type[sqlite3.Connection]) -> type[Recorded]:
    return type(f"Recorded{kind.__name__}", (Recorded, kind), {})


def connect(host: "Host", database: Any, **options: Any) -> sqlite3.Connection:
    """Open a database of a host, with the options of ``sqlite3.connect``."""
    assert host.disk is not None
    patience = options.pop("timeout", 5.0)
    if "mode=ro" in str(database):
        reader: sqlite3.Connection = sqlite3.connect(database, timeout=0, **options)
        host.disk.connections.append(reader)
        return reader
    kind = _recorded(options.pop("factory", sqlite3.Connection))
    connection: Recorded = sqlite3.connect(database, timeout=0, factory=kind, **options)
    connection.host, connection.path, connection.patience = host, str(database), patience
    host.disk.connections.append(connection)
    if host.world.chance.random() < 0.5:
        sqlite3.Connection.execute(connection, f"PRAGMA wal_autocheckpoint={_SMALL_LOG}")
    return connection
