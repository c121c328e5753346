"""Shows the progress of long work on a terminal, with rich.

Files, pipes and work below half a second see nothing.
"""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self, TextIO

if TYPE_CHECKING:  # rich takes 60 ms to load, which only work that takes longer pays
    from rich.progress import Progress as RichProgress
    from rich.progress import ProgressColumn

_LONG = 0.5  # seconds before anything is shown
_STEP = 0.1


class Progress:
    """A progress bar on stderr: ``with Progress("Copying", total) as bar: … bar.step(n)``."""

    def __init__(self, label: str, total: int, stream: TextIO | None = None, long: float = _LONG) -> None:
        self._label = label
        self._total = total
        self._stream = stream or sys.stderr
        self._done = 0
        self._bar: RichProgress | None = None
        self._next = time.monotonic() + long if self._stream.isatty() else float("inf")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the progress bar from the terminal."""
        self._next = float("inf")
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def step(self, number: int = 1) -> None:
        """Advance the progress bar by ``number`` units."""
        self._done += number
        now = time.monotonic()
        if now >= self._next:
            self._next = now + _STEP
            self._show()

    def _show(self) -> None:
        if self._bar is None:
            self._bar = self._new_bar()
        self._bar.update(self._bar.task_ids[0], completed=self._done, refresh=True)

    def _new_bar(self) -> "RichProgress":
        from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn

        if not self._total:
            return _begin(self._stream, self._label, None, TextColumn("{task.completed}"))
        return _begin(self._stream, self._label, self._total, BarColumn(), TaskProgressColumn(), TimeRemainingColumn())


@contextmanager
def elapsing(label: str, stream: TextIO | None = None, long: float = _LONG) -> Iterator[None]:
    """Show the elapsed time during the block, for work whose progress cannot be measured.

    ``label``: what is being done. ``stream``: where to draw, by default stderr. ``long``: seconds after which the time
    appears.
    """
    out = stream or sys.stderr
    if not out.isatty():
        yield
        return
    ended = threading.Event()
    shown = threading.Thread(target=_show_time, args=(label, out, ended, long), daemon=True)
    shown.start()
    try:
        yield
    finally:
        ended.set()
        shown.join()


def _show_time(label: str, stream: TextIO, ended: threading.Event, long: float) -> None:
    if ended.wait(long):
        return
    from rich.progress import TimeElapsedColumn

    bar = _begin(stream, f"{label} …", None, TimeElapsedColumn())
    try:
        while not ended.wait(1.0):
            bar.refresh()
    finally:
        bar.stop()


def _begin(stream: TextIO, label: str, total: int | None, *columns: "ProgressColumn") -> "RichProgress":
    """Return a one-line progress display of rich, which is drawn only on request.

    ``label``: what is being done. ``total``: number of units, None if unknown. ``columns``: what to draw after the
    label.
    """
    from rich.console import Console
    from rich.progress import Progress as RichProgress
    from rich.progress import TextColumn

    class _Terminal(Console):
        def show_cursor(self, show: bool = True) -> bool:
            """Override: leave the cursor visible, since a program that is killed could not restore it."""
            return False

    bar = RichProgress(
        TextColumn("{task.description}", markup=False),
        *columns,
        console=_Terminal(file=stream),
        auto_refresh=False,
        transient=True,
        # What the command prints goes where it went before: standard output may be a file.
        redirect_stdout=False,
        redirect_stderr=False,
    )
    bar.add_task(label, total=total)
    bar.start()
    return bar
