"""Keeping what was not committed: as a commit marked [INCOMPLETE], made without the worktree's own index."""

import os
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from culture.lib.git import GitFailed
from culture.orchestrator.repository.git import OURSELVES, commit_of, git, holds
from culture.orchestrator.repository.locks import drop_leftovers
from culture.orchestrator.repository.worktrees import RESCUES, inside

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


INCOMPLETE = "[INCOMPLETE]"
IGNORED = f"{INCOMPLETE} ignored files"
"""How the subject of a commit begins that holds files which git ignores."""
MOST_IGNORED = 20 * 1024 * 1024
"""Ignored files of a task that is not done, up to so many bytes in all, are kept; with more the worktree stays."""
_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class SalvagedWork:
    """What became of a worktree's contents."""

    ref: str = ""
    """Where it is kept; empty when there was nothing that the branch does not have."""
    commit: str = ""
    must_stay: str = ""
    """Why the worktree itself must not be removed; empty when it may be."""
    uncommitted: bool = False
    """Whether there was something that git does not ignore and nobody had committed."""


async def is_dirty(worktree: Path) -> bool:
    """Whether something in the worktree is not committed."""
    return bool(await git(worktree, "status", "--porcelain", "-z", "--untracked-files=all"))


async def salvage(project: Path, worktree: Path, task: str, why: str, *, is_done: bool = False) -> SalvagedWork:
    """Commit whatever is there, on the task's branch if that is where the worktree is, and under a ref in any case.

    The branch of a task that ``is_done`` stays as it was found to be, pushed perhaps: people merge it. Files of it that
    git ignores are no part of the result, and may be secrets (``.env``): they are not committed, and are deleted.
    """
    if not (worktree / ".git").exists():
        return SalvagedWork(await _newest(project, task))
    git_dir = await _git_dir_in(project, worktree)
    if git_dir is None:
        return SalvagedWork(must_stay="it is no worktree of the project, or a broken one")
    if not any(inside(worktree)):
        drop_leftovers(git_dir)
    inner = repositories_in(worktree)
    must_stay = f"{inner[0]} is a repository of its own" if inner else ""
    ignored = [] if is_done else await _ignored(worktree)
    size = sum(_size(worktree / name) for name in ignored)
    if size > MOST_IGNORED:
        must_stay = must_stay or f"{len(ignored)} ignored files of {size / _MIB:.0f} MiB in all"
    head = await commit_of(worktree, "HEAD")
    dirty = head is None or await _differs(worktree, head)
    take_ignored = bool(ignored) and size <= MOST_IGNORED
    branch = (await git(worktree, "symbolic-ref", "--quiet", "HEAD", codes=(0, 1))).strip()
    is_at_home = branch == f"refs/heads/task/{task}"
    commit = head or ""
    if dirty:
        commit = await _committed(worktree, head, f"{INCOMPLETE} {why}", without=inner)
        if is_at_home and not is_done:
            await git(project, "update-ref", branch, commit, head or "")
    others = [*await _staged(worktree, head, commit), *await left_behind(project, git_dir, commit)]
    if not dirty and not take_ignored and not others and is_at_home:
        return SalvagedWork(await _kept_before(project, task, commit, commit), must_stay=must_stay)
    if take_ignored:
        commit = await _committed(worktree, commit, f"{IGNORED}: {why}", ignored)
    if others:
        commit = await _joined(project, commit, others, f"{INCOMPLETE} staged, or on no branch: {why}")
    elif ref := await _kept_before(project, task, commit, head or commit):
        return SalvagedWork(ref, commit, must_stay, dirty)
    ref = f"{RESCUES}/{task}/{await _next(project, task)}"
    await git(project, "update-ref", ref, commit)
    return SalvagedWork(ref, commit, must_stay, dirty)


async def _git_dir_in(project: Path, worktree: Path) -> Path | None:
    """What git knows of a worktree of the project; None where it is none."""
    if (worktree / ".git").is_dir():
        return None
    try:
        git_dir = Path((await git(worktree, "rev-parse", "--absolute-git-dir")).strip())
        shared = Path((await git(project, "rev-parse", "--git-common-dir")).strip())
    except GitFailed:
        return None
    return git_dir if git_dir.is_relative_to((project / shared).resolve()) else None


