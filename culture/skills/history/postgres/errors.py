"""What PostgreSQL and the way to it say, in the words of the Store."""

from collections.abc import Iterator
from contextlib import contextmanager

from culture.skills.history.postgres.driver import asyncpg
from culture.skills.history.store import Misconfigured, Unavailable

# Classes of SQLSTATE that another try may mend: connection, rollback, resources (disk, memory, connections),
# state of an object (locks), intervention (shutdown, restart), system (I/O); and some that only look final.
_PASSING = ("08", "40", "53", "55", "57", "58", "25P03", "25006")
# What somebody has to put right first: who we are, which database, what we may do there, that its tables are there.
_CONFIGURED = ("28", "3D", "42501", "42P01", "0A000")


@contextmanager
def translated(*, is_open: bool = True) -> Iterator[None]:
    """Raise Unavailable or Misconfigured in place of the driver's errors; what is our bug stays as it is.

    Where we were let in once, what is misconfigured is for somebody to mend while we try again.
    """
    try:
        yield
    except asyncpg.PostgresError as error:
        code = str(error.sqlstate or "")
        if code.startswith(_PASSING) or (is_open and code.startswith(_CONFIGURED)):
            raise Unavailable(_said(error)) from error
        if code.startswith(_CONFIGURED):
            raise Misconfigured(_said(error)) from error
        raise
    except (OSError, TimeoutError, asyncpg.InterfaceError, asyncpg.TargetServerAttributeNotMatched) as error:
        if isinstance(error, ValueError):  # what we asked for, not the way to it
            raise
        raise Unavailable(_said(error)) from error


def _said(error: BaseException) -> str:
    return str(error).splitlines()[0] if str(error) else "the database does not answer in time"


def is_deadlock(error: BaseException) -> bool:
    """Did several servers wait for each other?"""
    return isinstance(error, asyncpg.DeadlockDetectedError)
