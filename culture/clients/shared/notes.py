"""The small facts a daemon keeps over a restart: how far it has heard and read, its session, whether it is paused."""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from culture.clients.shared.budget import Quota
from culture.clients.shared.records import Records
from culture.protocol.names import fold
from culture.transport import ReceiveMark

REFERENCES = 8
"""So many messages are remembered as the last that were heard: a server that crashed may have lost the newest."""
_MARK, _SESSION, _PAUSED, _TOKEN, _PARKED = "mark", "session", "paused", "token", "parked"
_STOOD_DOWN = "stood down"
_BUDGET_TOLD, _LIMITED, _SPENT_BEFORE, _QUOTAS = "budget told", "limited until", "spent before", "quotas"
_HELD = "held"
_HELD_DROPPED = "held dropped"
_RUNNING = "running"
_JUDGE = "judge token"
_ALLOWED = "allowed"
_READ = "read "
_GREETED = "greeted"
_WORKED, _HELD_PAIRS = "worked at", "held pairs"
_WORK_EVENTS, _UNFINISHED = "work events", "unfinished tasks"


class Notes:
    """Values under keys; a note that was never made is None."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self.has_gap: Callable[[], bool] = lambda: False
        """Whether something from before what is heard now is outstanding; then the mark stays."""
        self._heard: list[str] = list(mark.msgids) if (mark := self.mark()) else []

    def _get(self, key: str) -> str | None:
        row = self._records.execute("SELECT value FROM notes WHERE key = ?", (key,)).fetchone()
        return row[0] if row else None

    def _set(self, key: str, value: str | None) -> None:
        if value is None:
            self._records.execute("DELETE FROM notes WHERE key = ?", (key,))
        else:
            self._records.execute("INSERT OR REPLACE INTO notes VALUES (?, ?)", (key, value))

    def heard(self, msgid: str, at: datetime) -> None:
        """This message is the last that arrived."""
        if msgid in self._heard or self.has_gap():
            return
        self._heard = [msgid, *self._heard[: REFERENCES - 1]]
        self._set(_MARK, json.dumps([self._heard, at.timestamp()]))

    def begin_at(self, mark: ReceiveMark | None) -> None:
        """What comes from now on is not to be missed, also when nothing was ever heard."""
        if mark is not None and self._get(_MARK) is None:
            self._heard = list(mark.msgids)
            self._set(_MARK, json.dumps([self._heard, mark.time.timestamp()]))

    def mark(self) -> ReceiveMark | None:
        """How far this agent has heard; None when it never heard anything."""
        said = self._get(_MARK)
        if said is None:
            return None
        msgids, at = json.loads(said)
        return ReceiveMark(tuple(msgids), datetime.fromtimestamp(at).astimezone())

    def read(self, place: str) -> str | None:
        """The last message of a place that the agent has read."""
        return self._get(_READ + fold(place))

    def set_read(self, place: str, msgid: str) -> None:
        """The agent has read up to this message."""
        self._set(_READ + fold(place), msgid)

    @property
    def session(self) -> str | None:
        """The session to take up again."""
        return self._get(_SESSION)

    @session.setter
    def session(self, value: str | None) -> None:
        self._set(_SESSION, value)

    @property
    def paused(self) -> bool:
        """Whether a person has paused the agent."""
        return self._get(_PAUSED) is not None

    @paused.setter
    def paused(self, value: bool) -> None:
        self._set(_PAUSED, "yes" if value else None)

    @property
    def parked(self) -> str | None:
        """Why nothing is given to the agent until a person resumes it."""
        return self._get(_PARKED)

    @parked.setter
    def parked(self, value: str | None) -> None:
        self._set(_PARKED, value)

    @property
    def stood_down(self) -> bool:
        """Whether only people wake the agent."""
        return self._get(_STOOD_DOWN) is not None

    @stood_down.setter
    def stood_down(self, value: bool) -> None:
        self._set(_STOOD_DOWN, "yes" if value else None)

    @property
    def held(self) -> str | None:
        """The task on which the agent is stuck; nothing is given to it until a person has had a look."""
        return self._get(_HELD)

    @held.setter
    def held(self, value: str | None) -> None:
        self._set(_HELD, value)

    @property
    def held_dropped(self) -> int:
        """How many held messages gave way to newer ones since a person last released some."""
        return int(self._get(_HELD_DROPPED) or 0)

    @held_dropped.setter
    def held_dropped(self, value: int) -> None:
        self._set(_HELD_DROPPED, str(value) if value else None)

    @property
    def budget_told(self) -> str | None:
        """What was last said of the budget."""
        return self._get(_BUDGET_TOLD)

    @budget_told.setter
    def budget_told(self, value: str | None) -> None:
        self._set(_BUDGET_TOLD, value)

    @property
    def limited_until(self) -> float | None:
        """Until when the provider gives nothing more."""
        said = self._get(_LIMITED)
        return None if said is None else float(said)

    @limited_until.setter
    def limited_until(self, value: float | None) -> None:
        self._set(_LIMITED, None if value is None else str(value))

    @property
    def running(self) -> tuple[int, float]:
        """The tokens and dollars that the present turn has used so far."""
        tokens, _, cost_usd = (self._get(_RUNNING) or "0").partition(" ")
        return int(tokens), float(cost_usd or 0)

    @running.setter
    def running(self, value: tuple[int, float]) -> None:
        self._set(_RUNNING, f"{value[0]} {value[1]:.6f}" if any(value) else None)

    @property
    def quotas(self) -> dict[str, Quota]:
        """What the provider last told of the windows of a subscription, by their names."""
        return {name: Quota(name, *figures) for name, figures in json.loads(self._get(_QUOTAS) or "{}").items()}

    @quotas.setter
    def quotas(self, value: Mapping[str, Quota]) -> None:
        figures = {name: (each.used, each.resets) for name, each in value.items()}
        self._set(_QUOTAS, json.dumps(figures) if figures else None)

    @property
    def spent_before(self) -> tuple[float, float, float]:
        """Tokens, money and turns of what is no longer known turn by turn."""
        said = self._get(_SPENT_BEFORE)
        tokens, cost, turns = json.loads(said) if said is not None else (0, 0, 0)
        return float(tokens), float(cost), float(turns)

    def add_spent_before(self, tokens: int, cost_usd: float, turns: int) -> None:
        """So much more is forgotten turn by turn."""
        if turns:
            before = self.spent_before
            self._set(_SPENT_BEFORE, json.dumps([before[0] + tokens, before[1] + cost_usd, before[2] + turns]))

    @property
    def allowed(self) -> tuple[str, ...]:
        """The uses of tools that a person has allowed for good, as patterns."""
        return tuple(json.loads(self._get(_ALLOWED) or "[]"))

    @allowed.setter
    def allowed(self, value: tuple[str, ...]) -> None:
        self._set(_ALLOWED, json.dumps(list(dict.fromkeys(value))))

    @property
    def worked_at(self) -> float:
        """When the agent last began to do work, in seconds since 1970."""
        return float(self._get(_WORKED) or 0)

    @worked_at.setter
    def worked_at(self, value: float) -> None:
        self._set(_WORKED, str(value))

    @property
    def held_pairs(self) -> frozenset[str]:
        """The agents, folded, whose messages wait until they or this one have done work."""
        return frozenset(json.loads(self._get(_HELD_PAIRS) or "[]"))

    @held_pairs.setter
    def held_pairs(self, value: frozenset[str]) -> None:
        self._set(_HELD_PAIRS, json.dumps(sorted(value)) if value else None)

    @property
    def greeted(self) -> frozenset[str]:
        """Those who were welcomed, folded."""
        return frozenset(json.loads(self._get(_GREETED) or "[]"))

    def greet(self, nick: str) -> None:
        """Somebody is welcomed."""
        self._set(_GREETED, json.dumps(sorted(self.greeted | {fold(nick)})))

    @property
    def work_events(self) -> list[dict[str, Any]]:
        """What came between the agent and its work, and it has not been told."""
        return list(json.loads(self._get(_WORK_EVENTS) or "[]"))

    @work_events.setter
    def work_events(self, value: Sequence[Mapping[str, Any]]) -> None:
        self._set(_WORK_EVENTS, json.dumps(list(value)) if value else None)

    @property
    def unfinished_tasks(self) -> dict[str, dict[str, Any]]:
        """The tasks whose turn has ended and which go on, by their folded places."""
        return dict(json.loads(self._get(_UNFINISHED) or "{}"))

    @unfinished_tasks.setter
    def unfinished_tasks(self, value: Mapping[str, Mapping[str, Any]]) -> None:
        self._set(_UNFINISHED, json.dumps(dict(value)) if value else None)

    @property
    def token(self) -> str | None:
        """The mark of every process that the last run of this daemon started."""
        return self._get(_TOKEN)

    @token.setter
    def token(self, value: str | None) -> None:
        self._set(_TOKEN, value)

    @property
    def judge_token(self) -> str | None:
        """The mark of every process that the last supervisor of this agent started."""
        return self._get(_JUDGE)

    @judge_token.setter
    def judge_token(self, value: str | None) -> None:
        self._set(_JUDGE, value)
