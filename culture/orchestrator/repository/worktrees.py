"""The worktrees of tasks: made and removed here and nowhere else, and never while something in them would be lost."""

import asyncio
import re
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

from culture.config.paths import leads_out
from culture.lib.files import LOCK_PAUSE, FileLock
from culture.lib.git import GitFailed
from culture.orchestrator.repository.git import commit_of, git, holds

FOLDER = ".worktrees"
RESCUES = "refs/culture/rescue"
ARCHIVE = "refs/culture/archive"
_PREFIX = "agent-task-"
_PROC = Path("/proc")
_GONE = ".gone-"
_BEING_MADE = "initializing"
"""Why git locks a worktree while it makes it."""


class InUse(Exception):
    """Somebody works there; the text says who."""


class Unsafe(Exception):
    """The place is not what it seems, such as a symlink; the text says what."""


@dataclass(frozen=True, slots=True)
class ListedWorktree:
    """A worktree as git lists it."""

    path: Path
    branch: str | None
    locked: bool
    unfinished: bool = False
    """Whether git was killed while it made it: files are missing, and nobody has worked in it."""


@dataclass(frozen=True, slots=True)
class Made:
    """A worktree that is there."""

    path: Path
    branch: str
    base: str
    """The commit that the branch began at."""
    moved: Path | None = None
    """What was in its place and is kept."""


def branch_of(task: str) -> str:
    """The branch of a task."""
    return f"task/{task}"


