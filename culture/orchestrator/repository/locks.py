"""One orchestrator for each team and each repository: whoever comes second is refused."""

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from culture.lib.files import FileLock, LockTaken, note_of_holder
from culture.orchestrator.repository.git import git

FILE = "lock"
_IN_REPOSITORY = "culture-team.lock"


class Busy(Exception):
    """Another orchestrator is at work; the text says which."""


async def lock_files(folder: Path, project: Path) -> tuple[Path, Path]:
    """What an orchestrator holds: a file of the team's, and one of the repository's."""
    shared = Path((await git(project, "rev-parse", "--git-common-dir")).strip())
    return folder / FILE, (project / shared).resolve() / _IN_REPOSITORY


@contextmanager
def held(slug: str, *files: Path) -> Iterator[None]:
    """Hold these files; Busy when somebody else does."""
    with ExitStack() as locks:
        for file in files:
            try:
                locks.enter_context(FileLock(file).held(json.dumps({"pid": os.getpid(), "team": slug})))
            except LockTaken as taken:
                raise Busy(_who(taken.note)) from None
        yield


def note_of(file: Path) -> int | None:
    """The process that holds a team's file; None when nobody does."""
    try:
        text = note_of_holder(file)
        return int(json.loads(text)["pid"]) if text else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _who(note: str) -> str:
    try:
        said = json.loads(note)
        return f"the orchestrator of {said['team']} (pid {said['pid']}) is at work on this repository"
    except (ValueError, KeyError, TypeError):
        return "another orchestrator is at work on this repository"


_LEFTOVERS = ("index.lock", "HEAD.lock")


def drop_leftovers(git_dir: Path) -> list[Path]:
    """Remove the locks of git processes that are gone; a lock that somebody has open stays."""
    gone = []
    for name in _LEFTOVERS:
        lock = git_dir / name
        if lock.exists() and not _is_open(lock):
            lock.unlink(missing_ok=True)
            gone.append(lock)
    return gone


def _is_open(file: Path) -> bool:
    """Whether a process of this machine has the file open, as far as we may see."""
    wanted = str(file)
    return any(wanted in _open_files(process) for process in Path("/proc").iterdir() if process.name.isdecimal())


def _open_files(process: Path) -> set[str]:
    found = set[str]()
    try:
        handles = os.listdir(process / "fd")
    except OSError:
        return found
    for handle in handles:
        try:
            found.add(os.readlink(process / "fd" / handle))
        except OSError:
            continue
    return found
