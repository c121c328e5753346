"""What there is to say of an agent, whether it runs or not."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from culture.cli.agents.resting import Rest, rest
from culture.clients.shared import pidfile
from culture.clients.shared.skill.call import CallFailed, call
from culture.config import paths

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
