"""What SQLite says of locks and disks, in the words of the Store."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from culture.skills.history.store import TooSlow, Unavailable

# What another try may mend.
_PASSING = ("locked", "busy", "full", "i/o", "unable to open", "readonly", "read-only")


@contextmanager
def translated() -> Iterator[None]:
    """Raise Unavailable or TooSlow in place of SQLite's own errors; what is our bug stays as it is."""
    try:
        yield
    except sqlite3.OperationalError as error:
        said = str(error).lower()
        if "interrupted" in said:
            raise TooSlow from error
        if any(word in said for word in _PASSING):
            raise Unavailable(str(error)) from error
        raise
    except OSError as error:
        raise Unavailable(str(error)) from error
