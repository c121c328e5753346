"""Standstill: reports a task on which nobody works; prompts its manager, then the EM."""

from culture.orchestrator.journal.state import TaskStage, TeamTask
from culture.orchestrator.members.hiring import MemberHiring
from culture.orchestrator.repository.git import commit_of
from culture.orchestrator.repository.worktrees import branch_of
from culture.orchestrator.team_context import TeamContext

STANDSTILL = 600.0
"""Seconds without any work after which a task stands still."""


class StandstillWatch:
    """Reports tasks on which nobody works, and prompts the manager and the EM.

    Each of the two is prompted once per commit and set of members.
    """

    def __init__(self, context: TeamContext, hiring: MemberHiring) -> None:
        self._context = context
        self._hiring = hiring

    def applies_to(self, task: TeamTask) -> bool:
        """Return whether somebody should be working on a task at its present stage."""
        state = self._context.store.state
        return task.stage is TaskStage.WORKING and bool(state.team_of(task.id)) and task.id not in state.parked

    async def report(self, task: TeamTask, since: float) -> bool:
        """Report that nobody has worked on a task since ``since`` (seconds since 1970).

        Return whether a member was prompted.
        """
        context, first = self._context, self._context.store.state.team_of(task.id)[0]
        text = f"[{task.id}] nobody has had anything to do for {STANDSTILL / 60:.0f} minutes: it waits for a word."
        rooms = (context.config.standup_channel, task.channel)
        await context.rooms.say_once(f"still {task.id} {first.order_key} {since:.0f}", text, *rooms)
        return await self._prompt(task, text)

    async def _prompt(self, task: TeamTask, text: str) -> bool:
        context, state, manager = self._context, self._context.store.state, task.manager
        team = "-".join(sorted(member.name for member in state.team_of(task.id)))
        # Not in the worktree, which may have been removed.
        commit = await commit_of(context.config.project_dir, f"refs/heads/{branch_of(task.id)}") or ""
        key = f"still-{task.id}-{commit[:12]}-{team}"
        if manager is not None and key not in state.prompts:
            order = f"{text} Go on with it, or report, as in `TASK: {task.id} waiting: ` and for what."
            return await self._hiring.tell(manager, key, order, task.channel)
        if f"{key}-em" not in state.prompts:
            order = f"{text} Its manager {manager or '(nobody)'} was asked, and nothing has changed since: see to it."
            await self._hiring.prompt_em(f"{key}-em", order)
            return True
        return False
