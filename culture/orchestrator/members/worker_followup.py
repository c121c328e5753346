"""Worker follow-up: a manager learns when its worker has finished or is gone."""

import asyncio

from culture.clients.shared.errands import WAITING, WORKING
from culture.config.team import ROLES
from culture.orchestrator.budget import resume_key_prefix
from culture.orchestrator.errors import NoAnswer
from culture.orchestrator.journal.state import Act, TeamMember
from culture.orchestrator.members.hiring import MemberHiring
from culture.orchestrator.team_context import TeamContext

_LONGEST = 4000
_INTERRUPTED = "interrupted"
_LONG, _MARGIN = 600.0, 15.0
"""Seconds that one request waits for the end of a turn, and the margin for its answer."""


class WorkerFollowup:
    """Watches each worker until its manager knows that the work has ended."""

    def __init__(self, context: TeamContext, hiring: MemberHiring) -> None:
        self._context = context
        self._hiring = hiring

    def follow_all(self) -> None:
        """Watch every hired worker, including successors and workers from before a restart."""
        for member in self._context.store.state.members.values():
            if member.hired and not member.leaving:
                self.follow(member)

    def follow(self, member: TeamMember) -> None:
        """Wait in the background for the end of a worker's turn, and prompt its manager.

        There is no prompt if the worker has mentioned its manager itself.
        """
        if member.role in ROLES[2:] and self._key(member) not in self._context.store.state.announced:
            self._context.jobs.start(f"follow {member.nick}", self._follow(member))

    async def report_lost(self, member: TeamMember, why: str) -> None:
        """Prompt the manager that a worker is gone before it finished, and has no successor.

        ``why``: what happened to the worker.
        """
        task = self._context.store.state.tasks.get(member.task_id or "")
        if member.role not in ROLES[2:] or task is None or task.manager is None or task.stage.is_over:
            return
        text = f"{member.name} ({member.role}) is gone, and nobody comes instead: {why}."
        await self._hiring.tell(task.manager, f"gone-{member.order_key}", text, task.channel)

    def _key(self, member: TeamMember) -> str:
        return f"finished {member.order_key}"

    async def _follow(self, member: TeamMember) -> None:
        """Wait until a worker's turn has ended and its manager has been informed."""
        context, key, prompt = self._context, self._key(member), member.order_key
        while context.store.state.member(member.nick) is not None and key not in context.store.state.announced:
            try:
                answer = await context.daemons.call(
                    member.nick, "prompt", _LONG + _MARGIN, key=prompt, wait=True, timeout=_LONG
                )
            except NoAnswer:
                await asyncio.sleep(_MARGIN)
                continue
            if answer.get("outcome") in (WAITING, WORKING):
                continue
            if answer.get("outcome") == _INTERRUPTED and (later := self._resume_prompt(member)) not in (None, prompt):
                prompt = later
                continue
            if await self._inform_manager(member, key, str(answer.get("text", ""))):
                context.store.done(Act.ANNOUNCED, key=key)
                return
            await asyncio.sleep(_MARGIN)

    def _resume_prompt(self, member: TeamMember) -> str | None:
        """Return the key of a worker's latest prompt to continue after a raised budget, or None."""
        state = self._context.store.state
        keys = [*state.prompts, *(entry.data["key"] for entry in state.pending(Act.PROMPT))]
        return next((key for key in reversed(keys) if key.startswith(resume_key_prefix(member))), None)

    async def _inform_manager(self, member: TeamMember, key: str, text: str) -> bool:
        """Prompt the manager that a worker has ended its turn, unless a mention already said so.

        ``key``: the prompt's key, which is accepted once; ``text``: the worker's closing text. Returns False while
        the task has no manager; True also if the task is over.
        """
        task = self._context.store.state.tasks.get(member.task_id or "")
        if task is None or task.stage.is_over:
            return True
        if task.manager is None:
            return False
        if not self._context.rooms.has_just_mentioned(member.nick, task.manager):
            place = member.channels[0]
            report = f"{member.name} ({member.role}) has ended its turn in {place}: {text[:_LONGEST] or '(silent)'}"
            await self._hiring.tell(task.manager, key.replace(" ", "-"), report, place)
        return True
