"""Tasks at which nobody works: people read of it, then the manager is prompted, then the EM."""

from culture.orchestrator.journal.state import TaskStage, TeamTask
from culture.orchestrator.members.hiring import MemberHiring
from culture.orchestrator.parts import TeamParts
from culture.orchestrator.repository.git import commit_of
from culture.orchestrator.repository.worktrees import branch_of

STANDSTILL = 600.0
"""Seconds without work after which a task stands still."""


class Standstill:
    """Prompts whoever has to act. Each once for the same people at the same commit: a stuck task costs no turns."""

    def __init__(self, parts: TeamParts, hiring: MemberHiring) -> None:
        self._parts = parts
        self._hiring = hiring

    def concerns(self, task: TeamTask) -> bool:
        """Whether somebody should be at work on a task."""
        state = self._parts.book.state
        return task.stage is TaskStage.WORKING and bool(state.team_of(task.id)) and task.id not in state.parked

    async def tell(self, task: TeamTask, since: float) -> bool:
        """Tell of a task at which nobody works since a moment; whether somebody was prompted."""
        parts, first = self._parts, self._parts.book.state.team_of(task.id)[0]
        text = f"[{task.id}] nobody has had anything to do for {STANDSTILL / 60:.0f} minutes: it waits for a word."
        rooms = (parts.config.standup_channel, task.channel)
        await parts.rooms.say_once(f"still {task.id} {first.order_key} {since:.0f}", text, *rooms)
        return await self._prompt(task, text)

    async def _prompt(self, task: TeamTask, text: str) -> bool:
        parts, state, manager = self._parts, self._parts.book.state, task.manager
        team = "-".join(sorted(member.name for member in state.team_of(task.id)))
        # Not in the worktree, which somebody may have removed.
        commit = await commit_of(parts.config.project_dir, f"refs/heads/{branch_of(task.id)}") or ""
        key = f"still-{task.id}-{commit[:12]}-{team}"
        if manager is not None and key not in state.prompts:
            order = f"{text} Go on with it, or report, as in `TASK: {task.id} waiting: ` and for what."
            return await self._hiring.tell(manager, key, order, task.channel)
        if f"{key}-em" not in state.prompts:
            order = f"{text} Its manager {manager or '(nobody)'} was asked, and nothing has changed since: see to it."
            await self._hiring.prompt_em(f"{key}-em", order)
            return True
        return False
