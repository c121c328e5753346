"""What a client showed, read from the log that it writes itself."""

import asyncio
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.support.waiting import PATIENCE

# Generous: a client is a process that has to be started on a machine which may be busy.


class Transcript:
    """A log that grows; each wait begins behind the line that the last one found."""

    def __init__(self, file: Path, lines: asyncio.StreamReader) -> None:
        self._file = file
        self._lines = lines
        self._passed: list[str] = []

    async def shows(self, pattern: str) -> re.Match[str]:
        """The next line in which the pattern is found."""
        self._passed.clear()
        try:
            async with asyncio.timeout(PATIENCE):
                while True:
                    line = plain(await self._next())
                    self._passed.append(line)
                    if found := re.search(pattern, line):
                        return found
        except TimeoutError:
            passed = "\n  ".join(self._passed)
            raise AssertionError(f"{self._file.name} does not show {pattern!r}, only:\n  {passed}") from None

    async def _next(self) -> str:
        raw = await self._lines.readline()
        if not raw:
            raise EOFError(f"nobody follows {self._file.name} any more")
        return raw.decode()

    def count(self, pattern: str) -> int:
        """In how many of all its lines the pattern is found, the ones passed over included."""
        lines = self._file.read_text("utf-8").splitlines() if self._file.exists() else []
        return sum(re.search(pattern, plain(line)) is not None for line in lines)


def plain(line: str) -> str:
    """A line without the time in front and with a space between its columns."""
    return re.sub(r"^([-\d]{10} [:\d]{8}\t|\d\d:\d\d )", "", line.rstrip("\n")).replace("\t", " ")


@asynccontextmanager
async def following(file: Path) -> AsyncIterator[Transcript]:
    """Follow a log from its beginning, whether it exists already or not."""
    os.close(os.open(file, os.O_WRONLY | os.O_CREAT, 0o600))
    tail = await asyncio.create_subprocess_exec(
        *("tail", "--lines=+1", "--follow=name", "--retry", "--sleep-interval=0.05", f"--pid={os.getpid()}", file),
        stdout=asyncio.subprocess.PIPE,
    )
    assert tail.stdout is not None
    try:
        yield Transcript(file, tail.stdout)
    finally:
        tail.kill()
        await tail.communicate()
