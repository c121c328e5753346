"""What a person at a terminal asks the running team for, over its socket."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from culture.clients.shared.desk import RequestFailed
from culture.clients.shared.ipc import Request
from culture.orchestrator.errors import NoAnswer, NotHired, NotTaken
from culture.orchestrator.team import Team

Answer = dict[str, Any]
Do = Callable[[Team, Mapping[str, object]], Awaitable[Answer]]


class ControlSocket:
    """Answers requests; ``stop`` is called when the orchestrator is to end."""

    def __init__(self, team: Team, stop: Callable[[], None]) -> None:
        self._team = team
        self._stop = stop

    async def answer(self, request: Request) -> object:
        """The response's data; RequestFailed says why there is none."""
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


async def _hire(team: Team, said: Mapping[str, object]) -> Answer:
    member = await team.spawn_agent(_text(said, "role"), _text(said, "task"), _text(said, "text"), _text(said, "by"))
    return {"nick": member.nick}


async def _retire(team: Team, said: Mapping[str, object]) -> Answer:
    member = team.parts.book.state.named(_text(said, "who"))
    if member is None:
        raise RequestFailed(f"nobody in the team is called {said['who']}")
    await team.dismiss(member)
    return {"nick": member.nick}


async def _budget(team: Team, said: Mapping[str, object]) -> Answer:
    id = _text(said, "whose")
    if id != "team" and id not in team.parts.book.state.tasks:
        raise RequestFailed(f"there is no task {id}")
    usd, tokens = _number(said, "usd"), _number(said, "tokens")
    await team.allow(id, usd, None if tokens is None else int(tokens))
    return {"parked": sorted(team.parts.book.state.parked)}


def _number(said: Mapping[str, object], name: str) -> float | None:
    value = said.get(name)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or value < 0):
        raise RequestFailed(f"{name} must be a number")
    return None if value is None else float(value)


def _text(said: Mapping[str, object], name: str) -> str:
    value = said.get(name)
    if not isinstance(value, str) or not value.strip():
        raise RequestFailed(f"{name} is missing")
    return value


_VERBS: Mapping[str, Do] = {"hire": _hire, "retire": _retire, "budget": _budget}
