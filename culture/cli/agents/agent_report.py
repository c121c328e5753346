"""What there is to say of an agent, whether it runs or not."""

import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from culture.clients.shared import pidfile
from culture.clients.shared.skill.call import CallFailed, call
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


PATIENCE = 3.0
"""A daemon that lives answers at once."""
STOPPED, STARTING, SILENT = "stopped", "starting", "not answering"


def report(nick: str, backend: str, directory: str = "") -> dict[str, Any]:
    """The facts, with the same keys for every agent; nothing of the question appears on IRC."""
    note = pidfile.running(nick)
    if note is None:
        return _resting(nick, backend, STOPPED, directory)
    try:
        said = call(nick, "status", patience=PATIENCE)
    except CallFailed as failure:
        state = SILENT if note.ready else STARTING
        return {
            **_resting(nick, backend, state, directory),
            "pid": note.pid,
            "since": _moment(note.since),
            "why": str(failure) if note.ready else f"see {paths.log_file(nick)}",
        }
    facts: dict[str, Any] = {**_resting(nick, backend, STOPPED, directory), **_living(said), "pid": note.pid}
    if facts["last_message"] is None:
        facts["last_message"] = _last(rest(nick))
    return facts


def _living(said: object) -> Mapping[str, Any]:
    return said if isinstance(said, dict) else {}


def _resting(nick: str, backend: str, state: str, directory: str) -> dict[str, Any]:
    left = rest(nick)
    why = "paused" if left.paused else left.parked
    return {
        "nick": nick,
        "backend": backend,
        "state": state,
        "why": why,
        "task": None,
        "since": None,
        "tokens_today": left.tokens,
        "cost_usd_today": round(left.cost_usd, 6),
        "turns_today": left.turns,
        "cannot": [],
        "context_pct": None,
        "unread": left.unread,
        "stale": left.stale,
        "held": left.held,
        "held_by": [],
        "stood_down": left.stood_down,
        "held_dropped": 0,
        "last_message": _last(left),
        "connected": False,
        "session": None,
        "questions": 0,
        "quiet": False,
        "webhook": None,
        "directory": directory,
        "channels": [],
        "pid": None,
    }


def _last(left: Rest) -> dict[str, str] | None:
    if left.last_msgid is None or left.last_at is None:
        return None
    return {"msgid": left.last_msgid, "at": _moment(left.last_at)}


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat()
