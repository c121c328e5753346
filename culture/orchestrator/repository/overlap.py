"""Which running tasks change the same files: their people hear of it while it is still cheap."""

from collections.abc import Mapping
from itertools import combinations
from pathlib import Path

from culture.lib.git import GitFailed
from culture.orchestrator.journal.state import What
from culture.orchestrator.members.hiring import MemberHiring
from culture.orchestrator.parts import TeamParts
from culture.orchestrator.repository.git import git, readable


async def changed(worktree: Path, base: str) -> frozenset[str]:
    """The files that a task has changed since it began, committed or not."""
    try:
        committed = await git(worktree, "diff", "--name-only", "-z", base)
        new = await git(worktree, "ls-files", "--others", "--exclude-standard", "-z")
    except (GitFailed, OSError):
        return frozenset()
    return frozenset(name for name in readable(committed + new).split("\0") if name)


def overlaps(files: Mapping[str, frozenset[str]]) -> dict[tuple[str, str], frozenset[str]]:
    """Of each two tasks, what both change."""
    pairs = combinations(sorted(files), 2)
    return {(one, other): both for one, other in pairs if (both := files[one] & files[other])}


_MOST_NAMED = 8


class Conflicts:
    """Looks at what the running tasks have changed; the same is told once."""

    def __init__(self, parts: TeamParts, hiring: MemberHiring) -> None:
        self._parts = parts
        self._hiring = hiring

    async def look(self) -> None:
        """Tell of what is new."""
        parts = self._parts
        tasks = [task for task in parts.book.state.live_tasks() if task.worktree and task.base]
        files = {task.id: await changed(Path(task.worktree), task.base) for task in tasks}
        for (one, other), both in overlaps(files).items():
            told = parts.book.state.told
            new = sorted(name for name in both if f"overlap {one} {other} {name}" not in told)
            if new:
                await self._tell(one, other, new)

    async def _tell(self, one: str, other: str, files: list[str]) -> None:
        parts = self._parts
        named = ", ".join(files[:_MOST_NAMED]) + (
            f" and {len(files) - _MOST_NAMED} more" if files[_MOST_NAMED:] else ""
        )
        text = f"[{one}] and [{other}] both change {named}. Talk to each other before one of you has to merge."
        rooms = [parts.book.state.tasks[id].channel for id in (one, other)]
        first, *others = (f"overlap {one} {other} {name}" for name in files)
        # In one entry: there may be thousands, and each entry is waited for until it is on the disk.
        parts.book.done(What.TOLD, key=first, also=others)
        for room in (*rooms, parts.config.standup_channel):
            await parts.rooms.say(room, text)
        for id in (one, other):
            manager = parts.book.state.tasks[id].manager
            if manager is not None:
                await self._hiring.tell(manager, f"overlap-{one}-{other}-{parts.book.state.number}", text)
