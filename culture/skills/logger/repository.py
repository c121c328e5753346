"""The log folder as a git repository: commits new lines by running git."""

from pathlib import Path

from culture.lib.files import private_directory
from culture.lib.git import Git, GitFailed, isolated
from culture.runtime import REAL, Runtime

# No detached packing: a commit must leave no process behind.
_SETTINGS = {"commit.gpgSign": "false", "gc.autoDetach": "false", "init.defaultBranch": "main"}


class LogRepository:
    """The log folder as a git repository; calls block, and one commit runs at a time."""

    def __init__(self, folder: Path, server: str, runtime: Runtime = REAL) -> None:
        self._folder = folder
        self._settings = {**_SETTINGS, "user.name": "culture", "user.email": f"culture@{server}"}
        self._monotonic = runtime.monotonic
        self._lock = runtime.lock()

    def commit(self, message: str, patience: float, tidy: bool = True) -> bool:
        """Commit all changes within ``patience`` seconds; return False if there are none.

        ``GitFailed`` if git fails or is too slow. ``message``: the commit's text; ``tidy``: let git compact the
        repository, too.
        """
        until = self._monotonic() + patience
        if not self._lock.acquire(timeout=patience):
            raise GitFailed(("commit",), -1, "the previous commit is still running")
        try:
            return self._commit(message, until, tidy)
        except OSError as error:
            raise GitFailed(("commit",), -1, f"{error.filename or 'git'}: {error.strerror}") from error
        finally:
            self._lock.release()

    def _commit(self, message: str, until: float, tidy: bool) -> bool:
        private_directory(self._folder)
        if not (self._folder / ".git").exists():
            self._git(until, "init", "--quiet", "--template=")
        self._git(until, "add", "--all", "--", ".")
        if not self._git(until, "diff", "--cached", "--name-only"):
            return False
        packing = () if tidy else ("-c", "gc.auto=0")
        self._git(until, *packing, "commit", "--quiet", "--no-verify", "--no-gpg-sign", "--message", message)
        return True

    def _git(self, until: float, *arguments: str) -> bytes:
        """Run git in the log folder and return its output.

        ``until``: deadline by ``time.monotonic()``. Only culture's settings apply, not those of the user who runs the
        server.
        """
        environment = isolated(self._folder / ".git", GIT_WORK_TREE=str(self._folder))
        git = Git(self._folder, environment, self._settings, umask=0o077)
        return git.run(*arguments, patience=max(0.0, until - self._monotonic()))
