"""Merges a task's branch into main on a person's command; refuses if edits could be lost."""

import asyncio
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from culture.lib import git_identity
from culture.lib.git import GitFailed
from culture.orchestrator.repository.git import commit_of, git, is_true, readable
from culture.orchestrator.repository.locks import remove_stale_locks
from culture.orchestrator.repository.worktrees import Worktrees, branch_of

_MERGE_PATIENCE = 3600.0
"""Timeout (s) of a merge, which may have to fetch large files (git-lfs)."""
_MOST_NAMED = 5


class NotMerged(Exception):
    """The merge of a task was refused and nothing was changed; the text says why."""

    def __init__(self, text: str, conflicts: tuple[str, ...] = ()) -> None:
        super().__init__(text)
        self.conflicts = conflicts


@dataclass(frozen=True, slots=True)
class MergeResult:
    """Result of a merge: the commit that the target branch has now, and whether that is new."""

    target: str
    commit: str
    changed: bool
    signed_by_us: bool = False
    """Whether the commit has the team's name, because git has no name and address of the person."""


async def main_branch(project: Path, configured: str | None = None) -> str:
    """Return the branch that tasks begin at and merge into: the configured or the current one.

    Raises ``NotMerged`` if there is no such branch, or it has no commit.
    """
    name = configured or (await git(project, "symbolic-ref", "--quiet", "--short", "HEAD", codes=(0, 1))).strip()
    if not name:
        raise NotMerged(f"{project} is on no branch: say which one counts with `branch:` in team.yaml")
    if await commit_of(project, f"refs/heads/{name}") is None:
        raise NotMerged(f"{project} has no commit on {name} yet: make the first one")
    return name


async def summary(project: Path, task: str, target: str) -> str:
    """Return a text to read before merging: commits of a task's branch, and changed files.

    ``target``: the branch to merge into.
    """
    branch = await _branch(project, task)
    commits = await git(project, "log", "--no-color", "--format=%h %an: %s", f"{target}..{branch}")
    if not commits:
        return f"{branch} has nothing that {target} lacks.\n"
    return commits + "\n" + await git(project, "diff", "--no-color", "--stat", f"{target}...{branch}")


async def diff(project: Path, task: str, target: str) -> str:
    """Return the diff of a task's branch since it left the branch ``target``."""
    return await git(project, "diff", "--no-color", f"{target}...{await _branch(project, task)}")


def conflict_question(who: str, task: str, target: str, files: Sequence[str]) -> str:
    """Return the question to people what to do about conflicts of a finished task with ``target``.

    ``who``: how the text names the task's side; ``files``: those with conflicts.
    """
    branch = branch_of(task)
    return (
        f"{who} and {target} both change {', '.join(files)}: which holds? Merge {branch} by hand, or give it out "
        f"again: TASK: bring {branch} up to {target} and resolve the conflicts."
    )


async def conflicts(project: Path, one: str, other: str) -> tuple[str, ...]:
    """Return the files that have conflicts if the commits ``one`` and ``other`` are merged."""
    text = await git(project, "merge-tree", "--write-tree", "--name-only", "-z", one, other, codes=(0, 1))
    _tree, *rest = text.split("\0")
    return tuple(dict.fromkeys(name for name in rest[: rest.index("")] if name)) if "" in rest else ()


async def merge(worktrees: Worktrees, task: str, target: str, message: str) -> MergeResult:
    """Merge a task's branch into the branch ``target``, with the commit text ``message``.

    If that is refused, ``NotMerged`` is raised, and everything is left as it was.
    """
    project = worktrees.project
    branch = await _branch(project, task)
    # Commits added to the branch from now on are not merged: only what was reviewed is.
    theirs, before = await commit_of(project, branch), await commit_of(project, f"refs/heads/{target}")
    if theirs is None or before is None:
        raise NotMerged(f"there is no branch {target if theirs else branch}")
    if await is_true(project, "merge-base", "--is-ancestor", theirs, before):
        return MergeResult(target, before, False)
    if files := await conflicts(project, before, theirs):
        raise NotMerged(conflict_question(branch, task, target, files), files)
    checkouts = await worktrees.list_worktrees()
    for each in checkouts:
        if await _is_rebasing(each.path, f"refs/heads/{target}"):
            raise NotMerged(f"{target} is being rebased or bisected in {each.path}: end that first")
    homes = [each.path for each in checkouts if each.branch == target]
    signature = await asyncio.to_thread(git_identity.stand_in, project)
    if not homes:
        commit = await _merge_without_checkout(project, before, theirs, target, message, signature)
    elif homes == [project]:
        commit = await _merge_in_checkout(project, before, theirs, task, target, message, signature)
    else:
        raise NotMerged(f"{target} is checked out in {homes[0]}: merge it there, or go to another branch there")

    return MergeResult(target, commit, True, bool(signature))


