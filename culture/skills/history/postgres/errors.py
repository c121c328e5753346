"""What PostgreSQL and the way to it say, in the words of the Store."""

from collections.abc import Iterator
from contextlib import contextmanager

from culture.skills.history.postgres.driver import asyncpg
from culture.skills.history.store import TooSlow, Unavailable

# Classes of SQLSTATE that another try may mend: connection, rollback, resources (disk, memory, connections),
# state of an object (locks), intervention (shutdown, restart), system (I/O); and some that only look final.
_PASSING = ("08", "40", "53", "55", "57", "58", "25P03", "25006")
_CANCELLED = "57014"  # by statement_timeout, or by hand
# Whoever has to put these right reads the configuration: who we are, which database, what we may do there.
_CONFIGURED = ("28", "3D", "42501", "0A000")


class Misconfigured(Exception):
    """The database does not let us in as the configuration says; the text names no password."""


@contextmanager
def translated(where: str = "") -> Iterator[None]:
    """Raise Unavailable, TooSlow or Misconfigured in place of the driver's errors; what is our bug stays as it is."""
    try:
        yield
    except asyncpg.PostgresError as error:
        raise _meaning(error, where) from error
    except (OSError, TimeoutError, asyncpg.InterfaceError) as error:
        if isinstance(error, ValueError):  # what we asked for, not the way to it
            raise
        raise Unavailable(f"{where}: {_said(error)}" if where else _said(error)) from error


def _meaning(error: BaseException, where: str) -> BaseException:
    code = str(getattr(error, "sqlstate", "") or "")
    text = f"{where}: {_said(error)}" if where else _said(error)
    if code == _CANCELLED:
        return TooSlow(text)
    if code.startswith(_PASSING):
        return Unavailable(text)
    return Misconfigured(text) if code.startswith(_CONFIGURED) else error


def _said(error: BaseException) -> str:
    return str(error).splitlines()[0] if str(error) else "no answer in time"


def is_deadlock(error: BaseException) -> bool:
    """Did several servers wait for each other?"""
    return isinstance(error, asyncpg.DeadlockDetectedError)
