"""The logs as a git repository: what is new is committed, by git itself, in a process of its own."""

import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from threading import Lock

from culture.config.paths import private_directory

_GRACE = 1.0
_OWN = {
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "commit.gpgSign": "false",
    "init.defaultBranch": "main",
    "user.name": "culture",
}


class GitFailed(Exception):
    """What git said, or why it could not be asked."""


class Repository:
    """A folder under git; its calls block, and one commit is made at a time."""

    def __init__(self, folder: Path, server: str) -> None:
        self._folder = folder
        self._settings = {**_OWN, "user.email": f"culture@{server}"}
        self._lock = Lock()

    def commit(self, message: str, patience: float, tidy: bool = True) -> bool:
        """Commit what is new; False when nothing is. ``tidy``: git may pack what has piled up."""
        until = time.monotonic() + patience
        if not self._lock.acquire(timeout=patience):
            raise GitFailed("the commit before this one takes too long")
        try:
            return self._commit(message, until, tidy)
        except OSError as error:
            raise GitFailed(f"{error.filename or 'git'}: {error.strerror}") from error
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

    def _git(self, until: float, *words: str) -> str:
        """What git answers; only the settings given here count, not those of whoever runs the server."""
        settings = [word for key, value in self._settings.items() for word in ("-c", f"{key}={value}")]
        process = subprocess.Popen(
            ["git", "-c", "gc.autoDetach=false", *settings, *words],
            cwd=self._folder,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            umask=0o077,
        )
        try:
            said, complaint = process.communicate(timeout=max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            _end(process)
            raise GitFailed(f"git {words[0]} takes too long") from None
        if process.returncode:
            lines = complaint.decode(errors="replace").strip().splitlines()
            raise GitFailed(lines[0] if lines else f"git ended with {process.returncode}")
        return said.decode(errors="replace")

    def _environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "LC_ALL": "C.UTF-8",
            "GIT_DIR": str(self._folder / ".git"),
            "GIT_WORK_TREE": str(self._folder),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_TERMINAL_PROMPT": "0",
        }


def _end(process: subprocess.Popen[bytes]) -> None:
    """End git and what it started; asked kindly it removes its locks."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, how)
        with suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=_GRACE)
            return
