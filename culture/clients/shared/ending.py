"""Ending a daemon and all that its agent started."""

import asyncio
import signal
import sqlite3
from contextlib import closing
from enum import Enum

from culture.clients.shared import calling, pidfile
from culture.clients.shared.skill.call import CallFailed
from culture.config import paths
from culture.lib.process.handle import end_in_order, ends_within, pinned
from culture.lib.process.orphans import end_all

ASKED = 5.0
"""How long the daemon may take to say that it will stop."""
GRACE = 30.0
"""How long it may take to end its agent and be gone."""
TOLD = 10.0
"""How long after SIGTERM."""
KILLED = 10.0
_LOOK = 1.0  # how long its file may be busy


class Ended(Enum):
    """How a daemon went."""

    GONE = "has stopped"
    KILLED = "did not react and was killed"
    NOT_THERE = "is not running"
    STAYS = "cannot be ended"


async def end(nick: str, grace: float = GRACE, told: float = TOLD, asked: float = ASKED) -> tuple[Ended, int]:
    """End the daemon and what it leaves behind: how it went, and how many processes were left."""
    how = await _end(nick, grace, told, asked)
    left = tokens(nick) if how is not Ended.STAYS and pidfile.running(nick) is None else ()
    return how, sum([await end_all(token) for token in left])


def tokens(nick: str) -> tuple[str, ...]:
    """The marks of the processes that the last run of the daemon started, for its agent and for its supervisor."""
    file = paths.inbox_file(nick)
    if not file.exists():
        return ()
    with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True, timeout=_LOOK)) as records:
        try:
            rows = records.execute("SELECT value FROM notes WHERE key IN ('token', 'judge token')").fetchall()
        except sqlite3.OperationalError:
            # It was killed before it had written anything.
            return ()
    return tuple(str(row[0]) for row in rows)


async def _end(nick: str, grace: float, told: float, asked: float) -> Ended:
    """The process is pinned before its identity is checked, so a recycled pid is never signalled."""
    note = pidfile.running(nick)
    if note is None:
        return Ended.NOT_THERE
    with pinned(note.pid) as process:
        again = pidfile.running(nick)
        if process is None or again is None or again.pid != note.pid:
            return Ended.NOT_THERE
        return await _pressed(nick, process, grace, told, asked)


async def _pressed(nick: str, process: int, grace: float, told: float, asked: float) -> Ended:
    """Ask it, tell it, force it."""
    try:
        await calling.call(nick, "shutdown", patience=asked)
    except CallFailed:
        pass  # not ready yet, or hanging
    else:
        if await ends_within(process, grace):
            return Ended.GONE
    match await end_in_order(process, told, KILLED):
        case signal.SIGTERM:
            return Ended.GONE
        case signal.SIGKILL:
            return Ended.KILLED
        case _:
            return Ended.STAYS


def end_now(nick: str) -> tuple[Ended, int]:
    """The same for who has no loop."""
    return asyncio.run(end(nick))
