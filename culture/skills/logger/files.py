"""Log files: their paths; append to them, keep a limited number of failed lines and retry."""

import hashlib
import os
import string
import unicodedata
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path

from culture.lib.files import open_private
from culture.protocol.names import fold
from culture.runtime import REAL, Runtime

ROOM = 8 * 1024 * 1024  # bytes of lines that may wait for the disk
RETRY = 5.0  # seconds

Line = tuple[Path, bytes]
_MOMENT = len("2026-03-19 10:00:00")
_UNESCAPED = frozenset(string.ascii_lowercase + string.digits + "_-+.")
_NOT_FIRST = frozenset("-.")  # would look like an option or a hidden folder, or be ".."
_LONGEST = 255  # bytes in the name of a file
_HEAD = 200  # bytes before the digest


class _Waiting:
    """Lines of one log file that could not be written yet.

    ``lost``: how many further lines were dropped for lack of room.
    """

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.size = 0
        self.lost = 0

    def add(self, line: bytes) -> None:
        """Queue a line that could not be written.

        If lines were dropped before it, a note that says how many is queued first.
        """
        self.lines += [*self._note(), line]
        self.size += len(line)
        self.lost = 0

    def all(self) -> list[bytes]:
        """Return all lines to write, the last one a note about dropped lines, if there are any."""
        return [*self.lines, *self._note()]

    def _note(self) -> list[bytes]:
        """Return a log line that says how many lines are missing; empty if none is."""
        if not self.lost:
            return []
        return [self.lines[-1][:_MOMENT] + f"\t--\t{self.lost} lines are missing here: the disk took none\n".encode()]


class Files:
    """Writes to log files from one thread; each file is opened for each write.

    So other programs may move the files between two writes.
    """

    def __init__(
        self,
        report: Callable[[str], None],
        room: int = ROOM,
        retry: float = RETRY,
        runtime: Runtime = REAL,
    ) -> None:
        self._report = report
        self._room = room
        self._retry = retry
        self._monotonic = runtime.monotonic
        self._waiting: dict[Path, _Waiting] = {}
        self._size = 0
        self._next = 0.0
        self._why = ""
        self._is_reported = False
        self.lost = 0

    @property
    def patience(self) -> float | None:
        """Return the seconds until ``write`` must be called again to retry; None if no line waits."""
        return max(0.0, self._next - self._monotonic()) if self._waiting else None

    @property
    def waiting(self) -> int:
        """Return the number of lines that wait for the disk."""
        return sum(len(each.lines) for each in self._waiting.values())

    def write(self, lines: Iterable[Line], now: bool = False) -> None:
        """Append lines to their files, after the lines that could not be written before.

        Those are retried if the pause after the failure is over, or at once with ``now``.
        """
        if self._waiting and (now or self._monotonic() >= self._next):
            self._retry_waiting()
        fresh: dict[Path, list[bytes]] = {}
        for path, line in lines:
            fresh.setdefault(path, []).append(line)
        for path, of_one in fresh.items():
            if path in self._waiting or not self._append(path, of_one):
                self._queue(path, of_one)
        self._report_state()

    def _retry_waiting(self) -> None:
        self._next = self._monotonic() + self._retry
        for path, waiting in list(self._waiting.items()):
            if self._append(path, waiting.all()):
                self._size -= waiting.size
                del self._waiting[path]

    def _append(self, path: Path, lines: list[bytes]) -> bool:
        try:
            append(path, b"".join(lines))
        except OSError as error:
            if not self._waiting:
                self._next = self._monotonic() + self._retry
            self._why = f"{error.filename or path}: {error.strerror}"
            return False
        return True

    def _queue(self, path: Path, lines: list[bytes]) -> None:
        for line in lines:
            waiting = self._waiting.get(path)
            if self._size + len(line) <= self._room:
                if waiting is None:
                    waiting = self._waiting[path] = _Waiting()
                waiting.add(line)
                self._size += len(line)
            else:
                self.lost += 1
                if waiting is not None:
                    waiting.lost += 1

    def _report_state(self) -> None:
        """Report to the operators, once each, that writing fails and that it works again."""
        if self._waiting and not self._is_reported:
            self._is_reported = True
            self._report(f"cannot write {self._why}; lines are kept in memory until it works again")
        elif self._is_reported and not self._waiting:
            self._is_reported = False
            lost, self.lost = self.lost, 0
            self._report(f"logs are written again; {lost or 'no'} lines were lost")


def append(path: Path, data: bytes) -> None:
    """Append whole lines to a file, all of them or none; a new file has mode 0600.

    Raises ``OSError`` if the disk does not take them.
    """
    file = open_private(path, os.O_RDWR | os.O_APPEND)
    try:
        size = os.fstat(file).st_size
        if size and os.pread(file, 1, size - 1) != b"\n":
            data = b"\n" + data  # end a line that a crash cut off
        try:
            _write(file, data)
        except OSError:
            os.ftruncate(file, size)
            raise
    finally:
        os.close(file)


def _write(file: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file, rest) :]


@lru_cache(maxsize=4096)
def file_of(folder: Path, channel: str, day: str) -> Path:
    """Return the path of a channel's log for a day (``2026-11-16``)."""
    return folder / folder_of(channel) / f"{day}.log"


def folder_of(channel: str) -> str:
    """Return the folder name of a channel's logs, different for each channel.

    It is the name in lower case, without the first ``#``, escaped as %XX. ``urllib.parse.unquote`` reverses it,
    unless the name is too long for a file system: then it ends in a digest.
    """
    name = fold(channel)[1:]
    escaped = "".join(_escaped(character, at == 0) for at, character in enumerate(name))
    if len(escaped.encode()) <= _LONGEST:
        return escaped
    digest = hashlib.sha256(name.encode()).hexdigest()[:32]
    return f"{escaped.encode()[:_HEAD].decode(errors='ignore')}%+{digest}"


def _escaped(character: str, first: bool) -> str:
    if _is_plain(character) and not (first and character in _NOT_FIRST):
        return character
    return "".join(f"%{byte:02X}" for byte in character.encode())


def _is_plain(character: str) -> bool:
    """Return whether a character may stay unescaped in a folder name.

    That is if it is readable and survives file systems that normalise names.
    """
    if character.isascii():
        return character in _UNESCAPED
    return character.isalnum() and unicodedata.normalize("NFKD", character.casefold()) == character
