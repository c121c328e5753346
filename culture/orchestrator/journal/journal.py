"""A write-ahead journal: what the team is about to do and has done, one JSON line per entry.

The problem: the orchestrator starts processes, creates worktrees, sends prompts and messages. It may be killed between
any two steps, and the next process has to know which of them happened, or a member is hired twice and a prompt is lost.
Effects on other processes, git and IRC cannot share a transaction with our file.

The rules:

1. Before an effect an entry ``intend`` is written and fsynced, with everything needed to perform it (the chosen nick,
   the prompt's key). After it, ``done``, or ``failed`` if it cannot be done.
2. Every act can be repeated without harm: a daemon accepts a prompt's key once, a worktree that exists is kept, a
   member that runs is only attached to. So an ``intend`` without ``done`` is performed again after a crash
   (`reconcile`).
3. The state is a function of the entries (`replay`). Nothing else changes it, so that reading the journal yields the
   state that the process had.
4. The state is written to state.json with each entry (`store`); after ``LONGEST`` entries the journal starts empty
   behind it. Entries have increasing numbers, and replay skips those that the snapshot already contains: a crash
   between the two writes does no harm.

Why it is right: a line counts once it is complete and fsynced. A line cut off by a crash is removed at the next start,
and its act had not begun: the effect follows the write. A full disk raises before the effect, and leaves no half line.

Example: ``hire intend spark-Harper`` is written, the daemon started, then the process is killed. The next one reads the
journal, finds the hire open, attaches to the running daemon, gives the first prompt under the recorded key (the daemon
ignores it if it has it) and writes ``hire done``.
"""

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
    """Phase of an act in the journal: to be done, done, or failed."""

    INTEND = "intend"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One entry of the journal: an act in one of its phases, with its data."""

    number: int
    at: float
    what: str
    phase: Phase
    data: Mapping[str, Any] = field(default_factory=dict)


class TeamJournal:
    """The journal's file; when ``write`` returns, the line is on disk."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._next = 1
        self._handle = -1

    def read(self) -> list[JournalEntry]:
        """Return the entries of the journal, and truncate the file after its last complete line."""
        try:
            text = self._file.read_bytes()
        except FileNotFoundError:
            return []
        complete, _, _ = text.rpartition(b"\n")
        entries = list(_entries(complete))
        length = sum(len(line) + 1 for line in complete.split(b"\n")[: len(entries)])
        if length < len(text):
            self._cut(text, length)
        self._next = entries[-1].number + 1 if entries else 1
        return entries

    def write(self, at: float, what: str, phase: Phase, data: Mapping[str, Any]) -> JournalEntry:
        """Append an entry to the journal, fsync it, and return it.

        ``at``: seconds since 1970; ``what``: the kind of act, ``phase``: whether it is to be done, done or failed;
        ``data``: what is needed to perform it. Raises ``OSError``, with nothing written, if the write fails.
        """
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
        """Empty the journal's file: the snapshot contains all entries up to number ``after``."""
        self.close()
        sync_directory(self._file.parent)
        _shorten(self._file, 0)
        self._next = after + 1

    def continue_after(self, number: int) -> None:
        """Ensure that the next entry gets a higher number than ``number``."""
        self._next = max(self._next, number + 1)

    def _cut(self, text: bytes, length: int) -> None:
        """Truncate the journal to its first ``length`` bytes, the readable lines of ``text``.

        ``text``: the file's contents. Complete lines that cannot be read are written to another file first.
        """
        rest = text[length:]
        if b"\n" in rest:
            aside = next(name for n in count(1) if not (name := self._file.with_suffix(f".cut-{n}")).exists())
            aside.write_bytes(rest)
            log.error("%s cannot be read from byte %d on; the rest is in %s", self._file, length, aside)
        _shorten(self._file, length)

    def close(self) -> None:
        """Close the journal's file."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


def peek(file: Path) -> list[JournalEntry]:
    """Return the complete entries of a journal that another process may be writing."""
    try:
        return list(_entries(file.read_bytes().rpartition(b"\n")[0]))
    except FileNotFoundError:
        return []


def _entries(text: bytes) -> Iterator[JournalEntry]:
    for line in text.split(b"\n"):
        try:
            data = json.loads(line)
            yield JournalEntry(data.pop("n"), data.pop("at"), data.pop("what"), Phase(data.pop("phase")), data)
        except (ValueError, KeyError, AttributeError):
            return


def _line(entry: JournalEntry) -> bytes:
    head = {"n": entry.number, "at": entry.at, "what": entry.what, "phase": entry.phase.value}
    return json.dumps({**head, **entry.data}, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _shorten(file: Path, length: int) -> None:
    """Truncate a file in place to ``length`` bytes, and fsync it; works on a full disk, too."""
    handle = os.open(file, os.O_WRONLY)
    try:
        os.ftruncate(handle, length)
        os.fsync(handle)
    finally:
        os.close(handle)
