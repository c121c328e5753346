"""What the team was about to do and has done, line by line on disk: whatever ends the process, the next one knows."""

import json
import logging
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import count
from pathlib import Path
from typing import Any

from culture.lib.files import open_private, sync_directory

log = logging.getLogger(__name__)


class Phase(StrEnum):
    """How far an act has come."""

    INTEND = "intend"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One line: an act is intended before it is begun, and done when its effect is there."""

    number: int
    at: float
    what: str
    phase: Phase
    data: Mapping[str, Any] = field(default_factory=dict)


class TeamJournal:
    """Lines that are on disk before ``write`` returns; a line that was cut off by a crash never was."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._next = 1
        self._handle = -1

    def read(self) -> list[JournalEntry]:
        """All there is; what follows the last whole line is cut away."""
        try:
            text = self._file.read_bytes()
        except FileNotFoundError:
            return []
        whole, _, _ = text.rpartition(b"\n")
        entries = list(_entries(whole))
        length = sum(len(line) + 1 for line in whole.split(b"\n")[: len(entries)])
        if length < len(text):
            self._cut(text, length)
        self._next = entries[-1].number + 1 if entries else 1
        return entries

    def write(self, at: float, what: str, phase: Phase, data: Mapping[str, Any]) -> JournalEntry:
        """Add a line; OSError when it cannot be kept, and then it is not there."""
        entry = JournalEntry(self._next, at, what, phase, dict(data))
        line = _line(entry)
        if self._handle < 0:
            self._handle = open_private(self._file, os.O_WRONLY | os.O_APPEND)
        size = os.fstat(self._handle).st_size
        try:
            if os.write(self._handle, line) < len(line):
                raise OSError("the disk is full")
            os.fsync(self._handle)
        except OSError:
            os.ftruncate(self._handle, size)
            raise
        self._next += 1
        return entry

    def restart(self, after: int) -> None:
        """Everything up to this number is kept in a file beside it: begin anew behind it."""
        self.close()
        sync_directory(self._file.parent)
        _shorten(self._file, 0)
        self._next = after + 1

    def continue_after(self, number: int) -> None:
        """What comes next has a higher number than this, whatever the file has."""
        self._next = max(self._next, number + 1)

    def _cut(self, text: bytes, length: int) -> None:
        """Go on behind the last line that can be read; whole lines that cannot are put aside for people to look at."""
        rest = text[length:]
        if b"\n" in rest:
            aside = next(name for n in count(1) if not (name := self._file.with_suffix(f".cut-{n}")).exists())
            aside.write_bytes(rest)
            log.error("%s cannot be read from byte %d on; the rest is in %s", self._file, length, aside)
        _shorten(self._file, length)

    def close(self) -> None:
        """Let go of the file."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


def peek(file: Path) -> list[JournalEntry]:
    """The whole lines of a journal that somebody else may be writing."""
    try:
        return list(_entries(file.read_bytes().rpartition(b"\n")[0]))
    except FileNotFoundError:
        return []


def _entries(text: bytes) -> Iterator[JournalEntry]:
    for line in text.split(b"\n"):
        try:
            said = json.loads(line)
            yield JournalEntry(said.pop("n"), said.pop("at"), said.pop("what"), Phase(said.pop("phase")), said)
        except (ValueError, KeyError, AttributeError):
            return


def _line(entry: JournalEntry) -> bytes:
    head = {"n": entry.number, "at": entry.at, "what": entry.what, "phase": entry.phase.value}
    return json.dumps({**head, **entry.data}, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _shorten(file: Path, length: int) -> None:
    """In place: it works on a full disk, too, and leaves what stays untouched."""
    handle = os.open(file, os.O_WRONLY)
    try:
        os.ftruncate(handle, length)
        os.fsync(handle)
    finally:
        os.close(handle)
