"""The audit files: one that is appended to, and the full ones, renamed by time."""

import os
from collections.abc import Sequence
from pathlib import Path

from culture.runtime import REAL, Runtime
from culture.skills.audit.entries import Entry, line

NAME = "audit.jsonl"


class AuditFile:
    """Appends entries to the audit file and syncs it to disk.

    A full file is renamed, and the oldest are deleted if there are more than ``keep``.
    """

    def __init__(self, folder: Path, size: int, keep: int, runtime: Runtime = REAL) -> None:
        self._folder = folder
        self._size = size
        self._keep = keep
        self._runtime = runtime
        self._file = -1

    def write(self, entries: Sequence[Entry]) -> None:
        """Append entries to the audit file, one line each."""
        self.append([line(entry) for entry in entries])

    def append(self, lines: Sequence[bytes]) -> None:
        """Append lines to the audit file and sync it; on ``OSError`` none of them is in the file."""
        if self._file < 0:
            self._open()
        elif os.fstat(self._file).st_size >= self._size:
            self._rotate()
        data = b"".join(lines)
        before = os.fstat(self._file).st_size
        try:
            written = 0
            while written < len(data):
                written += self._runtime.write(self._file, data[written:])
            self._runtime.fsync(self._file)
        except OSError:
            os.ftruncate(self._file, before)  # all or none
            raise

    def close(self) -> None:
        """Close the audit file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _open(self) -> None:
        path = self._folder / NAME
        self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        size = os.fstat(self._file).st_size
        if size and os.pread(self._file, 1, size - 1) != b"\n":
            os.write(self._file, b"\n")  # a crash cut off the last line

    def _rotate(self) -> None:
        self.close()
        while (rotated := self._folder / f"audit-{self._runtime.utc():%Y%m%dT%H%M%S.%fZ}.jsonl").exists():
            self._runtime.sleep(1e-6)
        (self._folder / NAME).rename(rotated)
        for old in sorted(self._folder.glob("audit-*.jsonl"))[: -self._keep]:
            old.unlink()
        self._open()
