"""Creates and removes the worktrees of tasks; no work in them is lost."""

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
from culture.orchestrator.repository.git import commit_of, git, is_true

FOLDER = ".worktrees"
RESCUES = "refs/culture/rescue"
ARCHIVE = "refs/culture/archive"
_PREFIX = "agent-task-"
_PROC = Path("/proc")
_REMOVED = ".gone-"
_INITIALIZING = "initializing"
"""Git's lock reason for a worktree that it is creating."""


class InUse(Exception):
    """A process still works in the worktree; the text says which."""


class UnsafePlace(Exception):
    """A worktree cannot be created safely at its path, for example because of a symlink."""


@dataclass(frozen=True, slots=True)
class ListedWorktree:
    """A worktree of the project's repository, as git lists it."""

    path: Path
    branch: str | None
    locked: bool
    unfinished: bool = False
    """Whether git was killed while creating it: files are missing, and nobody has worked in it."""


@dataclass(frozen=True, slots=True)
class TaskWorktree:
    """An existing worktree of a task.

    ``moved``: the new path of a folder that was in the worktree's place and was renamed; None if there was none.
    """

    path: Path
    branch: str
    base: str
    """The commit at which the branch began."""
    moved: Path | None = None
    """New path of a folder that was in its place."""


def branch_of(task: str) -> str:
    """Return the name of a task's branch."""
    return f"task/{task}"


class Worktrees:
    """The worktrees of one project's tasks; every operation can be repeated without harm."""

    def __init__(self, project: Path, folder: str = FOLDER) -> None:

        # Git lists real paths; with another path an existing worktree would look unknown and be moved aside.
        self.project = project.resolve()
        self.folder = (self.project / folder).resolve()
        self._exclude_line = f"/{Path(folder).name}/"
        self._lock = asyncio.Lock()

    def path_of(self, task: str) -> Path:
        """Return the path of a task's worktree."""
        return self.folder / f"{_PREFIX}{task}"

    def task_at(self, folder: Path) -> str | None:
        """Return the task whose worktree contains ``folder``; None if no worktree does."""
        below = folder.relative_to(self.folder).parts if folder.is_relative_to(self.folder) else ()
        return below[0].removeprefix(_PREFIX) if below and below[0].startswith(_PREFIX) else None

    async def ensure(self, task: str, base: str) -> TaskWorktree:
        """Create a task's worktree on its branch if it does not exist; return it.

        A new branch begins at the commit ``base``.
        """
        path, branch = self.path_of(task), branch_of(task)
        async with self._exclusive():
            await self._exclude_folder()
            if await commit_of(self.project, f"refs/heads/{branch}") is None:
                await git(self.project, "branch", "--no-track", branch, base)
            moved = await self._clear_place(path)
            if not path.exists():
                await self._refuse_second(branch, path)
                # With --force twice, git recreates a worktree whose folder is missing, even a locked one.
                await git(self.project, "worktree", "add", "--force", "--force", str(path), branch)
        return TaskWorktree(path, branch, await self._base_of(branch, base), moved)

    async def list_worktrees(self) -> list[ListedWorktree]:
        """Return all worktrees of the repository; the project's own folder is the first."""
        text = await git(self.project, "worktree", "list", "--porcelain", "-z")
        return [_parse_worktree(block.split("\0")) for block in text.split("\0\0") if block.strip("\0")]

    async def tasks(self) -> set[str]:
        """Return the ids of the tasks that have a worktree, known to git or found on disk."""
        paths = {each.path for each in await self.list_worktrees()}
        if self.folder.is_dir():
            paths |= set(self.folder.iterdir())
        return {
            path.name.removeprefix(_PREFIX)
            for path in paths
            if path.parent == self.folder and path.name.startswith(_PREFIX) and ".kept-" not in path.name
        }

    async def highest_number(self, slug: str) -> int:
        """Return the highest number of a task in git's refs; 0 if there is none.

        ``slug``: the short name of the team, with which its task ids begin.
        """
        form = re.compile(rf"(?:task|rescue|archive)/{re.escape(slug)}-([0-9]{{1,9}})(?:/|$)", re.MULTILINE)
        refs = await git(self.project, "for-each-ref", "--format=%(refname)")
        return max((int(each) for each in form.findall(refs)), default=0)

    def removal_command(self, task: str) -> str:
        """Return the shell command with which a person removes a task's worktree that was kept."""
        return f"git -C {quote(str(self.project))} worktree remove -f -f {quote(str(self.path_of(task)))}"

    async def remove(self, task: str) -> None:
        """Remove a task's worktree after its salvage; raises ``InUse`` if a process works in it."""
        path = self.path_of(task)
        async with self._exclusive():
            if users := sorted(processes_in(path)):
                raise InUse(f"processes work in {path}: {', '.join(map(str, users))}")
            if path.is_symlink():
                path.unlink()
            elif any(each.path == path for each in await self.list_worktrees()):
                await self._remove(path)

    async def _remove(self, path: Path) -> None:
        """Remove the worktree at ``path``: rename its folder, then delete it.

        A folder that is half deleted under its old name would look like edits.
        """
        _rename_to_free(path, path.with_name(f"{_REMOVED}{path.name}"))
        await git(self.project, "worktree", "remove", "--force", "--force", str(path))
        await asyncio.to_thread(self._sweep)

    async def sweep(self) -> None:
        """Delete the remains of removed worktrees: folders that were renamed and not fully deleted."""
        if self.folder.is_dir():
            async with self._exclusive():
                await asyncio.to_thread(self._sweep)

    def _sweep(self) -> None:

        for folder in self.folder.glob(f"{_REMOVED}*"):
            shutil.rmtree(folder, ignore_errors=True)

    async def lock(self, task: str, why: str) -> None:
        """Lock a task's worktree in git with the reason ``why``, so that nothing removes it."""
        async with self._exclusive():
            try:
                await git(self.project, "worktree", "lock", "--reason", why, str(self.path_of(task)))
            except GitFailed as refused:
                if "already locked" not in refused.words:
                    raise

    async def delete_branch(self, task: str, target: str) -> bool:
        """Delete a task's branch if it is merged into ``target`` or kept under an archive ref.

        Return whether the branch is gone.
        """
        branch = branch_of(task)
        commit = await commit_of(self.project, f"refs/heads/{branch}")
        if commit is None:
            return True
        archived = await commit_of(self.project, f"{ARCHIVE}/{task}") == commit
        if not archived and not await is_true(self.project, "merge-base", "--is-ancestor", commit, target):
            return False
        await git(self.project, "branch", "-D", branch)
        return True

    async def archive(self, task: str) -> str:
        """Store the commit of a task's branch under an archive ref, and return the ref's name."""
        await git(self.project, "update-ref", f"{ARCHIVE}/{task}", f"refs/heads/{branch_of(task)}")
        return f"{ARCHIVE}/{task}"

    async def _base_of(self, branch: str, base: str) -> str:
        commit = await git(self.project, "merge-base", f"refs/heads/{branch}", base, codes=(0, 1))
        return commit.strip() or str(await commit_of(self.project, base))

    async def _refuse_second(self, branch: str, path: Path) -> None:
        """Raise ``UnsafePlace`` if a worktree at another path has the branch checked out.

        The option --force, which ``ensure`` needs, would let both have it. ``path``: that of the task's own worktree.
        """
        for each in await self.list_worktrees():
            if each.branch == branch and each.path != path and each.path.exists():
                raise UnsafePlace(f"{branch} is checked out in {each.path}: go to another branch there")

    async def _clear_place(self, path: Path) -> Path | None:
        """Rename whatever blocks the path of a worktree.

        Return its new path, or None if nothing blocked the path.
        """
        is_known = any(each.path == path and not each.unfinished for each in await self.list_worktrees())
        return _move_aside(path, is_known)

    async def _exclude_folder(self) -> None:
        """Add the folder of worktrees to the project's git exclude file.

        So git status does not list it.
        """
        self.folder.mkdir(exist_ok=True)
        shared = Path((await git(self.project, "rev-parse", "--git-common-dir")).strip())
        exclude = self.project / shared / "info" / "exclude"
        if leads_out(exclude, self.project / shared):
            return  # a member in a sandbox could have made this symlink, to any file of the user
        line = self._exclude_line
        text = exclude.read_text(encoding="utf-8", errors="replace") if exclude.exists() else ""
        if line not in text.splitlines():
            exclude.parent.mkdir(exist_ok=True)
            # Appended, not rewritten: the file is a person's, and may be in any encoding.
            with exclude.open("a", encoding="utf-8") as rules:
                rules.write(f"{line}\n" if not text or text.endswith("\n") else f"\n{line}\n")

    @asynccontextmanager
    async def _exclusive(self) -> AsyncIterator[None]:
        """Hold the lock that serialises git operations on worktrees across tasks and processes."""
        async with self._lock:
            self.folder.mkdir(exist_ok=True)
            lock = FileLock(self.folder / ".lock", parents=False)
            while not lock.try_acquire():  # noqa: ASYNC110 - the kernel tells nobody
                await asyncio.sleep(LOCK_PAUSE)
            try:
                yield
            finally:
                lock.release()


