"""What the file of an agent tells while its daemon does not run; it is only looked at."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime

from culture.config import paths

FILE_TIMEOUT = 1.0


@dataclass(frozen=True, slots=True)
class Rest:
    """What an agent that is not running has left."""

    unread: int = 0
    stale: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    turns: int = 0
    paused: bool = False
    parked: str | None = None
    last_msgid: str | None = None
    last_at: float | None = None
    held: int = 0
    stood_down: bool = False


def rest(nick: str) -> Rest:
    """What is in the file; nothing, when there is none."""
    with _opened(nick) as records:
        if records is None:
            return Rest()
        # What was given and not answered comes again at the next start.
        unread, stale = records.execute(
            "SELECT count(*), coalesce(sum(stale), 0) FROM messages WHERE state IN ('unread', 'given')"
        ).fetchone()
        tokens, cost, turns = records.execute(
            "SELECT coalesce(sum(tokens), 0), coalesce(sum(cost_usd), 0), count(*) FROM turns WHERE began >= ?",
            (midnight(),),
        ).fetchone()
        last = records.execute("SELECT msgid, said FROM messages ORDER BY number DESC LIMIT 1").fetchone()
        held = _held(records)
        paused, parked, down = (_note(records, key) for key in ("paused", "parked", "stood down"))
    msgid, at = last or (None, None)
    return Rest(unread, stale, tokens, cost, turns, paused is not None, parked, msgid, at, held, down is not None)


def _held(records: sqlite3.Connection) -> int:
    """How many messages wait for a person's word, as a daemon that runs counts them."""
    (held,) = records.execute("SELECT count(*) FROM messages WHERE state IN ('unvouched', 'held')").fetchone()
    try:
        (said,) = records.execute("SELECT count(*) FROM withheld WHERE NOT released").fetchone()
    except sqlite3.OperationalError:
        said = 0  # the file of a daemon of before
    return int(held) + int(said)


def midnight() -> float:
    """When today began here."""
    return datetime.fromtimestamp(time.time()).replace(hour=0, minute=0, second=0, microsecond=0).timestamp()


def _note(records: sqlite3.Connection, key: str) -> str | None:
    row = records.execute("SELECT value FROM notes WHERE key = ?", (key,)).fetchone()
    return str(row[0]) if row else None


@contextmanager
def _opened(nick: str) -> Iterator[sqlite3.Connection | None]:
    file = paths.inbox_file(nick)
    if not file.exists():
        yield None
        return
    with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True, timeout=FILE_TIMEOUT)) as records:
        yield records
