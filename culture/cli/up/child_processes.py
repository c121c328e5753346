"""What a command launches, noted while no signal can come between: how it ends need not look for it by a name."""

import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from threading import Lock, current_thread, main_thread
from types import FrameType

Make = Callable[[], "subprocess.Popen[bytes]"]
Launch = Callable[[str, Make], "subprocess.Popen[bytes]"]
"""Launches a process; the text is what people call it."""


class TooLate(Exception):
    """Everything is being ended; nothing is launched any more."""


def plainly(what: str, make: Make) -> "subprocess.Popen[bytes]":
    """Launch something that is not ended together with this command."""
    return make()


class Interrupts:
    """A handler of signals: the first is a KeyboardInterrupt, after what is held is done; further ones are nothing."""

    def __init__(self) -> None:
        self._is_held = False
        self._waits = False
        self._is_over = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """A signal has come."""
        if self._is_held:
            self._waits = True
        elif not self._is_over:
            self._is_over = True
            raise KeyboardInterrupt

    @contextmanager
    def held(self) -> Iterator[None]:
        """Do something that is not broken off; other threads never are."""
        if current_thread() is not main_thread():
            yield
            return
        self._is_held = True
        try:
            yield
        finally:
            self._is_held = False
            if self._waits and not self._is_over:
                self._is_over = True
                raise KeyboardInterrupt


class Launched:
    """The processes that one command has launched, by what people call them."""

    def __init__(self, held: Callable[[], AbstractContextManager[None]]) -> None:
        self._held = held
        self._lock = Lock()
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._is_over = False

    def launch(self, what: str, make: Make) -> "subprocess.Popen[bytes]":
        """Launch a process and note it, as one step; ``TooLate`` once they are ended."""
        with self._held(), self._lock:
            if self._is_over:
                raise TooLate
            self._processes[what] = process = make()
        return process

    def code(self, what: str, patience: float) -> int | None:
        """How the process of that name ends within so many seconds; None while it runs, or was not launched here."""
        process = self._processes.get(what)
        if process is None:
            return None
        with suppress(subprocess.TimeoutExpired):
            process.wait(patience)
        return process.returncode

    def all(self) -> "Mapping[str, subprocess.Popen[bytes]]":
        """All there are, and ever will be: from here on nothing is launched."""
        with self._lock:
            self._is_over = True
        return self._processes
