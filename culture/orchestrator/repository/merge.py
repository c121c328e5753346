"""Bringing a task's branch into main, at a person's word: refused rather than at the cost of anybody's edits."""

import asyncio
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath

from culture.lib import git_identity
from culture.lib.git import GitFailed
from culture.orchestrator.repository.git import commit_of, git, holds, readable
from culture.orchestrator.repository.locks import drop_leftovers
from culture.orchestrator.repository.worktrees import Worktrees, branch_of

_MERGE_PATIENCE = 3600.0
"""How long a merge may take that fetches large files (git-lfs) on the way."""
_MOST_NAMED = 5


class NotMerged(Exception):
    """Nothing was changed; the text says why, and what to do."""

    def __init__(self, text: str, conflicts: tuple[str, ...] = ()) -> None:
        super().__init__(text)
        self.conflicts = conflicts


@dataclass(frozen=True, slots=True)
class Merged:
    """What the target is now; ``commit`` is what it was when there was nothing to merge."""

    target: str
    commit: str
    changed: bool
    signed_by_us: bool = False
    """Whether git had no name and address of a person, so that the commit has those of the team."""


async def main_branch(project: Path, said: str | None = None) -> str:
    """The branch that tasks begin at and are merged into: what is configured, else what the project is on."""
    name = said or (await git(project, "symbolic-ref", "--quiet", "--short", "HEAD", codes=(0, 1))).strip()
    if not name:
        raise NotMerged(f"{project} is on no branch: say which one counts with `branch:` in team.yaml")
    if await commit_of(project, f"refs/heads/{name}") is None:
        raise NotMerged(f"{project} has no commit on {name} yet: make the first one")
    return name


async def summary(project: Path, task: str, target: str) -> str:
    """The commits of a task's branch and what they change, for a person to read before merging."""
    branch = await _branch(project, task)
    commits = await git(project, "log", "--no-color", "--format=%h %an: %s", f"{target}..{branch}")
    if not commits:
        return f"{branch} has nothing that {target} lacks.\n"
    return commits + "\n" + await git(project, "diff", "--no-color", "--stat", f"{target}...{branch}")


async def diff(project: Path, task: str, target: str) -> str:
    """The change itself."""
    return await git(project, "diff", "--no-color", f"{target}...{await _branch(project, task)}")


async def conflicts(project: Path, one: str, other: str) -> tuple[str, ...]:
    """The files in which two commits cannot be merged without a person."""
    text = await git(project, "merge-tree", "--write-tree", "--name-only", "-z", one, other, codes=(0, 1))
    _tree, *rest = text.split("\0")
    return tuple(dict.fromkeys(name for name in rest[: rest.index("")] if name)) if "" in rest else ()


async def merge(worktrees: Worktrees, task: str, target: str, message: str) -> Merged:
    """Merge a task's branch into the target; NotMerged leaves everything as it was."""
    project = worktrees.project
    branch = await _branch(project, task)
    # From here on it is this commit, whatever is added to the branch meanwhile: what was looked at is what is merged.
    theirs, before = await commit_of(project, branch), await commit_of(project, f"refs/heads/{target}")
    if theirs is None or before is None:
        raise NotMerged(f"there is no branch {target if theirs else branch}")
    if await holds(project, "merge-base", "--is-ancestor", theirs, before):
        return Merged(target, before, False)
    if found := await conflicts(project, before, theirs):
        raise NotMerged(
            f"task/{task} and {target} both change {', '.join(found)}: merge {target} into task/{task} in the task's "
            "worktree, or have its manager do that",
            found,
        )
    known = await worktrees.known()
    for each in known:
        if await _half_way(each.path, f"refs/heads/{target}"):
            raise NotMerged(f"{target} is being rebased or bisected in {each.path}: end that first")
    homes = [each.path for each in known if each.branch == target]
    signature = await asyncio.to_thread(git_identity.stand_in, project)
    if not homes:
        commit = await _merged_aside(project, before, theirs, target, message, signature)
    elif homes == [project]:
        commit = await _merged_here(project, before, theirs, task, target, message, signature)
    else:
        raise NotMerged(f"{target} is checked out in {homes[0]}: merge it there, or go to another branch there")
    return Merged(target, commit, True, bool(signature))


