"""Which running tasks change the same files: their people hear of it while it is still cheap."""

from collections.abc import Mapping
from itertools import combinations
from pathlib import Path

from culture.lib.git import GitFailed
from culture.orchestrator.git import git, readable


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
