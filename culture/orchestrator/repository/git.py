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
    """Run git in ``folder`` and return its standard output.

    ``GitFailed`` for an exit code that is not in ``codes``. ``as_person`` commits with the person's name and
    signature instead of the team's. ``environment``: additional variables; ``patience``: time limit in seconds.
    """
    runner = Git(folder, in_project(folder, as_person), {} if as_person else QUIET)
    printed = await runner.run_in_thread(
        *arguments, stdin=stdin, environment=environment, codes=codes, patience=patience
    )
    return printed.decode(errors="surrogateescape")


async def is_true(folder: Path, *arguments: str) -> bool:
    """Run a git command that tests something; return True for exit code 0 and False for 1.

    An example is ``merge-base --is-ancestor``. Any other code raises ``GitFailed``.
    """
    try:
        await git(folder, *arguments)
    except GitFailed as no:
        if no.code == 1:
            return False
        raise
    return True


async def commit_of(folder: Path, name: str) -> str | None:
    """Return the id of the commit that a branch, tag or other name stands for, or None."""
    try:
        return (await git(folder, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")).strip() or None
    except GitFailed:
        return None


def readable(text: str) -> str:
    """Return text from git's output as valid Unicode, with undecodable bytes replaced."""
    return text.encode(errors="surrogateescape").decode(errors="replace")
