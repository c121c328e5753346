"""Whoever has called somebody hears of the end: of their work, and of themselves."""

import asyncio

from culture.clients.shared.errands import WAITING, WORKING
from culture.config.team import ROLES
from culture.orchestrator.budget import goes_on
from culture.orchestrator.errors import NoAnswer
from culture.orchestrator.journal.state import TeamMember, What
from culture.orchestrator.members.hiring import MemberHiring
from culture.orchestrator.parts import TeamParts

_LONGEST = 4000
_INTERRUPTED = "interrupted"
_LONG, _MARGIN = 600.0, 15.0
"""How long the end of a turn is waited for at once, and how much longer for the answer."""


class Following:
    """Workers are followed until it is known whether their manager has heard of the end of their work."""

    def __init__(self, parts: TeamParts, hiring: MemberHiring) -> None:
        self._parts = parts
        self._hiring = hiring

    def take_up(self) -> None:
        """Follow every worker who is there: also successors, and those whom the last orchestrator followed."""
        for member in self._parts.book.state.members.values():
            if member.hired and not member.leaving:
                self.follow(member)

    def follow(self, member: TeamMember) -> None:
        """Whoever has done what they were hired for has told the manager so, or the team does."""
        if member.role in ROLES[2:] and self._key(member) not in self._parts.book.state.told:
            self._parts.jobs.start(f"follow {member.nick}", self._follow(member))

    async def lost(self, member: TeamMember, why: str) -> None:
        """A worker is gone without having finished, and nobody comes instead: the manager has to know."""
        task = self._parts.book.state.tasks.get(member.task_id or "")
        if member.role not in ROLES[2:] or task is None or task.manager is None or task.stage.is_over:
            return
        said = f"{member.name} ({member.role}) is gone, and nobody comes instead: {why}."
        await self._hiring.tell(task.manager, f"gone-{member.order_key}", said, task.channel)

    def _key(self, member: TeamMember) -> str:
        return f"finished {member.order_key}"

    async def _follow(self, member: TeamMember) -> None:
        """Until its turn is over, and somebody is there to be told."""
        parts, key, prompt = self._parts, self._key(member), member.order_key
        while parts.book.state.member(member.nick) is not None and key not in parts.book.state.told:
            try:
                told = await parts.daemons.call(
                    member.nick, "prompt", _LONG + _MARGIN, key=prompt, wait=True, timeout=_LONG
                )
            except NoAnswer:
                await asyncio.sleep(_MARGIN)
                continue
            if told.get("outcome") in (WAITING, WORKING):
                continue
            if told.get("outcome") == _INTERRUPTED and (later := self._gone_on_with(member)) not in (None, prompt):
                prompt = later
                continue
            if await self._is_told(member, key, str(told.get("text", ""))):
                parts.book.done(What.TOLD, key=key)
                return
            await asyncio.sleep(_MARGIN)

    def _gone_on_with(self, member: TeamMember) -> str | None:
        """The newest prompt with which somebody goes on who was stopped, as the budget was spent."""
        state = self._parts.book.state
        keys = [*state.prompts, *(entry.data["key"] for entry in state.pending(What.PROMPT))]
        return next((key for key in reversed(keys) if key.startswith(goes_on(member))), None)

    async def _is_told(self, member: TeamMember, key: str, text: str) -> bool:
        """Whether the manager knows; False while there is none."""
        task = self._parts.book.state.tasks.get(member.task_id or "")
        if task is None or task.stage.is_over:
            return True
        if task.manager is None:
            return False
        if not self._parts.rooms.has_just_called(member.nick, task.manager):
            place = member.channels[0]
            said = f"{member.name} ({member.role}) has ended its turn in {place}: {text[:_LONGEST] or '(silent)'}"
            await self._hiring.tell(task.manager, key.replace(" ", "-"), said, place)
        return True
