"""What SQLite says of locks and disks, in the words of the Store."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from culture.skills.history.store import Damaged, TooSlow, Unavailable

# What another try may mend.
_PASSING = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_PROTOCOL,
    }
)

_DAMAGE = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


@contextmanager
def translated() -> Iterator[None]:
    """Raise Unavailable, Damaged or TooSlow in place of SQLite's own errors; what is our bug stays as it is."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the rest says which kind of it
        if code == sqlite3.SQLITE_INTERRUPT:
            raise TooSlow from error
        if code in _DAMAGE:
            raise Damaged(f"{error}: stop the server, then restore a backup or move the file away") from error
        if code in _PASSING:
            raise Unavailable(str(error)) from error
        raise
    except OSError as error:
        raise Unavailable(str(error)) from error
