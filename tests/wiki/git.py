"""Git as a person would type it, with a home of its own."""

import os
import subprocess
from pathlib import Path


def git(folder: Path, *arguments: str, stdin: str | None = None) -> str:
    """What git printed; it must succeed."""
    return subprocess.run(
        ["git", "-c", "user.name=Ori", "-c", "user.email=ori@example.org", *arguments],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"},
        input=stdin,
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def clone(wiki: Path, to: Path) -> Path:
    """A person's copy."""
    git(wiki, "clone", "--quiet", str(wiki), str(to))
    return to


def commit(copy: Path, message: str) -> None:
    """Commit everything in a copy."""
    git(copy, "add", "--all")
    git(copy, "commit", "--quiet", "-m", message)


def push(copy: Path, message: str) -> None:
    """Commit everything in a copy and push it."""
    commit(copy, message)
    git(copy, "push", "--quiet", "origin", "main")


def check(wiki: Path) -> None:
    """The repository is whole."""
    git(wiki, "fsck", "--strict", "--no-dangling")