def processes_in(path: Path) -> Iterator[int]:
    """Yield the ids of the processes whose working directory is in a folder."""
    for entry in _PROC.iterdir():
        if entry.name.isdecimal():
            try:
                if (entry / "cwd").readlink().is_relative_to(path):
                    yield int(entry.name)
            except OSError:
                continue


def _move_aside(path: Path, is_known: bool) -> Path | None:
    if path.is_symlink():
        raise UnsafePlace(f"{path} is a symlink; remove it, worktrees are made there")
    if not path.exists() or (is_known and (path / ".git").exists()):
        return None
    return _rename_to_free(path, path)


def _rename_to_free(path: Path, name: Path) -> Path | None:
    """Rename a folder to ``name`` with the first free number; return the new path.

    None if the folder does not exist.
    """
    return path.rename(next(each for each in _numbered(name) if not each.exists())) if path.exists() else None


def _parse_worktree(lines: list[str]) -> ListedWorktree:
    facts = dict(line.partition(" ")[::2] for line in lines if line)
    branch = facts.get("branch")
    name = branch.removeprefix("refs/heads/") if branch else None
    return ListedWorktree(Path(facts["worktree"]), name, "locked" in facts, facts.get("locked") == _INITIALIZING)


def _numbered(path: Path) -> Iterator[Path]:
    number = 1
    while True:
        yield path.with_name(f"{path.name}.kept-{number}")
        number += 1
