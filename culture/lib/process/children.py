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
    """Everything is being ended; nothing is started any more."""


def launch_unrecorded(name: str, make: Make) -> "subprocess.Popen[bytes]":
    """Start a process that is not ended together with this command."""
    return make()


class Interrupts:
    """A signal handler: the first signal raises KeyboardInterrupt, after a held section ends; others do nothing."""

    def __init__(self) -> None:
        self._is_held = False
        self._is_pending = False
        self._is_over = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Handle one signal."""
        if self._is_held:
            self._is_pending = True
        elif not self._is_over:
            self._is_over = True
            raise KeyboardInterrupt

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold signals back for the block; threads other than the main one never get any."""
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
    """The processes that one command started, by their name in messages."""

    def __init__(self, held: Callable[[], AbstractContextManager[None]]) -> None:
        self._held = held
        self._lock = Lock()
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._is_over = False

    def launch(self, name: str, make: Make) -> "subprocess.Popen[bytes]":
        """Start a process and record it in one step; ``TooLate`` once they are being ended."""
        with self._held(), self._lock:
            if self._is_over:
                raise TooLate
            self._processes[name] = process = make()
        return process

    def exit_code(self, name: str, timeout: float) -> int | None:
        """The exit code of a process, waited for so many seconds; None while it runs, or if it was not started here."""
        process = self._processes.get(name)
        if process is None:
            return None
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout)
        return process.returncode

    def all(self) -> "Mapping[str, subprocess.Popen[bytes]]":
        """All that were started, and ever will be: from here on ``launch`` refuses."""
        with self._lock:
            self._is_over = True
        return self._processes


def end_child(process: "subprocess.Popen[bytes]", grace: float, force: float) -> bool:
    """Wait for a child that was sent SIGTERM, and kill it after ``grace`` seconds; whether it ended."""
    for timeout in (grace, force):
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.kill()
        else:
            return True
    return False
