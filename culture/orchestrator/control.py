"""Requests of the command line to the running team, over its socket."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from culture.clients.shared.desk import RequestFailed
from culture.clients.shared.ipc import Request
from culture.orchestrator.errors import NoAnswer, NotHired, NotTaken
from culture.orchestrator.team import Team

Answer = dict[str, Any]
Do = Callable[[Team, Mapping[str, object]], Awaitable[Answer]]


class ControlSocket:
    """Answers requests of `culture team` commands; the request ``stop`` ends the orchestrator.

    The team's Unix socket calls ``answer`` for each request.
    """

    def __init__(self, team: Team, stop: Callable[[], None]) -> None:
        self._team = team
        self._stop = stop

    async def answer(self, request: Request) -> object:
        """Execute a request and return the data of the response; ``RequestFailed`` if it fails."""
        if request.type == "stop":
            self._stop()
            return {}
        do = _VERBS.get(request.type)
        if do is None:
            raise RequestFailed(f"{request.type!r} is no request; there are stop, {', '.join(_VERBS)}")
        try:
            return await do(self._team, request.fields)
        except (NotHired, NotTaken, NoAnswer) as why:
            raise RequestFailed(str(why)) from None


async def _hire(team: Team, fields: Mapping[str, object]) -> Answer:
    member = await team.spawn_agent(
        _text(fields, "role"), _text(fields, "task"), _text(fields, "text"), _text(fields, "by")
    )
    return {"nick": member.nick}


async def _retire(team: Team, fields: Mapping[str, object]) -> Answer:
    member = team.context.store.state.find_member(_text(fields, "who"))
    if member is None:
        raise RequestFailed(f"nobody in the team is called {fields['who']}")
    await team.dismiss(member)
    return {"nick": member.nick}


async def _budget(team: Team, fields: Mapping[str, object]) -> Answer:
    id = _text(fields, "whose")
    if id != "team" and id not in team.context.store.state.tasks:
        raise RequestFailed(f"there is no task {id}")
    usd, tokens = _number(fields, "usd"), _number(fields, "tokens")
    await team.allow(id, usd, None if tokens is None else int(tokens))
    return {"parked": sorted(team.context.store.state.parked)}


def _number(fields: Mapping[str, object], name: str) -> float | None:
    value = fields.get(name)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or value < 0):
        raise RequestFailed(f"{name} must be a number")
    return None if value is None else float(value)


def _text(fields: Mapping[str, object], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str) or not value.strip():
        raise RequestFailed(f"{name} is missing")
    return value


_VERBS: Mapping[str, Do] = {"hire": _hire, "retire": _retire, "budget": _budget}
