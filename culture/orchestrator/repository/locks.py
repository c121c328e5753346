"""Locks: one orchestrator per team and repository; removal of stale lock files of git."""

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from culture.lib.files import FileLock, LockTaken, note_of_holder
from culture.orchestrator.repository.git import git

FILE = "lock"
_IN_REPOSITORY = "culture-team.lock"


class OrchestratorBusy(Exception):
    """Another orchestrator runs for this team or repository; the text says which."""


async def lock_files(folder: Path, project: Path) -> tuple[Path, Path]:
    """Return the paths of an orchestrator's lock files: the team's and the repository's."""
    shared = Path((await git(project, "rev-parse", "--git-common-dir")).strip())
    return folder / FILE, (project / shared).resolve() / _IN_REPOSITORY


@contextmanager
def hold_locks(slug: str, *files: Path) -> Iterator[None]:
    """Hold these lock files for the team ``slug``.

    Raises ``OrchestratorBusy`` if another orchestrator holds one of them.
    """
    with ExitStack() as locks:
        for file in files:
            try:
                locks.enter_context(FileLock(file).held(json.dumps({"pid": os.getpid(), "team": slug})))
            except LockTaken as taken:
                raise OrchestratorBusy(_describe_holder(taken.note)) from None
        yield


def holder_of(file: Path) -> int | None:
    """Return the pid of the process that holds a team's lock file, or None if none holds it."""
    try:
        text = note_of_holder(file)
        return int(json.loads(text)["pid"]) if text else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _describe_holder(note: str) -> str:
    try:
        holder = json.loads(note)
        return f"the orchestrator of {holder['team']} (pid {holder['pid']}) is at work on this repository"
    except (ValueError, KeyError, TypeError):
        return "another orchestrator is at work on this repository"


_GIT_LOCKS = ("index.lock", "HEAD.lock")


def remove_stale_locks(git_dir: Path) -> list[Path]:
    """Remove lock files that dead git processes left in ``git_dir``, and return their paths.

    A lock file that a process has open is kept.
    """
    removed = []
    for name in _GIT_LOCKS:
        lock = git_dir / name
        if lock.exists() and not _is_open(lock):
            lock.unlink(missing_ok=True)
            removed.append(lock)
    return removed


def _is_open(file: Path) -> bool:
    """Return whether a process of this machine has the file open, as far as /proc shows it."""
    path = str(file)
    return any(path in _open_files(process) for process in Path("/proc").iterdir() if process.name.isdecimal())


def _open_files(process: Path) -> set[str]:
    files = set[str]()
    try:
        handles = os.listdir(process / "fd")
    except OSError:
        return files
    for handle in handles:
        try:
            files.add(os.readlink(process / "fd" / handle))
        except OSError:
            continue
    return files
