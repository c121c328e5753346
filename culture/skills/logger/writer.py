"""The thread that writes: the server never waits for the disk."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from culture.protocol.names import fold
from culture.protocol.text import Profile, clean
from culture.runtime import REAL, Runtime
from culture.skills.logger.files import Files, Line, file_of
from culture.skills.logger.format import ChannelLogFormat, Logged, LogLine, moment

Noted = tuple[Logged, tuple[str, ...]]
"""An event, and the channels concerned where it does not name one."""

_DAY = len("2026-03-19")


class LogWriter:
    """Formats events as log lines and writes them to files, in a thread.

    Its methods are called, and its callbacks run, in the event loop's thread.
    """

    def __init__(
        self,
        folder: Path,
        channels: Iterable[str],
        report: Callable[[str], None],
        failed: Callable[[BaseException], None],
        runtime: Runtime = REAL,
    ) -> None:
        self._folder = folder
        self._only = frozenset(map(fold, channels))
        self._loop = asyncio.get_running_loop()
        self._failed = failed
        self._scribe = ChannelLogFormat()
        self._batches: deque[tuple[list[Noted], Callable[[], None]] | None] = deque()
        self._wake = runtime.event()
        self.files = Files(lambda text: self._call(report, text), runtime=runtime)
        # A daemon: a disk that hangs for good does not keep the process from its end.
        self._thread = runtime.thread(self._run, "logger")
        self._thread.start()

    def write(self, batch: list[Noted], done: Callable[[], None]) -> None:
        """Queue a batch of events for writing; ``done`` is called when that was tried."""
        self._batches.append((batch, done))
        self._wake.set()

    async def stop(self) -> None:
        """Retry what could not be written, and end the writer thread."""
        self._batches.append(None)
        self._wake.set()
        # The thread itself says when it is over; nobody waits in a second one, which would outlive its deadline.
        while self._thread.is_alive():  # noqa: ASYNC110
            await asyncio.sleep(0.01)

    def _run(self) -> None:
        try:
            while (batch := self._next()) is not None:
                noted, done = batch
                self.files.write(self._lines(noted))
                self._call(done)
            self.files.write((), now=True)
        except BaseException as error:
            self._call(self._failed, error)

    def _next(self) -> tuple[list[Noted], Callable[[], None]] | None:
        if not self._batches:
            self._wake.wait(self.files.patience)
            self._wake.clear()  # before the look: what is queued after it sets the flag again
        return self._batches.popleft() if self._batches else ([], _nobody)

    def _lines(self, batch: list[Noted]) -> Iterator[Line]:
        for event, concerned in batch:
            for row in self._scribe.rows(event, concerned):
                if not self._only or fold(row.channel) in self._only:
                    yield self._line(row)

    def _line(self, row: LogLine) -> Line:
        when = moment(row.at)
        line = f"{when}\t{clean(row.who, Profile.LOG)}\t{clean(row.text, Profile.LOG)}\n"
        return file_of(self._folder, row.channel, when[:_DAY]), line.encode()

    def _call(self, function: Callable[..., Any], *arguments: object) -> None:
        with suppress(RuntimeError):  # the loop did not wait for us
            self._loop.call_soon_threadsafe(function, *arguments)


def _nobody() -> None:
    """Do nothing: the callback of an empty batch, with which failed lines are retried."""
