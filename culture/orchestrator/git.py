"""Running git: with nothing of the caller's git variables, no prompt for a password, and an end in any case.

Git runs what the settings of a repository say, and some of them cannot be overruled, such as filters. An agent in a
sandbox cannot write the settings of the project, but nearly everything else: it could name another repository in the
worktree's ``commondir``, or make a repository of its own inside, which ``status`` enters. So git is told where the
repository is, and does not look into others.
"""

import asyncio
import os
import re
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

from culture.config.git_identity import VARIABLES, signature

PATIENCE = 120.0
# Hooks of a project, its fsmonitor too, are files that agents may have written: what we run starts none of them.
_WITHOUT_HOOKS = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false")
# What we do by ourselves signs nothing and tidies nothing up on the side.
_QUIETLY = ("-c", "commit.gpgSign=false", "-c", "gc.auto=0")
OURSELVES = signature()
_LONGEST_WORDS = 2000
_ENTERS = ("status", "diff")
_ONLY_COMMITS = "--ignore-submodules=dirty"
_GITDIR = re.compile(r"gitdir:\s*(?P<folder>\S.*)")


class GitFailed(Exception):
    """git refused; ``code`` is its exit code, the text its words."""

    def __init__(self, command: Sequence[str], code: int, words: str) -> None:
        super().__init__(f"git {' '.join(command)}: {words.strip()[-_LONGEST_WORDS:] or f'exit code {code}'}")
        self.code = code
        self.words = words


async def git(
    folder: Path,
    *arguments: str,
    environment: Mapping[str, str] | None = None,
    quietly: bool = True,
    given: bytes = b"",
    codes: Sequence[int] = (0,),
    patience: float = PATIENCE,
) -> str:
    """What git prints; GitFailed for any exit code but these."""
    process = await asyncio.create_subprocess_exec(
        "git",
        *_WITHOUT_HOOKS,
        *(_QUIETLY if quietly else ()),
        *_without_inner_repositories(arguments),
        cwd=folder,
        env={**_environment(quietly), **_repository(folder), **(environment or {})},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(patience):
            out, words = await process.communicate(given)
    except BaseException as error:
        _end(process)
        await process.wait()
        if isinstance(error, TimeoutError):
            raise GitFailed(arguments, -1, f"not done within {patience:g} s") from None
        raise
    assert process.returncode is not None
    if process.returncode not in codes:
        raise GitFailed(arguments, process.returncode, words.decode(errors="replace"))
    return out.decode(errors="surrogateescape")


async def holds(folder: Path, *arguments: str) -> bool:
    """Whether a question to git, such as ``merge-base --is-ancestor``, is answered with yes."""
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


def _end(process: asyncio.subprocess.Process) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def _without_inner_repositories(arguments: Sequence[str]) -> list[str]:
    """The command, so that of a repository inside only its commit counts: no git is run in there."""
    command, *rest = arguments
    return [command, *([_ONLY_COMMITS] if command in _ENTERS else []), *rest]


def _repository(folder: Path) -> dict[str, str]:
    """Where the repository of a folder is, as variables; none below its top, where git looks for it."""
    found = folder / ".git"
    if found.is_symlink():
        return {}
    if found.is_dir():
        return {"GIT_DIR": str(found.resolve()), "GIT_COMMON_DIR": str(found.resolve())}
    try:
        named = _GITDIR.fullmatch(found.read_text(encoding="utf-8", errors="surrogateescape").strip())
    except OSError:
        return {}
    own = (folder / named["folder"]).resolve() if named is not None else None
    if own is None or own.parent.name != "worktrees":
        return {}
    return {"GIT_DIR": str(own), "GIT_COMMON_DIR": str(own.parent.parent)}


def _environment(quietly: bool) -> dict[str, str]:
    """Nothing of the caller's git variables; what is done in a person's name keeps their name and address."""
    known = () if quietly else VARIABLES
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name in known}
    return {**kept, "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C.UTF-8"}
