"""The pid file that a running process holds, with a note by which others find and end it.

A pid file usually holds a number, and whoever reads it must guess whether that number is still the same process: its
start time is compared, or it is asked for by name. Here the process keeps a lock on the file as long as it lives, and
the kernel releases the lock when it dies, by ``kill -9`` and power loss too. A file that nobody holds is no process,
whatever it says; one that is held was written by the process that lives, so a reused number is never taken for it.
To end it, its pidfd is opened first and the file is read again: only if the same note is still held is it signalled.
"""

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

from culture.lib.files import FileLock, note_of_holder
from culture.lib.process import handle


@dataclass(frozen=True)
class ProcessNote:
    """Note of a running process in its pid file, for other processes.

    Each kind of process has a subclass with further fields.
    """

    pid: int
    since: float
    """When it started, in seconds since 1970."""

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Parse the text of a pid file; None if it does not fit this kind of process.

        Unknown fields are ignored.
        """
        try:
            data = json.loads(text)
            note = cls(**{each.name: _frozen(data[each.name]) for each in fields(cls) if each.name in data})
        except (ValueError, TypeError):
            return None
        return note if type(note.pid) is int and isinstance(note.since, (int, float)) else None

    def __str__(self) -> str:
        return json.dumps(asdict(self)) + "\n"


NoteT = TypeVar("NoteT", bound=ProcessNote)

_LOOKS = 20
_NEXT_LOOK = 0.005
"""Seconds between two looks at the note of a process that does not exist."""


class PidFile(Generic[NoteT]):
    """The pid file of this process: locked while it runs, with a note (ProcessNote) inside."""

    def __init__(self, path: Path, note: NoteT) -> None:
        self._lock = FileLock(path)
        self.note = note

    def acquire(self) -> None:
        """Lock the pid file and write the note; raises LockTaken if another living process holds it."""
        self._lock.acquire(str(self.note))

    def change(self, **changed: Any) -> None:
        """Set these fields of the note in the pid file, which other processes read."""
        self.note = replace(self.note, **changed)
        self._lock.write(str(self.note))

    def release(self, *, remove: bool = True) -> None:
        """Unlock the pid file and delete it.

        With ``remove`` False the file stays, and others can read it.
        """
        self._lock.release(remove=remove)

    @contextmanager
    def releasing(self) -> Iterator[None]:
        """Unlock and delete the pid file after the block.

        If the block raises, the file stays, so that others can read the note in it.
        """
        try:
            yield
        except BaseException:
            self.release(remove=False)
            raise
        self.release()


def running(path: Path, kind: type[NoteT]) -> NoteT | None:
    """Return the note of the living process that holds the pid file.

    None if no process of this kind holds it.
    """
    for _ in range(_LOOKS):
        text = note_of_holder(path)
        note = kind.parse(text) if text is not None else None
        if note is None or _exists(note.pid):
            break
        # A new process has locked the file and not written its note yet: this is the note of the one before. It stays
        # if the holder lives in a container of its own, whose pids mean nothing here.
        time.sleep(_NEXT_LOOK)
    return note


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass
    return True


def all_running(folder: Path, kind: type[NoteT]) -> dict[str, NoteT]:
    """Return the notes of living processes of a kind, whose pid files are in a folder, by name.

    The name is that of the pid file, without ``.pid``.
    """
    names = sorted(file.name.removesuffix(".pid") for file in folder.glob("*.pid"))
    return {name: note for name in names if (note := running(folder / f"{name}.pid", kind)) is not None}


def last_note(path: Path, kind: type[NoteT]) -> NoteT | None:
    """Return the note in a pid file, whether its process still lives or not.

    None if there is no file, or no note of this kind in it.
    """
    try:
        return kind.parse(path.read_text(encoding="utf-8", errors="replace"))
    except FileNotFoundError:
        return None


def end(path: Path, kind: type[NoteT], timeout: float) -> bool | None:
    """Send SIGTERM to the process that holds the pid file; return whether it exited in time.

    None if no process of this kind holds the file. ``timeout`` is in seconds.
    """
    note = running(path, kind)
    if note is None:
        return None

    def is_same() -> bool:
        now = running(path, kind)
        return now is not None and (now.pid, now.since) == (note.pid, note.since)

    return handle.end(note.pid, is_same, timeout)


def _frozen(value: object) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value