async def _staged(worktree: Path, head: str | None, commit: str) -> list[str]:
    """A commit of what was staged, where no commit of the branch has that."""
    try:
        tree = (await git(worktree, "write-tree")).strip()
    except GitFailed:
        return []  # in the middle of a conflict, whose sides are commits
    # Kept before, the branch has moved on and the index has not: then it is as one of the last commits.
    if commit and tree in (await git(worktree, "log", "--format=%T", "--max-count=100", commit)).split():
        return []
    parents = ("-p", head) if head else ()
    message = f"{INCOMPLETE} staged"
    return [(await git(worktree, "commit-tree", tree, *parents, "-m", message, environment=OURSELVES)).strip()]


async def _joined(project: Path, commit: str, others: Sequence[str], message: str) -> str:
    """A commit that has these as parents and changes nothing."""
    parents = [word for each in (commit, *others) if each for word in ("-p", each)]
    tree = f"{commit or others[0]}^{{tree}}"
    return (await git(project, "commit-tree", tree, *parents, "-m", message, environment=OURSELVES)).strip()


async def _committed(
    worktree: Path, parent: str | None, message: str, names: list[str] | None = None, without: Sequence[Path] = ()
) -> str:
    """A commit of everything that is there, or of these files on top of the parent."""
    with tempfile.TemporaryDirectory(prefix="culture-salvage-") as folder:
        own = {**OURSELVES, "GIT_INDEX_FILE": str(Path(folder) / "index")}
        if parent is not None:
            await git(worktree, "read-tree", parent, environment=own)
        if names is None:
            but = [f":(exclude,literal){path}" for path in without]
            await git(worktree, "add", "--all", "--", ".", *but, environment=own)
        else:
            given = "\0".join(names).encode(errors="surrogateescape")
            await git(
                worktree,
                "add",
                "--force",
                "--pathspec-from-file=-",
                "--pathspec-file-nul",
                environment=own,
                stdin=given,
            )
        tree = (await git(worktree, "write-tree", environment=own)).strip()
        parents = ("-p", parent) if parent is not None else ()
        return (await git(worktree, "commit-tree", tree, *parents, "-m", message, environment=own)).strip()


async def _differs(worktree: Path, head: str) -> bool:
    """Whether files are not as in the last commit, also those that the worktree's own index does not look at."""
    with tempfile.TemporaryDirectory(prefix="culture-salvage-") as folder:
        own = {"GIT_INDEX_FILE": str(Path(folder) / "index")}
        await git(worktree, "read-tree", head, environment=own)
        return bool(await git(worktree, "status", "--porcelain", "-z", "--untracked-files=all", environment=own))


async def _kept_before(project: Path, task: str, commit: str, head: str) -> str:
    """The ref under which this was kept, such as before a crash: the same files, upon the same commits."""
    if not commit:
        return ""
    place, form = f"{RESCUES}/{task}/", "%(refname)%00%(objectname)%00%(tree)%00%(subject)"
    tree, subject = (await git(project, "log", "-1", "--format=%T%x00%s", commit)).strip().split("\0")
    for line in (await git(project, "for-each-ref", f"--format={form}", place)).splitlines():
        ref, *same = line.split("\0")
        if same[0] == commit:
            return ref
        if same[1:] == [tree, subject] and await holds(project, "merge-base", "--is-ancestor", head, ref):
            return ref
    return ""


async def _ignored(worktree: Path) -> list[str]:
    text = await git(worktree, "ls-files", "--others", "--ignored", "--exclude-standard", "-z")
    return [name for name in text.split("\0") if name]


def repositories_in(worktree: Path) -> list[Path]:
    """Repositories inside of the worktree, whose contents no commit of ours would hold."""
    found = []
    for folder, folders, files in os.walk(worktree):
        at = Path(folder)
        if at != worktree and (".git" in folders or ".git" in files):
            found.append(at.relative_to(worktree))
            folders.clear()
        folders[:] = [name for name in folders if name != ".git"]
    return found


async def _numbers(project: Path, task: str) -> list[int]:
    text = await git(project, "for-each-ref", "--format=%(refname)", f"{RESCUES}/{task}/")
    return sorted(int(line.rpartition("/")[2]) for line in text.split())


async def _newest(project: Path, task: str) -> str:
    """What was kept last, such as before a crash."""
    numbers = await _numbers(project, task)
    return f"{RESCUES}/{task}/{numbers[-1]}" if numbers else ""


async def _next(project: Path, task: str) -> int:
    return 1 + max(await _numbers(project, task), default=0)


def _size(file: Path) -> int:
    try:
        return file.lstat().st_size
    except OSError:
        return 0
