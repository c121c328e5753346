"""Runs git: the one place that starts the program.

Git runs what settings and files tell it to run, and many of those were written by somebody else. Four rules:

1. No hooks and no fsmonitor: both are programs in the repository, and agents may have written them.
2. None of the caller's ``GIT_*`` variables: they could name another repository, another index, another program.
   ``isolated`` leaves no variable and no settings file of anybody; ``in_project`` keeps the person's own settings,
   since git works on the person's project there (their filters, their ``safe.directory``).
3. Git does not look for the repository: ``GIT_DIR`` and ``GIT_COMMON_DIR`` name it. An agent in a sandbox cannot write
   the settings of the project, but it could name another repository in the worktree's ``commondir``. For the same
   reason ``status`` and ``diff`` do not enter repositories inside (they would run their filters).
4. Each run ends: after ``patience`` seconds, with too much output, or when the caller is cancelled, git and all that it
   started get SIGTERM, on which git removes its lock files, and then SIGKILL. Git is never asked for a password.
"""

import asyncio
import errno
import os
import re
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from culture.lib.threads import in_thread

PATIENCE = 120.0
"""Seconds that one command may take."""
MOST_OUTPUT = 256 << 20
"""Bytes that one command may print."""
IDENTITY_VARIABLES = ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL")
# What we do by ourselves signs nothing, and packs nothing in the background.
QUIET = {"commit.gpgSign": "false", "gc.auto": "0"}

_WITHOUT_HOOKS = {"core.hooksPath": os.devnull, "core.fsmonitor": "false"}
_UNATTENDED = {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C.UTF-8", "LANGUAGE": ""}
_LONGEST_COMPLAINT = 64 << 10
_LONGEST_MESSAGE = 2000
_CHUNK = 64 << 10
_GRACE = 1.0
_PAUSE = 0.1
_ENTERS = ("status", "diff")
_ONLY_COMMITS = "--ignore-submodules=dirty"
_GITDIR = re.compile(r"gitdir:\s*(?P<folder>\S.*)")


class GitFailed(Exception):
    """Git exited with an error, or we ended it.

    ``code``: its exit code (-1: we ended it); ``words``: its output.
    """

    def __init__(self, command: Sequence[str], code: int, words: str) -> None:
        super().__init__(f"git {' '.join(command)}: {words.strip()[-_LONGEST_MESSAGE:] or f'exit code {code}'}")
        self.code = code
        self.words = words

    @property
    def reason(self) -> str:
        """Return the first line of git's output, as the reason of the failure."""
        lines = self.words.strip().splitlines()
        return lines[0] if lines else f"git ended with {self.code}"


@dataclass(frozen=True, slots=True)
class Git:
    """Runs git commands in one folder, with one environment and one set of git settings."""

    folder: Path
    environment: Mapping[str, str]
    """All variables that git gets: made by ``isolated`` or ``in_project``."""
    settings: Mapping[str, str] = field(default_factory=lambda: QUIET)
    """Settings that overrule those of the repository."""
    umask: int = -1

    def run(
        self,
        *arguments: str,
        stdin: bytes = b"",
        environment: Mapping[str, str] | None = None,
        codes: Sequence[int] = (0,),
        patience: float = PATIENCE,
        most_output: int = MOST_OUTPUT,
    ) -> bytes:
        """Run git with these arguments and return its standard output; block up to ``patience`` s.

        ``stdin``: its input; ``environment``: replaces or adds variables; ``codes``: the exit codes that count as
        success; ``most_output``: the most bytes of output. Raises GitFailed for another exit code, too much output or
        when time is up, and FileNotFoundError without the folder or git.
        """
        return _Run(self, arguments, environment or {}).output(stdin, codes, patience, most_output)

    async def run_in_thread(
        self,
        *arguments: str,
        stdin: bytes = b"",
        environment: Mapping[str, str] | None = None,
        codes: Sequence[int] = (0,),
        patience: float = PATIENCE,
        most_output: int = MOST_OUTPUT,
    ) -> bytes:
        """Run git in a thread with these arguments and return its standard output.

        ``stdin``: its input; ``environment``: replaces or adds variables; ``codes``: the exit codes that count as
        success; ``patience``: time limit in seconds; ``most_output``: the most bytes of output. Raises GitFailed for
        another exit code, too much output or when time is up. If the caller is cancelled, git has exited before
        CancelledError is raised.
        """
        run = _Run(self, arguments, environment or {})
        running = in_thread(lambda: run.output(stdin, codes, patience, most_output), "git")
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            run.break_off()
            running.add_done_callback(lambda done: done.exception())  # nobody else asks for it any more
            await asyncio.wait([running])
            raise


def isolated(git_dir: Path, **variables: str) -> dict[str, str]:
    """Return environment variables with which git uses the repository ``git_dir`` alone.

    No user's settings apply. ``variables`` are added to the result.
    """
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        **_UNATTENDED,
        "GIT_DIR": str(git_dir),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        **variables,
    }