async def _merged_here(
    project: Path, before: str, theirs: str, task: str, target: str, message: str, signature: Mapping[str, str]
) -> str:
    """In the person's own folder: not on top of edits, and as they were if it fails or is broken off."""
    if await commit_of(project, "MERGE_HEAD") or await commit_of(project, "CHERRY_PICK_HEAD"):
        raise NotMerged(f"{project} is in the middle of a merge of yours: end it with git commit or git merge --abort")
    tree = (await git(project, "merge-tree", "--write-tree", before, theirs)).split()[0]
    if edits := [*await _edits(project), *await _hidden_edits(project)]:
        raise NotMerged(f"{project} has edits of yours ({_some(edits)}): commit or stash them, then merge again")
    if found := await _in_the_way(project, before, tree):
        raise NotMerged(f"{_some(found)} would be overwritten in {project} and is not in git: move it away first")
    try:
        # At a person's word, and with their name.
        words = ("merge", "--no-ff", "--no-edit", "-m", message, theirs)
        await git(project, *words, environment=signature, as_person=True, patience=_MERGE_PATIENCE)
    except BaseException as error:
        await _undo(project, before)
        if not isinstance(error, GitFailed) or await commit_of(project, "HEAD") != before:
            raise
        raise NotMerged(f"git refused to merge task/{task} into {target}: {error.words.strip()}") from None
    return str(await commit_of(project, "HEAD"))


async def _undo(project: Path, before: str) -> None:
    """There were no edits before: what differs from the last commit is of the merge that was not made."""
    if await commit_of(project, "HEAD") == before:
        drop_leftovers(Path((await git(project, "rev-parse", "--absolute-git-dir")).strip()))
        await git(project, "reset", "--merge", codes=(0, 128))


async def _edits(project: Path) -> list[str]:
    return [line[3:] for line in (await git(project, "status", "--porcelain", "--untracked-files=no")).splitlines()]


async def _hidden_edits(project: Path) -> list[str]:
    """What git was told not to look at (assume-unchanged, skip-worktree), and would put its own version over."""
    listed = (await git(project, "ls-files", "-v", "-z")).split("\0")
    hidden = [line[2:] for line in listed if line and (line[0] == "S" or line[0].islower())]
    there = [name for name in hidden if (project / name).exists()]
    if not there:
        return []
    with tempfile.TemporaryDirectory(prefix="culture-merge-") as folder:
        own = {"GIT_INDEX_FILE": str(Path(folder) / "index")}
        await git(project, "read-tree", "HEAD", environment=own)
        changed = set((await git(project, "diff", "--name-only", "-z", environment=own)).split("\0"))
    return [name for name in there if name in changed]


async def _in_the_way(project: Path, before: str, tree: str) -> list[str]:
    """Files that are in no commit and that the merge would replace: git itself spares only those it does not ignore."""
    tracked = set((await git(project, "ls-files", "-z")).split("\0"))
    added = await git(project, "diff", "--no-renames", "--name-only", "--diff-filter=A", "-z", before, tree)
    new = [name for name in added.split("\0") if name]
    folders = dict.fromkeys(str(each) for name in new for each in PurePath(name).parents if str(each) != ".")
    there = [name for name in new if (project / name).is_symlink() or (project / name).exists()]
    there += [name for name in folders if (project / name).is_symlink() or (project / name).is_file()]
    return [name for name in there if name not in tracked]


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if names[_MOST_NAMED:] else ""
    return readable(", ".join(names[:_MOST_NAMED])) + more


async def _half_way(worktree: Path, branch: str) -> bool:
    """Whether a worktree is in the middle of something at whose end it puts this branch elsewhere."""
    try:
        git_dir = Path((await git(worktree, "rev-parse", "--absolute-git-dir")).strip())
    except (GitFailed, OSError):
        return False  # its folder is gone
    notes = [git_dir / "rebase-merge" / "head-name", git_dir / "rebase-apply" / "head-name", git_dir / "BISECT_START"]
    said = (note.read_text(errors="replace").strip() for note in notes if note.is_file())
    return any(name in (branch, branch.removeprefix("refs/heads/")) for name in said)


async def _merged_aside(
    project: Path, before: str, theirs: str, target: str, message: str, signature: Mapping[str, str]
) -> str:
    """Where the target is checked out nowhere: the commit is made, and the branch moved if nobody else has."""
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
