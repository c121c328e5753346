"""What of a SQLite database in WAL mode survives a power loss.

SQLite appends pages to the log, and syncs it at each commit only with ``synchronous=FULL``. Now and then a checkpoint
copies the pages of the log into the database: it syncs the log, writes the pages, syncs the database. Afterwards the
next writer may begin the log anew, from its first byte, with another salt in its header.

So the durable state is a copy of the database file, made when the log began anew, and the frames of the log that were
synced since: by a commit, or by a checkpoint. How many there are stands in the shared-memory file (``mxFrame`` and
``nBackfill``).
(https://www.sqlite.org/walformat.html)
"""

import os
import random
import struct
from pathlib import Path

_HEADER = 32
_FRAME_HEADER = 24
# Bytes before mxFrame and nBackfill in the shared-memory file, which begins with two copies of a header of 48 bytes.
_WRITTEN = 16
_BACKFILLED = 96
_TORN = 0.5


class LogNote:
    """The durable contents of one database and of its log."""

    def __init__(self, path: Path, is_new: bool = False) -> None:
        self._path = path
        self._log = path.with_name(f"{path.name}-wal")
        self._shared = path.with_name(f"{path.name}-shm")
        self._database = b"" if is_new else path.read_bytes()
        self._durable = bytearray() if is_new else bytearray(_read(self._log))
        self._is_recovered = not is_new

    def update(self, is_synced: bool) -> None:
        """Note the present state after a write; ``is_synced``: all frames were synced."""
        log = self._open_log()
        if log is None:  # the last connection has closed: all is in the database
            self._database, self._durable = _read(self._path), bytearray()
            return
        try:
            header = os.pread(log, _HEADER, 0)
            if header != bytes(self._durable[:_HEADER]):
                # The log begins anew, which it may do only after the database was synced.
                self._database = _read(self._path)
                self._durable = bytearray()
            elif self._is_recovered:
                # What a crash left behind the last commit is overwritten, with the same header.
                self._durable = bytearray()
            self._is_recovered = False
            if len(header) < _HEADER:
                return
            frame = _FRAME_HEADER + struct.unpack(">I", header[8:12])[0]
            frames = self._frames(_WRITTEN if is_synced else _BACKFILLED)
            end = _HEADER + frames * frame
            if end > len(self._durable):
                self._durable += os.pread(log, end - len(self._durable), len(self._durable))
        finally:
            os.close(log)

    def _open_log(self) -> int | None:
        try:
            return os.open(self._log, os.O_RDONLY)
        except FileNotFoundError:
            return None

    def _frames(self, offset: int) -> int:
        """Return a number of frames that stands in the shared-memory file."""
        shared = _read(self._shared)
        if len(shared) < offset + 4:
            return 0
        count: int = struct.unpack_from("=I", shared, offset)[0]
        return count

    def after_power_loss(self, chance: random.Random) -> tuple[bytes, bytes | None]:
        """Return the contents of the database and of its log that a power loss leaves.

        Behind the durable part of the log there may be any part of what was written there and not synced.
        """
        durable = bytes(self._durable)
        written = _read(self._log)
        tail = written[len(durable) :] if written.startswith(durable[:_HEADER]) else b""
        if tail and chance.random() < _TORN:
            durable += tail[: chance.randrange(len(tail) + 1)]
        return self._database, durable or None


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