async def _merge_in_checkout(
    project: Path, before: str, theirs: str, task: str, target: str, message: str, signature: Mapping[str, str]
) -> str:
    """Merge in the project's folder, which has ``target`` checked out; return the new commit.

    ``before`` and ``theirs``: the commits of ``target`` and of the task's branch; ``signature``: git's environment
    for the commit. Raises ``NotMerged`` if the folder has edits, or if the merge fails; then the folder is restored.
    """
    if await commit_of(project, "MERGE_HEAD") or await commit_of(project, "CHERRY_PICK_HEAD"):
        raise NotMerged(f"{project} is in the middle of a merge of yours: end it with git commit or git merge --abort")
    tree = (await git(project, "merge-tree", "--write-tree", before, theirs)).split()[0]
    if edits := [*await _edits(project), *await _hidden_edits(project)]:
        raise NotMerged(f"{project} has edits of yours ({_some(edits)}): commit or stash them, then merge again")
    if files := await _overwritten_files(project, before, tree):
        raise NotMerged(f"{_some(files)} would be overwritten in {project} and is not in git: move it away first")
    try:
        # A person commanded it: the commit has their name.
        words = ("merge", "--no-ff", "--no-edit", "-m", message, theirs)
        await git(project, *words, environment=signature, as_person=True, patience=_MERGE_PATIENCE)
    except BaseException as error:
        await _undo(project, before)
        if not isinstance(error, GitFailed) or await commit_of(project, "HEAD") != before:
            raise
        raise NotMerged(f"git refused to merge task/{task} into {target}: {error.words.strip()}") from None
    return str(await commit_of(project, "HEAD"))


async def _undo(project: Path, before: str) -> None:
    """Restore the project's checkout after a failed merge; it had no edits before.

    ``before``: the commit that was checked out.
    """
    if await commit_of(project, "HEAD") == before:
        remove_stale_locks(Path((await git(project, "rev-parse", "--absolute-git-dir")).strip()))
        await git(project, "reset", "--merge", codes=(0, 128))


async def _edits(project: Path) -> list[str]:
    return [line[3:] for line in (await git(project, "status", "--porcelain", "--untracked-files=no")).splitlines()]


async def _hidden_edits(project: Path) -> list[str]:
    """Return edited files that git was told not to check (assume-unchanged, skip-worktree).

    A merge would overwrite them.
    """
    listed = (await git(project, "ls-files", "-v", "-z")).split("\0")
    hidden = [line[2:] for line in listed if line and (line[0] == "S" or line[0].islower())]
    existing = [name for name in hidden if (project / name).exists()]
    if not existing:
        return []
    with tempfile.TemporaryDirectory(prefix="culture-merge-") as folder:
        own = {"GIT_INDEX_FILE": str(Path(folder) / "index")}
        await git(project, "read-tree", "HEAD", environment=own)
        changed = set((await git(project, "diff", "--name-only", "-z", environment=own)).split("\0"))
    return [name for name in existing if name in changed]


async def _overwritten_files(project: Path, before: str, tree: str) -> list[str]:
    """Return the files outside git that a merge would overwrite, such as ignored ones.

    ``before``: the commit that is checked out; ``tree``: the merge's result. Git itself does not protect ignored
    files.
    """
    tracked = set((await git(project, "ls-files", "-z")).split("\0"))
    added = await git(project, "diff", "--no-renames", "--name-only", "--diff-filter=A", "-z", before, tree)
    new = [name for name in added.split("\0") if name]
    folders = dict.fromkeys(str(each) for name in new for each in PurePath(name).parents if str(each) != ".")
    existing = [name for name in new if (project / name).is_symlink() or (project / name).exists()]
    existing += [name for name in folders if (project / name).is_symlink() or (project / name).is_file()]
    return [name for name in existing if name not in tracked]


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if names[_MOST_NAMED:] else ""
    return readable(", ".join(names[:_MOST_NAMED])) + more


async def _is_rebasing(worktree: Path, branch: str) -> bool:
    """Return whether a rebase or bisect in a worktree will move this branch when it ends."""
    try:
        git_dir = Path((await git(worktree, "rev-parse", "--absolute-git-dir")).strip())
    except (GitFailed, OSError):
        return False  # its folder does not exist
    notes = [git_dir / "rebase-merge" / "head-name", git_dir / "rebase-apply" / "head-name", git_dir / "BISECT_START"]
    names = (note.read_text(errors="replace").strip() for note in notes if note.is_file())
    return any(name in (branch, branch.removeprefix("refs/heads/")) for name in names)


async def _merge_without_checkout(
    project: Path, before: str, theirs: str, target: str, message: str, signature: Mapping[str, str]
) -> str:
    """Merge into a branch that is checked out nowhere, and return the new commit.

    ``before`` and ``theirs``: the commits of ``target`` and of the task's branch; ``signature``: git's environment
    for the commit. Raises ``GitFailed`` if the branch is no longer at ``before``.
    """
    tree = (await git(project, "merge-tree", "--write-tree", before, theirs)).split()[0]
    parents = ("-p", before, "-p", theirs)
    words = ("commit-tree", tree, *parents, "-m", message)
    commit = (await git(project, *words, environment=signature, as_person=True)).strip()
    await git(project, "update-ref", f"refs/heads/{target}", commit, before)
    return commit


async def _branch(project: Path, task: str) -> str:
    branch = branch_of(task)
    if await commit_of(project, f"refs/heads/{branch}") is None:
        raise NotMerged(f"there is no branch {branch}: `culture team status` lists the tasks")
    return f"refs/heads/{branch}"