class Worktrees:
    """Those of one project. Everything here can be done again without harm."""

    def __init__(self, project: Path, folder: str = FOLDER) -> None:
        # git tells real paths, and a worktree that it does not seem to know would be moved out of the way.
        self.project = project.resolve()
        self.folder = (self.project / folder).resolve()
        self._hidden = f"/{Path(folder).name}/"
        self._turn = asyncio.Lock()

    def path_of(self, task: str) -> Path:
        """Where the worktree of a task is."""
        return self.folder / f"{_PREFIX}{task}"

    def task_at(self, folder: Path) -> str | None:
        """The task in whose worktree a folder is; None where it is in none."""
        below = folder.relative_to(self.folder).parts if folder.is_relative_to(self.folder) else ()
        return below[0].removeprefix(_PREFIX) if below and below[0].startswith(_PREFIX) else None

    async def ensure(self, task: str, base: str) -> Made:
        """The worktree of a task on its branch, which begins at ``base`` if it is new."""
        path, branch = self.path_of(task), branch_of(task)
        async with self._alone():
            await self._hide()
            if await commit_of(self.project, f"refs/heads/{branch}") is None:
                await git(self.project, "branch", "--no-track", branch, base)
            moved = await self._clear_place(path)
            if not path.exists():
                await self._refuse_second(branch, path)
                # A directory that is gone and was locked is still known to git: twice forced, it is made again.
                await git(self.project, "worktree", "add", "--force", "--force", str(path), branch)
        return Made(path, branch, await self._began(branch, base), moved)

    async def known(self) -> list[ListedWorktree]:
        """Every worktree that git knows, the project's own first."""
        text = await git(self.project, "worktree", "list", "--porcelain", "-z")
        return [_known(block.split("\0")) for block in text.split("\0\0") if block.strip("\0")]

    async def tasks(self) -> set[str]:
        """The tasks that have a worktree, for git or on disk."""
        found = {each.path for each in await self.known()}
        if self.folder.is_dir():
            found |= set(self.folder.iterdir())
        return {
            path.name.removeprefix(_PREFIX)
            for path in found
            if path.parent == self.folder and path.name.startswith(_PREFIX) and ".kept-" not in path.name
        }

    async def highest(self, slug: str) -> int:
        """The highest number that a task of a team has or had, as far as git knows: branches, here and pushed, refs."""
        form = re.compile(rf"(?:task|rescue|archive)/{re.escape(slug)}-([0-9]{{1,9}})(?:/|$)", re.MULTILINE)
        refs = await git(self.project, "for-each-ref", "--format=%(refname)")
        return max((int(each) for each in form.findall(refs)), default=0)

    def removal(self, task: str) -> str:
        """What a person types to remove a worktree that was left for them."""
        return f"git -C {quote(str(self.project))} worktree remove -f -f {quote(str(self.path_of(task)))}"

    async def remove(self, task: str) -> None:
        """Take the worktree away; what is in it must have been kept before. InUse while a process is in it."""
        path = self.path_of(task)
        async with self._alone():
            if users := sorted(inside(path)):
                raise InUse(f"processes work in {path}: {', '.join(map(str, users))}")
            if path.is_symlink():
                path.unlink()
            elif any(each.path == path for each in await self.known()):
                await self._take_away(path)

    async def _take_away(self, path: Path) -> None:
        """First out of its place: one that is half removed would look like one in which somebody has deleted files."""
        _renamed(path, path.with_name(f"{_GONE}{path.name}"))
        await git(self.project, "worktree", "remove", "--force", "--force", str(path))
        await asyncio.to_thread(self._sweep)

    async def sweep(self) -> None:
        """Remove what is left of worktrees that were taken away."""
        if self.folder.is_dir():
            async with self._alone():
                await asyncio.to_thread(self._sweep)

    def _sweep(self) -> None:
        for left in self.folder.glob(f"{_GONE}*"):
            shutil.rmtree(left, ignore_errors=True)

    async def hold(self, task: str, why: str) -> None:
        """Leave the worktree where it is, so that nothing removes it."""
        async with self._alone():
            try:
                await git(self.project, "worktree", "lock", "--reason", why, str(self.path_of(task)))
            except GitFailed as refused:
                if "already locked" not in refused.words:
                    raise

    async def delete_branch(self, task: str, target: str) -> bool:
        """Delete the branch of a task if the target has all of it, or it is archived; whether it is gone."""
        branch = branch_of(task)
        commit = await commit_of(self.project, f"refs/heads/{branch}")
        if commit is None:
            return True
        archived = await commit_of(self.project, f"{ARCHIVE}/{task}") == commit
        if not archived and not await holds(self.project, "merge-base", "--is-ancestor", commit, target):
            return False
        await git(self.project, "branch", "-D", branch)
        return True

    async def archive(self, task: str) -> str:
        """Keep the branch's commits under a ref of their own; the ref."""
        await git(self.project, "update-ref", f"{ARCHIVE}/{task}", f"refs/heads/{branch_of(task)}")
        return f"{ARCHIVE}/{task}"

    async def _began(self, branch: str, base: str) -> str:
        found = await git(self.project, "merge-base", f"refs/heads/{branch}", base, codes=(0, 1))
        return found.strip() or str(await commit_of(self.project, base))

    async def _refuse_second(self, branch: str, path: Path) -> None:
        """Git would not mind, being forced, and the commits of one would undo those of the other."""
        for each in await self.known():
            if each.branch == branch and each.path != path and each.path.exists():
                raise Unsafe(f"{branch} is checked out in {each.path}: go to another branch there")

    async def _clear_place(self, path: Path) -> Path | None:
        """Whatever is in the place of a worktree and is none is moved aside; where it is now."""
        is_known = any(each.path == path and not each.unfinished for each in await self.known())
        return _moved_aside(path, is_known)

    async def _hide(self) -> None:
        """The project's own status shows none of this."""
        self.folder.mkdir(exist_ok=True)
        shared = Path((await git(self.project, "rev-parse", "--git-common-dir")).strip())
        exclude = self.project / shared / "info" / "exclude"
        if leads_out(exclude, self.project / shared):
            return  # a member in a sandbox could have made the link, to any file of the user's
        line = self._hidden
        text = exclude.read_text(encoding="utf-8", errors="replace") if exclude.exists() else ""
        if line not in text.splitlines():
            exclude.parent.mkdir(exist_ok=True)
            # Added, not written anew: the file is a person's, and may be in any encoding.
            with exclude.open("a", encoding="utf-8") as rules:
                rules.write(f"{line}\n" if not text or text.endswith("\n") else f"\n{line}\n")

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        """One at a time, also of several processes: git does not like to be asked twice at once."""
        async with self._turn:
            self.folder.mkdir(exist_ok=True)
            lock = FileLock(self.folder / ".lock", parents=False)
            while not lock.try_acquire():  # noqa: ASYNC110 - the kernel tells nobody
                await asyncio.sleep(LOCK_PAUSE)
            try:
                yield
            finally:
                lock.release()


def inside(path: Path) -> Iterator[int]:
    """The processes that have their working directory in a folder."""
    for entry in _PROC.iterdir():
        if entry.name.isdecimal():
            try:
                if (entry / "cwd").readlink().is_relative_to(path):
                    yield int(entry.name)
            except OSError:
                continue


def _moved_aside(path: Path, is_known: bool) -> Path | None:
    if path.is_symlink():
        raise Unsafe(f"{path} is a symlink; remove it, worktrees are made there")
    if not path.exists() or (is_known and (path / ".git").exists()):
        return None
    return _renamed(path, path)


def _renamed(path: Path, name: Path) -> Path | None:
    """The folder under the first free name like this one; None when there is no folder."""
    return path.rename(next(each for each in _numbered(name) if not each.exists())) if path.exists() else None


def _known(lines: list[str]) -> ListedWorktree:
    facts = dict(line.partition(" ")[::2] for line in lines if line)
    branch = facts.get("branch")
    name = branch.removeprefix("refs/heads/") if branch else None
    return ListedWorktree(Path(facts["worktree"]), name, "locked" in facts, facts.get("locked") == _BEING_MADE)


def _numbered(path: Path) -> Iterator[Path]:
    number = 1
    while True:
        yield path.with_name(f"{path.name}.kept-{number}")
        number += 1
