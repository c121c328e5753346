"""What the team, a task and a member may spend: when it is gone, nobody works on it until a person says so."""

import asyncio
import logging

from culture.config.team import TeamConfig
from culture.orchestrator.errors import NoAnswer
from culture.orchestrator.journal.state import TeamMember, TeamState, What
from culture.orchestrator.members.hiring import SEEN, MemberHiring
from culture.orchestrator.parts import TeamParts

log = logging.getLogger(__name__)

TEAM = "team"
GO_ON = """The budget of {id} was spent while you were at work, and you were stopped in the middle of it. More may be
used now: look where you were, and go on."""


def goes_on(member: TeamMember) -> str:
    """How the keys of the prompts begin with which somebody goes on who was stopped."""
    return f"goon-{member.nick}-"


def allowance(config: TeamConfig, state: TeamState, id: str) -> tuple[float | None, int | None]:
    """Dollars and tokens that may be used for a task, or by the team; None is no limit."""
    said = state.allowances.get(id)
    if said is not None:
        return said
    limit = config.budget.team if id == TEAM else config.budget.task
    return limit.usd, limit.tokens


def used(state: TeamState, id: str) -> tuple[float, int]:
    """What was used for a task, or by the team."""
    return (state.usd(), state.tokens()) if id == TEAM else (state.task_usd(id), state.task_tokens(id))


class Budget:
    """Looks at what was used whenever that has changed. A member's own limit is kept by its daemon."""

    def __init__(self, parts: TeamParts, hiring: MemberHiring) -> None:
        self._parts = parts
        self._hiring = hiring
        self._turn = asyncio.Lock()
        """Who stops and who goes on is decided for one after the other: else the last of a stop outlive its end."""

    async def look(self) -> None:
        """Stop what has spent its share, and let go on what may again."""
        async with self._turn:
            for id in (TEAM, *(task.id for task in self._parts.book.state.live_tasks())):
                gone = self._is_gone(id)
                if gone and not self._is_stopped(id):
                    await self._park(id)
                elif not gone and id in self._parts.book.state.parked:
                    await self._release(id)

    def _is_stopped(self, id: str) -> bool:
        """Whether everybody concerned was told to stop, and people that it is so."""
        state = self._parts.book.state
        return id in state.parked and all(entry.data["id"] != id for entry in state.pending(What.PARK))

    def is_parked(self, member: TeamMember) -> bool:
        """Whether somebody may not work."""
        return bool(self._parts.book.state.parked & {TEAM, member.task_id or ""})

    async def hold(self, member: TeamMember) -> None:
        """Somebody who may not work, such as after a restart, does not."""
        async with self._turn:
            if self.is_parked(member):
                await self._order(member, "pause")

    async def _stop(self, member: TeamMember, id: str) -> None:
        """The tool call that is running ends, then the turn does (decision 22); what was broken off is gone on with."""
        key, text = f"{goes_on(member)}{self._parts.book.state.number}", GO_ON.format(id=id)
        try:
            is_at_work = (await self._parts.daemons.call(member.nick, "status")).get("state") in SEEN
            if is_at_work:
                self._hiring.promise(member.nick, key, text, member.channels[0])
            await self._parts.daemons.call(member.nick, "pause", soon=True)
        except NoAnswer as why:
            # One that was started before an upgrade knows only the end of its turn.
            log.warning("%s is not stopped at once: %s", member.nick, why)
            await self._order(member, "pause")
            return
        if is_at_work:
            # It is kept by the daemon, as whatever is said to it, until it may work again.
            await self._hiring.tell(member.nick, key, text, member.channels[0])

    def _is_gone(self, id: str) -> bool:
        state = self._parts.book.state
        (usd, tokens), (used_usd, used_tokens) = allowance(self._parts.config, state, id), used(state, id)
        return (usd is not None and used_usd >= usd) or (tokens is not None and used_tokens >= tokens)

    async def _park(self, id: str) -> None:
        parts = self._parts
        parts.book.intend(What.PARK, id=id)
        for member in self._concerned(id):
            await self._stop(member, id)
        usd, tokens = used(parts.book.state, id)
        text = (
            f"[BUDGET] {id} has used ${usd:.2f} and {tokens} tokens, all that it may. Nobody works on it until a "
            f"person allows more: culture team budget {'' if id == TEAM else f'{id} '}--usd N or --tokens N."
        )
        task = parts.book.state.tasks.get(id)
        rooms = (parts.config.project_channel, parts.config.standup_channel, *((task.channel,) if task else ()))
        await parts.rooms.say_once(f"budget {id} {usd:.4f} {tokens}", text, *rooms)
        parts.book.done(What.PARK, id=id)

    async def _release(self, id: str) -> None:
        """First everybody, then the book: whoever was left out by a crash is told at the next look."""
        others = self._parts.book.state.parked - {id}
        for member in self._concerned(id):
            if not others & {TEAM, member.task_id or ""}:
                await self._order(member, "resume")
        self._parts.book.done(What.RELEASE, id=id)
        await self._parts.rooms.say(self._parts.config.standup_channel, f"[BUDGET] {id} goes on.")

    def _concerned(self, id: str) -> list[TeamMember]:
        state = self._parts.book.state
        return list(state.members.values()) if id == TEAM else state.team_of(id)

    async def _order(self, member: TeamMember, verb: str) -> None:
        try:
            await self._parts.daemons.call(member.nick, verb)
        except NoAnswer as why:
            log.warning("%s was not told to %s: %s", member.nick, verb, why)
