"""Commits that only one worktree knows of, and that nobody would find again when it is gone."""

import os
import re
from pathlib import Path

from culture.orchestrator.git import git

_HASH = re.compile(r"\b[0-9a-f]{40}(?:[0-9a-f]{24})?\b")
_NOT_NAMES = ("index", "FETCH_HEAD")
_LONGEST = 4 * 1024 * 1024


async def left_behind(project: Path, git_dir: Path, kept: str) -> list[str]:
    """The newest commits that only the worktree's own files name, such as those of a detached HEAD or an autostash."""
    named = "\n".join(sorted(_named_in(git_dir)))
    known = await git(project, "cat-file", "--batch-check=%(objectname) %(objecttype)", stdin=named.encode())
    commits = [line.split()[0] for line in known.splitlines() if line.endswith(" commit")]
    if not commits:
        return []
    given = "\n".join([*commits, *([f"^{kept}"] if kept else [])]).encode()
    # With --all, but for this option, the HEAD of every worktree would count as a ref that stays.
    asked = ("rev-list", "--topo-order", "--parents", "--stdin", "--not", "--single-worktree", "--all")
    listed = [line.split() for line in (await git(project, *asked, stdin=given)).splitlines()]
    parents = {each for _, *above in listed for each in above}
    return [commit for commit, *_ in listed if commit not in parents]


def _named_in(git_dir: Path) -> set[str]:
    """Whatever looks like a commit in what git wrote down for one worktree: its reflog, a rebase, a merge."""
    found = set[str]()
    for folder, _, files in os.walk(git_dir):
        for name in files:
            file = Path(folder) / name
            if name not in _NOT_NAMES and file.lstat().st_size <= _LONGEST:
                found.update(_HASH.findall(file.read_text(encoding="utf-8", errors="replace")))
    return {each for each in found if each.strip("0")}
