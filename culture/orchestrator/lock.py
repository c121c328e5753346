"""One orchestrator for each team and each repository: whoever comes second is refused."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from culture.config.lockfile import LockFile, Taken, note_of_holder
from culture.orchestrator.git import git

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
    held = []
    try:
        for file in files:
            lock = LockFile(file)
            try:
                lock.acquire(json.dumps({"pid": os.getpid(), "team": slug}))
            except Taken as taken:
                raise Busy(_who(taken.note)) from None
            held.append(lock)
        yield
    finally:
        for lock in reversed(held):
            lock.release()


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
