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
    """What git prints; GitFailed for any exit code but these. ``as_person``: with their name, signed as they sign."""
    runner = Git(folder, in_project(folder, as_person), {} if as_person else QUIET)
    printed = await runner.run_in_thread(
        *arguments, stdin=stdin, environment=environment, codes=codes, patience=patience
    )
    return printed.decode(errors="surrogateescape")


async def holds(folder: Path, *arguments: str) -> bool:
    """Whether git answers a question such as ``merge-base --is-ancestor`` with yes."""
    try:
        await git(folder, *arguments)
    except GitFailed as no:
        if no.code == 1:
            return False
        raise
    return True


async def commit_of(folder: Path, name: str) -> str | None:
    """The commit that a name means; None when there is none."""
    try:
        return (await git(folder, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")).strip() or None
    except GitFailed:
        return None


def readable(text: str) -> str:
    """What git printed as text that can be written and sent, whatever bytes were in it."""
    return text.encode(errors="surrogateescape").decode(errors="replace")
