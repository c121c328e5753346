"""The facts of one agent for `culture status`, from its daemon or else from its database."""

import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from culture.clients.shared import pidfile
from culture.clients.shared.skill.call import CallFailed, call
from culture.config import paths
from culture.protocol.vocabulary import FactKind

if TYPE_CHECKING:
    from culture.cli.agents.irc_session import IrcPerson

FILE_TIMEOUT = 1.0


@dataclass(frozen=True, slots=True)
class StoredState:
    """The state of an agent that does not run, from its database; use and cost are today's."""

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


def read_database(nick: str) -> StoredState:
    """Return the state in an agent's database; all numbers are 0 if there is no database."""
    with _opened(nick) as records:
        if records is None:
            return StoredState()
        # Messages that were given but not answered are delivered again at the next start.
        unread, stale = records.execute(
            "SELECT count(*), coalesce(sum(stale), 0) FROM messages WHERE state IN ('unread', 'given')"
        ).fetchone()
        tokens, cost, turns = records.execute(
            "SELECT coalesce(sum(tokens), 0), coalesce(sum(cost_usd), 0), count(*) FROM turns WHERE began >= ?",
            (midnight(),),
        ).fetchone()
        last = records.execute("SELECT msgid, said FROM messages ORDER BY number DESC LIMIT 1").fetchone()
        held = _count_held(records)
        paused, parked, down = (_note(records, key) for key in ("paused", "parked", "stood down"))
    msgid, at = last or (None, None)
    return StoredState(
        unread, stale, tokens, cost, turns, paused is not None, parked, msgid, at, held, down is not None
    )


def _count_held(records: sqlite3.Connection) -> int:
    """Return the number of messages in an agent's database that wait for a person's release.

    They are counted as a running daemon counts them. ``records``: the database.
    """
    (held,) = records.execute("SELECT count(*) FROM messages WHERE state IN ('unvouched', 'held')").fetchone()
    try:
        (withheld,) = records.execute("SELECT count(*) FROM withheld WHERE NOT released").fetchone()
    except sqlite3.OperationalError:
        withheld = 0  # database of an older version
    return int(held) + int(withheld)


def midnight() -> float:
    """Return the start of today (local time) in seconds since 1970."""
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
"""Seconds to wait for a daemon; a healthy one answers at once."""
STOPPED, STARTING, SILENT = "stopped", "starting", "not answering"


def report(nick: str, backend: str, directory: str = "") -> dict[str, Any]:
    """Return the status of one agent as a dict, with the same keys for every agent.

    It comes from the agent's daemon, or from its database if the daemon does not run or answer; IRC is not used.
    ``backend`` and ``directory``: those in agents.yaml.
    """
    note = pidfile.running(nick)
    if note is None:
        return _stored_facts(nick, backend, STOPPED, directory)
    try:
        answer = call(nick, "status", patience=PATIENCE)
    except CallFailed as failure:
        state = SILENT if note.ready else STARTING
        return {
            **_stored_facts(nick, backend, state, directory),
            "pid": note.pid,
            "since": _iso_time(note.since),
            "why": str(failure) if note.ready else f"see {paths.log_file(nick)}",
        }
    facts: dict[str, Any] = {**_stored_facts(nick, backend, STOPPED, directory), **_as_facts(answer), "pid": note.pid}
    if facts["last_message"] is None:
        facts["last_message"] = _last_message(read_database(nick))
    return facts


def _as_facts(answer: object) -> Mapping[str, Any]:
    return answer if isinstance(answer, dict) else {}


def _stored_facts(nick: str, backend: str, state: str, directory: str) -> dict[str, Any]:
    left = read_database(nick)
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
        "last_message": _last_message(left),
        "connected": False,
        "session": None,
        "questions": 0,
        "quiet": False,
        "webhook": None,
        "directory": directory,
        "channels": [],
        "pid": None,
    }


def _last_message(left: StoredState) -> dict[str, str] | None:
    if left.last_msgid is None or left.last_at is None:
        return None
    return {"msgid": left.last_msgid, "at": _iso_time(left.last_at)}


def _iso_time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat()


_MOST = "limit=1000"


async def mesh_reports(who: "IrcPerson") -> list[dict[str, Any]]:
    """Return the status of each agent of the mesh as a dict, from the facts in the ledger.

    ``who``: the person as whom to connect.
    """
    # Only `status --all` needs a connection, which takes long to load.
    from culture.cli.agents.irc_session import connected
    from culture.ledger_views.agents import agents
    from culture.ledger_views.ledger import facts, online

    async with connected(who) as transport:
        states = await facts(transport, FactKind.STATE, "*", _MOST)
        questions = await facts(transport, FactKind.QUESTION, "*", _MOST)
        here = await online(transport, [fact.nick for fact in states])
    return [agent.as_data() for agent in agents([*states, *questions], here)]
