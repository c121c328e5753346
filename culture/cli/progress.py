"""How far long work has come, shown on a terminal and to nobody else."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Self, TextIO

_LONG = 0.5  # seconds before anything is shown
_STEP = 0.1
_WIDTH = 30


class Progress:
    """A bar on stderr: ``with Progress("Copying", total) as bar: … bar.step(n)``."""

    def __init__(self, label: str, total: int, stream: TextIO | None = None, long: float = _LONG) -> None:
        self._label = label
        self._total = total
        self._stream = stream or sys.stderr
        self._done = 0
        self._is_shown = False
        self._next = time.monotonic() + long if self._stream.isatty() else float("inf")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Show it no longer."""
        self._next = float("inf")
        if self._is_shown:
            self._put("")

    def step(self, number: int = 1) -> None:
        """So much more is done."""
        self._done += number
        now = time.monotonic()
        if now >= self._next:
            self._next = now + _STEP
            self._put(self._bar())

    def _bar(self) -> str:
        if not self._total:
            return f"{self._label} {self._done}"
        part = min(self._done / self._total, 1.0)
        filled = int(part * _WIDTH)
        return f"{self._label} [{'#' * filled}{'-' * (_WIDTH - filled)}] {part:4.0%}"

    def _put(self, text: str) -> None:
        self._is_shown = bool(text)
        self._stream.write(f"\r{text}\x1b[K")
        self._stream.flush()


@contextmanager
def elapsing(label: str, stream: TextIO | None = None, long: float = _LONG) -> Iterator[None]:
    """Show how long work takes that cannot say how far it is."""
    out = stream or sys.stderr
    if not out.isatty():
        yield
        return
    ended = threading.Event()
    shown = threading.Thread(target=_count, args=(label, out, ended, long), daemon=True)
    shown.start()
    try:
        yield
    finally:
        ended.set()
        shown.join()


def _count(label: str, out: TextIO, ended: threading.Event, long: float) -> None:
    begun = time.monotonic()
    wait: Callable[[float], bool] = ended.wait
    if wait(long):
        return
    while True:
        out.write(f"\r{label} … {time.monotonic() - begun:.0f} s\x1b[K")
        out.flush()
        if wait(1.0):
            out.write("\r\x1b[K")
            out.flush()
            return
