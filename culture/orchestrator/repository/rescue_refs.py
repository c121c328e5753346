"""Rescue refs: lists the git refs with salvaged work, and deletes them."""

from dataclasses import dataclass
from pathlib import Path

from culture.orchestrator.repository.git import commit_of, git, readable
from culture.orchestrator.repository.salvage import IGNORED
from culture.orchestrator.repository.worktrees import RESCUES

_FORM = "%(refname)%00%(objectname)%00%(committerdate:unix)%00%(subject)"


@dataclass(frozen=True, slots=True)
class Rescue:
    """A git ref that keeps salvaged work of a task, such as ``refs/culture/rescue/demo-1/2``."""

    name: str
    """Task and number, as in ``demo-1/2``."""
    commit: str
    time: int
    """Time of the commit, in seconds since 1970."""
    subject: str
    files: tuple[str, ...]
    """Files changed by its commits that are on no branch."""
    ignored: tuple[str, ...]
    """The files among them that git ignores, such as ``.env``."""

    @property
    def task(self) -> str:
        """Return the id of the task whose work the ref keeps."""
        return self.name.rpartition("/")[0]


async def rescues(project: Path, task: str = "") -> list[Rescue]:
    """Return the rescue refs of a task, or of the project if ``task`` is empty, oldest first."""
    place = f"{RESCUES}/{task}/" if task else f"{RESCUES}/"
    listed = await git(project, "for-each-ref", "--sort=committerdate", f"--format={_FORM}", place)
    refs = []
    for line in listed.splitlines():
        ref, commit, time, subject = line.split("\0")
        files, ignored = await _files(project, ref)
        refs.append(Rescue(ref.removeprefix(f"{RESCUES}/"), commit, int(time), readable(subject), files, ignored))

    return refs


async def drop(project: Path, rescue: Rescue) -> bool:
    """Delete a rescue ref if it still points to the commit in ``rescue``.

    Return whether the ref was deleted.
    """
    ref = f"{RESCUES}/{rescue.name}"
    if await commit_of(project, ref) != rescue.commit:
        return False
    await git(project, "update-ref", "-d", ref, rescue.commit)
    return True


async def _files(project: Path, ref: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the files that a rescue ref changes in commits that are on no branch.

    ``ref``: the ref's name. The first tuple has all of them, the second those that git ignores.
    """
    command = ("log", "--no-color", "-z", "--name-only", "--no-renames")
    text = readable(await git(project, *command, "--format=%x01%s", ref, "--not", "--branches"))
    every, ignored = set[str](), set[str]()
    for block in text.split("\x01"):
        subject, *names = block.replace("\n", "\0").split("\0")
        changed = {name for name in names if name}
        every |= changed
        if subject.startswith(IGNORED):
            ignored |= changed
    return tuple(sorted(every)), tuple(sorted(ignored))
