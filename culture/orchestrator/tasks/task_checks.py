"""Checks of running tasks: nobody works on it; several tasks change the same files."""

from collections.abc import Mapping
from itertools import combinations
from pathlib import Path

from culture.lib.git import GitFailed
from culture.orchestrator.journal.state import Act, TaskStage, TeamTask
from culture.orchestrator.members.hiring import MemberHiring
from culture.orchestrator.repository.git import commit_of, git, readable
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


async def changed_files(worktree: Path, base: str) -> frozenset[str]:
    """Return the files that a task has changed since the commit ``base``, committed or not."""
    try:
        committed = await git(worktree, "diff", "--name-only", "-z", base)
        new = await git(worktree, "ls-files", "--others", "--exclude-standard", "-z")
    except (GitFailed, OSError):
        return frozenset()
    return frozenset(name for name in readable(committed + new).split("\0") if name)


def overlaps(files: Mapping[str, frozenset[str]]) -> dict[tuple[str, str], frozenset[str]]:
    """Return the files that both tasks of a pair change, by pair of task ids.

    ``files``: the changed files of each task. Pairs without a common file are left out.
    """
    pairs = combinations(sorted(files), 2)
    return {(one, other): both for one, other in pairs if (both := files[one] & files[other])}


_MOST_NAMED = 8


class OverlapWatch:
    """Compares the files that the running tasks change; each overlap is reported once."""

    def __init__(self, context: TeamContext, hiring: MemberHiring) -> None:
        self._context = context
        self._hiring = hiring

    async def check(self) -> None:
        """Report the files that two running tasks both change and that were not reported before."""
        context = self._context
        tasks = [task for task in context.store.state.live_tasks() if task.worktree and task.base]
        files = {task.id: await changed_files(Path(task.worktree), task.base) for task in tasks}
        for (one, other), both in overlaps(files).items():
            announced = context.store.state.announced
            new = sorted(name for name in both if f"overlap {one} {other} {name}" not in announced)
            if new:
                await self._report(one, other, new)

    async def _report(self, one: str, other: str, files: list[str]) -> None:
        context = self._context
        names = ", ".join(files[:_MOST_NAMED]) + (
            f" and {len(files) - _MOST_NAMED} more" if files[_MOST_NAMED:] else ""
        )
        text = f"[{one}] and [{other}] both change {names}. Talk to each other before one of you has to merge."
        rooms = [context.store.state.tasks[id].channel for id in (one, other)]
        first, *others = (f"overlap {one} {other} {name}" for name in files)

        # One entry for all: there may be thousands of files, and each entry costs an fsync.
        context.store.done(Act.ANNOUNCED, key=first, also=others)
        for room in (*rooms, context.config.standup_channel):
            await context.rooms.say(room, text)
        for id in (one, other):
            manager = context.store.state.tasks[id].manager
            if manager is not None:
                await self._hiring.tell(manager, f"overlap-{one}-{other}-{context.store.state.number}", text)
