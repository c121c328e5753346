"""Git in the project of a team and in its worktrees."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from culture.lib.git import PATIENCE, QUIET, Git, GitFailed, in_project
from culture.lib.git_identity import signature

OURSELVES = signature()


async def git(
    folder: Path,
    *arguments: str,
    environment: Mapping[str, str] | None = None,
    as_person: bool = False,
    stdin: bytes = b"",
    codes: Sequence[int] = (0,),
    patience: float = PATIENCE,
) -> str:
    """Run git and return what it prints; ``GitFailed`` for any exit code but ``codes``.

    ``as_person`` commits with the person's name and signature instead of the team's.
    """
    runner = Git(folder, in_project(folder, as_person), {} if as_person else QUIET)
    printed = await runner.run_in_thread(
        *arguments, stdin=stdin, environment=environment, codes=codes, patience=patience
    )
    return printed.decode(errors="surrogateescape")


async def is_true(folder: Path, *arguments: str) -> bool:
    """Whether a git command such as ``merge-base --is-ancestor`` exits with code 0."""
    try:
        await git(folder, *arguments)
    except GitFailed as no:
        if no.code == 1:
            return False
        raise
    return True


async def commit_of(folder: Path, name: str) -> str | None:
    """Return the id of the commit that a branch, tag or other name stands for.

    None if there is none.
    """
    try:
        return (await git(folder, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")).strip() or None
    except GitFailed:
        return None


def readable(text: str) -> str:
    """Return git's output as valid text, with undecodable bytes replaced."""
    return text.encode(errors="surrogateescape").decode(errors="replace")
