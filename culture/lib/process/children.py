"""Child processes of one command, recorded so that Ctrl-C at any moment ends all of it.

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
    """The command is ending its processes, so it may start no more."""


def launch_unrecorded(name: str, make: Make) -> "subprocess.Popen[bytes]":
    """Start a process that keeps running when this command ends; ``make`` starts it.

    It is in no list of processes to be ended; ``name`` is not used.
    """
    return make()


class Interrupts:
    """A signal handler: the first signal raises KeyboardInterrupt, further ones do nothing.

    While signals are held back (``held``), the exception waits for the end of the block.
    """

    def __init__(self) -> None:
        self._is_held = False
        self._is_pending = False
        self._is_over = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal: the first raises KeyboardInterrupt, or waits while signals are held back.

        The parameters are those of each signal handler.
        """
        if self._is_held:
            self._is_pending = True
        elif not self._is_over:
            self._is_over = True
            raise KeyboardInterrupt

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold signals back during the block; one that came meanwhile is handled at its end.

        In other threads than the main one this does nothing, since signals reach the main thread only.
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
    """The processes that one command has started, by the name with which messages call them."""

    def __init__(self, held: Callable[[], AbstractContextManager[None]]) -> None:
        self._held = held
        self._lock = Lock()
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._is_over = False

    def launch(self, name: str, make: Make) -> "subprocess.Popen[bytes]":
        """Start a process by ``make()`` and record it under ``name``, in one step, and return it.

        Raises ``TooLate`` after ``all`` was called.
        """
        with self._held(), self._lock:
            if self._is_over:
                raise TooLate
            self._processes[name] = process = make()
        return process

    def exit_code(self, name: str, timeout: float) -> int | None:
        """Return the exit code of the process with this name; wait up to ``timeout`` s for its end.

        None while it runs, or if this command did not start it.
        """
        process = self._processes.get(name)
        if process is None:
            return None
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout)
        return process.returncode

    def all(self) -> "Mapping[str, subprocess.Popen[bytes]]":
        """Return all processes that were started, by name.

        From then on ``launch`` raises ``TooLate``.
        """
        with self._lock:
            self._is_over = True
        return self._processes


def end_child(process: "subprocess.Popen[bytes]", grace: float, force: float) -> bool:
    """Wait for a child that was sent SIGTERM; send it SIGKILL after ``grace`` seconds.

    Returns whether it exited, at the latest ``force`` seconds after SIGKILL.
    """
    for timeout in (grace, force):
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.kill()
        else:
            return True
    return False
