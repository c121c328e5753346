"""What one command started, recorded so that Ctrl-C at any moment ends all of it.

Between the fork of a child and the line that records it, a signal could end the command: the child would then run on
with nobody who knows its number. So a child is started and recorded with signals held back (``Interrupts.held``), and
once everything is being ended (``ChildProcesses.all``) nothing more is started, whichever thread wanted to.
"""

import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from threading import Lock, current_thread, main_thread
from types import FrameType

Make = Callable[[], "subprocess.Popen[bytes]"]
Launch = Callable[[str, Make], "subprocess.Popen[bytes]"]
"""Starts a process; the text is its name in messages."""


class TooLate(Exception):
    """The command is ending its processes, so no more may be started."""


def launch_unrecorded(name: str, make: Make) -> "subprocess.Popen[bytes]":
    """Start a process that keeps running when this command ends; nothing records it."""
    return make()


class Interrupts:
    """A signal handler: the first signal raises KeyboardInterrupt, after a held section ends.

    Others do nothing.
    """

    def __init__(self) -> None:
        self._is_held = False
        self._is_pending = False
        self._is_over = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal: raise KeyboardInterrupt at the first, unless signals are held back."""
        if self._is_held:
            self._is_pending = True
        elif not self._is_over:
            self._is_over = True
            raise KeyboardInterrupt

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold signals back during the block; they are handled at its end.

        Only the main thread gets signals.
        """
        if current_thread() is not main_thread():
            yield
            return
        self._is_held = True
        try:
            yield
        finally:
            self._is_held = False
            if self._is_pending and not self._is_over:
                self._is_over = True
                raise KeyboardInterrupt


class ChildProcesses:
    """The processes that one command has started, by the name that messages use."""

    def __init__(self, held: Callable[[], AbstractContextManager[None]]) -> None:
        self._held = held
        self._lock = Lock()
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._is_over = False

    def launch(self, name: str, make: Make) -> "subprocess.Popen[bytes]":
        """Start a process and record it in one step; ``TooLate`` after ``all`` was called."""
        with self._held(), self._lock:
            if self._is_over:
                raise TooLate
            self._processes[name] = process = make()
        return process

    def exit_code(self, name: str, timeout: float) -> int | None:
        """Return the exit code of a process, waiting up to ``timeout`` seconds.

        None while it runs, or if this command did not start it.
        """
        process = self._processes.get(name)
        if process is None:
            return None
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout)
        return process.returncode

    def all(self) -> "Mapping[str, subprocess.Popen[bytes]]":
        """Return all processes that were started; from then on ``launch`` raises ``TooLate``."""
        with self._lock:
            self._is_over = True
        return self._processes


def end_child(process: "subprocess.Popen[bytes]", grace: float, force: float) -> bool:
    """Wait for a child that got SIGTERM; kill it after ``grace`` seconds.

    Return whether it exited.
    """
    for timeout in (grace, force):
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.kill()
        else:
            return True
    return False
