"""The refs under which salvaged work is kept: list them, and drop those that nobody needs."""

from dataclasses import dataclass
from pathlib import Path

from culture.orchestrator.repository.git import commit_of, git, readable
from culture.orchestrator.repository.salvage import IGNORED
from culture.orchestrator.repository.worktrees import RESCUES

_FORM = "%(refname)%00%(objectname)%00%(committerdate:unix)%00%(subject)"


@dataclass(frozen=True, slots=True)
class Rescue:
    """One ref, such as ``refs/culture/rescue/demo-1/2``."""

    name: str
    """Task and number, as in ``demo-1/2``."""
    commit: str
    time: int
    """When it was kept, in seconds since 1970."""
    subject: str
    files: tuple[str, ...]
    """The files that its commits change and no branch has."""
    ignored: tuple[str, ...]
    """Those of them that git ignores, such as ``.env``."""

    @property
    def task(self) -> str:
        """Whose work it is."""
        return self.name.rpartition("/")[0]


async def rescues(project: Path, task: str = "") -> list[Rescue]:
    """All rescue refs of a project, or those of one task, the oldest first."""
    place = f"{RESCUES}/{task}/" if task else f"{RESCUES}/"
    listed = await git(project, "for-each-ref", "--sort=committerdate", f"--format={_FORM}", place)
    found = []
    for line in listed.splitlines():
        ref, commit, time, subject = line.split("\0")
        files, ignored = await _files(project, ref)
        found.append(Rescue(ref.removeprefix(f"{RESCUES}/"), commit, int(time), readable(subject), files, ignored))
    return found


async def drop(project: Path, rescue: Rescue) -> bool:
    """Delete a ref if it still names that commit; whether it is gone."""
    ref = f"{RESCUES}/{rescue.name}"
    if await commit_of(project, ref) != rescue.commit:
        return False
    await git(project, "update-ref", "-d", ref, rescue.commit)
    return True


async def _files(project: Path, ref: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of all files that the commits of no branch change, and of those in commits of ignored files."""
    shown = ("log", "--no-color", "-z", "--name-only", "--no-renames")
    text = readable(await git(project, *shown, "--format=%x01%s", ref, "--not", "--branches"))
    every, ignored = set[str](), set[str]()
    for block in text.split("\x01"):
        subject, *names = block.replace("\n", "\0").split("\0")
        changed = {name for name in names if name}
        every |= changed
        if subject.startswith(IGNORED):
            ignored |= changed
    return tuple(sorted(every)), tuple(sorted(ignored))