def in_project(folder: Path, as_person: bool = False) -> dict[str, str]:
    """Return the environment for running git in a person's project, or in a worktree of it.

    ``as_person``: keep the variables that name the person as the author of commits.
    """
    return {**without_git_variables(IDENTITY_VARIABLES if as_person else ()), **_UNATTENDED, **_repository(folder)}


def without_git_variables(but: Sequence[str] = ()) -> dict[str, str]:
    """Return this process's environment without the variables of git (``GIT_…``).

    ``but``: names of variables of git that are kept.
    """
    return {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name in but}


class _Run:
    """One run of git, whose output one thread reads; another thread may end it early."""

    def __init__(self, git: Git, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
        settings = {**_WITHOUT_HOOKS, **git.settings}
        self._git = git
        self._arguments = arguments
        self._command = [
            "git",
            *(word for name, value in settings.items() for word in ("-c", f"{name}={value}")),
            *_without_inner_repositories(arguments),
        ]
        self._environment = {**git.environment, **environment}
        self._lock = threading.Lock()
        self._broken_off = False
        # A byte in this pipe wakes the reader.
        self._woken, self._wake = os.pipe()

    def break_off(self) -> None:
        """End git early, from any thread; the thread that waits in ``output`` then raises GitFailed."""
        with self._lock:
            if self._wake >= 0:
                self._broken_off = True
                os.write(self._wake, b"!")

    def output(self, stdin: bytes, codes: Sequence[int], patience: float, most_output: int) -> bytes:
        """Run git to its end and return its standard output.

        ``codes``: the exit codes that count as success; ``patience``: time limit in seconds; ``most_output``: the
        most bytes of output. Raises GitFailed for another exit code, too much output, when time is up, or after
        ``break_off``.
        """
        deadline = time.monotonic() + patience
        try:
            process = self._started(bool(stdin))
            try:
                printed, complaint = self._exchanged(process, stdin, deadline, most_output)
                code = self._ended(process, deadline)
            except BaseException as error:
                _end(process)
                if isinstance(error, TimeoutError):
                    raise self._failed(f"git takes too long: not done within {patience:g} s") from None
                raise
            finally:
                for pipe in _open_pipes(process):
                    pipe.close()
        finally:
            self._close()
        if code not in codes:
            raise GitFailed(self._arguments, code, complaint.decode(errors="replace"))
        return printed

    def _started(self, has_stdin: bool) -> "subprocess.Popen[bytes]":
        try:
            return subprocess.Popen(
                self._command,
                cwd=self._git.folder,
                env=self._environment,
                stdin=subprocess.PIPE if has_stdin else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                umask=self._git.umask,
                bufsize=0,
            )
        except FileNotFoundError as error:
            if error.filename == "git":
                raise FileNotFoundError(errno.ENOENT, "not found: install git, or put it in PATH", "git") from None
            raise

    def _exchanged(
        self, process: "subprocess.Popen[bytes]", stdin: bytes, deadline: float, most_output: int
    ) -> tuple[bytes, bytes]:
        """Write ``stdin`` to git; return its standard output and error once git has closed both.

        Raises TimeoutError at the deadline, and GitFailed for more than ``most_output`` bytes or after ``break_off``.
        """
        rest = memoryview(stdin)
        said = {process.stdout: bytearray(), process.stderr: bytearray()}
        with selectors.DefaultSelector() as ready:
            ready.register(self._woken, selectors.EVENT_READ)
            for pipe in _open_pipes(process):
                os.set_blocking(pipe.fileno(), False)
                ready.register(pipe, selectors.EVENT_WRITE if pipe is process.stdin else selectors.EVENT_READ, pipe)
            unread = set(said)
            while unread:
                events = ready.select(max(0.0, deadline - time.monotonic()))
                if not events:
                    raise TimeoutError
                for key, _ in events:
                    if key.fd == self._woken:
                        raise self._failed("git was broken off")
                    if key.data is process.stdin:
                        rest = rest[_write(key.fd, rest) :]
                        is_over = not rest
                    else:
                        chunk = os.read(key.fd, _CHUNK)
                        said[key.data] += chunk
                        is_over = not chunk
                    if is_over:
                        ready.unregister(key.fileobj)
                        key.data.close()
                        unread.discard(key.data)
                if len(said[process.stdout]) > most_output:
                    raise self._failed(f"git prints more than {most_output} bytes: too much to read")
                del said[process.stderr][:-_LONGEST_COMPLAINT]
        return bytes(said[process.stdout]), bytes(said[process.stderr])

    def _ended(self, process: "subprocess.Popen[bytes]", deadline: float) -> int:
        """Wait for git to exit, and return its exit code; raises TimeoutError at the deadline.

        Git usually exits as it closes its outputs.
        """
        while True:
            left = deadline - time.monotonic()
            try:
                return process.wait(max(0.0, min(left, _PAUSE)))
            except subprocess.TimeoutExpired:
                if left <= 0:
                    raise TimeoutError from None
                if self._broken_off:
                    raise self._failed("git was broken off") from None

    def _failed(self, why: str) -> GitFailed:
        return GitFailed(self._arguments, -1, why)

    def _close(self) -> None:
        with self._lock:
            os.close(self._woken)
            os.close(self._wake)
            self._woken = self._wake = -1


def _open_pipes(process: "subprocess.Popen[bytes]") -> list[IO[bytes]]:
    return [pipe for pipe in (process.stdin, process.stdout, process.stderr) if pipe is not None and not pipe.closed]


def _write(pipe: int, data: memoryview) -> int:
    """Write a chunk of the data to git's input, and return how many bytes of it are dealt with.

    If git has closed its input, that is all of the data.
    """
    try:
        return os.write(pipe, data[:_CHUNK])
    except BrokenPipeError:
        return len(data)


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End git and all processes that it started, by SIGTERM and after a while SIGKILL.

    On SIGTERM git removes its lock files.
    """
    if process.returncode is not None:
        return
    _signal_all(process, signal.SIGTERM)
    _read_out(process, time.monotonic() + _GRACE)
    # Only now is it waited for: until then nobody else can get its id.
    _signal_all(process, signal.SIGKILL)
    process.wait()


def _signal_all(process: "subprocess.Popen[bytes]", how: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, how)


def _read_out(process: "subprocess.Popen[bytes]", deadline: float) -> None:
    """Read and discard git's outputs until every process that has them open has closed them.

    Returns at the deadline (``time.monotonic()``) at the latest.
    """
    with selectors.DefaultSelector() as ready:
        for pipe in _open_pipes(process):
            if pipe is not process.stdin:
                ready.register(pipe, selectors.EVENT_READ)
        while ready.get_map():
            events = ready.select(max(0.0, deadline - time.monotonic()))
            if not events:
                return
            for key, _ in events:
                if not os.read(key.fd, _CHUNK):
                    ready.unregister(key.fileobj)


def _without_inner_repositories(arguments: Sequence[str]) -> list[str]:
    """Return a git command with an option that keeps git out of nested repositories.

    Without the option git would run the filters of such a repository; with it git compares only its commit.
    """
    command, *rest = arguments
    return [command, *([_ONLY_COMMITS] if command in _ENTERS else []), *rest]


def _repository(folder: Path) -> dict[str, str]:
    """Return the variables GIT_DIR and GIT_COMMON_DIR for a project or worktree.

    Empty if the folder is not the root of one.
    """
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
