"""The disk of a host: real files in memory, and a note of which of their contents would survive a power loss.

**Model.** A program writes real files in a folder on tmpfs. What is durable is noted beside them:

- a file's contents at its last ``fsync``, and a folder's names at its last ``fsync``;
- of a database the file and the part of its write-ahead log that SQLite has synced (``wal.py``), and with it the names
  in its folder, which SQLite syncs when a log is new;
- a folder in which anything was synced: file systems with a journal keep the order in which names were made.

A crash makes the folder of the next life. ``kill`` copies all files: the kernel still has them. ``power`` leaves what
was durable. Of what was not synced any part may have reached the disk, so a name that was not synced may be there or
not, one that was removed may be back, and a file or log may have a torn tail; the seed decides.

**Trouble.** While the disk is full, or fails to sync, each commit and each ``fsync`` raises the error of a real one;
while it is full, each write to a file, too. Trouble belongs to the ``Drive`` of a machine, so the next life of its
program has it as well. So does a crash that is armed at the n-th commit or ``fsync`` from now: right before it is on
disk, or after it, before anybody knows.
"""

import errno
import os
import random
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tests.simulation.wal import LogNote

if TYPE_CHECKING:
    from tests.simulation.world import Host

_FOREVER = 1e9
_WRITTEN_ANYWAY = 0.5
"""How likely the kernel has written what nobody has synced."""
_DISK_ERRORS = (
    os.strerror(errno.ENOSPC),
    os.strerror(errno.EIO),
    "database or disk is full",
    "disk I/O error",
)
_PRIVATE = 0o700


class ArmedCrash(NamedTuple):
    """A crash at a commit or ``fsync``: ``phase`` is ``before`` or ``after``; it comes after so many others."""

    phase: str
    skip: int
    with_power: bool
    database: str = ""
    """Only those of the database or file whose path contains this count."""


class Drive:
    """The disk drive of a machine, over the lives of its programs: what is wrong with it, and when they crash."""

    def __init__(self) -> None:
        self.armed: ArmedCrash | None = None
        self.troubles: dict[int, str] = {}
        """By the number of the fault ``full`` or ``sync``."""
        self.trouble_until = 0.0
        """When the last one ends or has ended."""

    def begin(self, number: int, kind: str, until: float) -> None:
        """Begin a trouble, which ``mend`` ends at this time."""
        self.troubles[number] = kind
        self.trouble_until = max(self.trouble_until, until)

    def mend(self, number: int) -> None:
        """End a trouble; others go on."""
        self.troubles.pop(number, None)

    def mend_all(self) -> None:
        """End all troubles, and arm no crash."""
        self.troubles.clear()
        self.armed = None


class Disk:
    """The files of one life of a host, and what of them is durable."""

    def __init__(self, folder: Path, drive: Drive | None = None) -> None:
        self.folder = folder
        self.drive = Drive() if drive is None else drive
        self.crash: Callable[[bool], None] = lambda with_power: None
        """Ends the host, with or without power, as soon as its code has returned."""
        self.connections: list[sqlite3.Connection] = []
        self._host: Host | None = None
        self._names: dict[str, dict[str, int]] = {}
        self._contents: dict[int, bytes] = {}
        self._logs: dict[str, LogNote] = {}
        folder.mkdir(parents=True, exist_ok=True, mode=_PRIVATE)
        self._note_all()

    def _note_all(self) -> None:
        """Take everything that is there at the start for durable."""
        for path in [self.folder, *self.folder.rglob("*")]:
            if path.is_dir():
                self._names[str(path)] = _names_in(path)
            elif not path.name.endswith((".db", ".db-wal")):
                self._contents[path.stat().st_ino] = path.read_bytes()
        for path in self.folder.rglob("*.db"):
            self._logs[str(path)] = LogNote(path)

    def attach(self, host: "Host") -> None:
        """Note whose disk this is."""
        self._host = host

    @property
    def trouble(self) -> str:
        """Return ``full``, ``sync`` or nothing."""
        kinds = self.drive.troubles.values()
        return "full" if "full" in kinds else next(iter(kinds), "")

    def check_room(self) -> None:
        """Raise OSError while the disk is full."""
        if self.trouble == "full":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def check_trouble(self) -> None:
        """Raise OSError while the disk is full or fails to sync."""
        if self.trouble and self._host is not None:
            self._host.world.happened[self.trouble] += 1
        self.check_room()
        if self.trouble:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    def pass_point(self, phase: str, path: str, seconds: float) -> None:
        """Take so much time before or after a commit or ``fsync``; a crash that is armed for it comes here."""
        assert self._host is not None
        self._host.wait(_FOREVER if self.strike(phase, path) else seconds, f"a write to {Path(path).name}")

    def note_synced(self, file: int) -> None:
        """Note that an open file or folder has been synced."""
        path = path_of(file)
        if path.is_dir():
            self._names[str(path)] = _names_in(path)
            self._note_folder(path)
        else:
            self._contents[os.fstat(file).st_ino] = path.read_bytes()
            self._note_folder(path.parent)

    def _note_folder(self, folder: Path) -> None:
        """Note that the names of a folder and of those around it are durable."""
        while folder != self.folder and self.folder in folder.parents:
            self._names.setdefault(str(folder.parent), {}).setdefault(folder.name, folder.stat().st_ino)
            folder = folder.parent

    def note_commit(self, database: str, is_synced: bool) -> None:
        """Note that something was written to a database; ``is_synced``: SQLite has synced its log."""
        note = self._logs.get(database)
        if note is None:
            note = self._logs[database] = LogNote(Path(database), is_new=True)
            folder = Path(database).parent
            self._names[str(folder)] = _names_in(folder)
            self._note_folder(folder)
        note.update(is_synced)

    def strike(self, phase: str, database: str) -> bool:
        """Begin the crash that is armed for this point of this commit; return whether there is one."""
        armed, host = self.drive.armed, self._host
        if armed is None or armed.phase != phase or armed.database not in database or host is None or not host.is_alive:
            return False
        if armed.skip:
            self.drive.armed = armed._replace(skip=armed.skip - 1)
            return False
        self.drive.armed = None
        host.world.happened["at-commit"] += 1
        host.world.after_step.append(lambda: self.crash(armed.with_power))
        return True

    def copy(self, target: Path, with_power: bool, chance: random.Random) -> None:
        """Copy what a crash leaves to the folder of the next life."""
        self._copy_folder(self.folder, target, chance if with_power else None)

    def _copy_folder(self, folder: Path, to: Path, chance: random.Random | None) -> None:
        """Copy what is left of a folder; ``chance`` decides what a power loss leaves, None: there is none."""
        to.mkdir(parents=True, exist_ok=True, mode=_PRIVATE)
        present = _names_in(folder)
        durable = present if chance is None else self._names.get(str(folder), {})
        for name in sorted({*durable, *present}):
            path, node = folder / name, durable.get(name)
            if chance is not None and node != present.get(name) and chance.random() < _WRITTEN_ANYWAY:
                node = present.get(name)
            if node is None or name.endswith((".db-shm", ".db-wal")):
                continue
            if path.is_dir():
                self._copy_folder(path, to / name, chance)
            elif path.suffix == ".db" and path.exists():
                self._copy_database(path, to / name, chance)
            else:
                _write(to / name, self._left_of(path, node, present.get(name), chance))

    def _copy_database(self, path: Path, to: Path, chance: random.Random | None) -> None:
        note = self._logs.get(str(path))
        log = path.with_name(f"{path.name}-wal")
        if chance is not None:
            if note is None:
                note = LogNote(path, is_new=True)
            database, tail = note.after_power_loss(chance)
        else:
            database, tail = path.read_bytes(), log.read_bytes() if log.exists() else None
        _write(to, database)
        if tail is not None:
            _write(to.with_name(f"{to.name}-wal"), tail)

    def _left_of(self, path: Path, node: int, present: int | None, chance: random.Random | None) -> bytes:
        """Return what is left of the contents of the file ``node``, which may have been at this path formerly."""
        if chance is None:
            return path.read_bytes()
        synced = self._contents.get(node, b"")
        written = path.read_bytes() if node == present else synced
        if written == synced or chance.random() >= _WRITTEN_ANYWAY:
            return synced
        least = len(synced) if written.startswith(synced) else 0
        return written[: chance.randint(least, len(written))]

    def close(self) -> None:
        """Close the databases of a life that has ended, without the checkpoint that a program would make."""
        for connection in self.connections:
            try:
                sqlite3.Connection.close(connection)
            except sqlite3.Error:
                pass
        self.connections.clear()


def is_disk_error(text: str) -> bool:
    """Return whether a text tells of a disk that is full or fails."""
    return any(each in text for each in _DISK_ERRORS)


def path_of(file: int) -> Path:
    """Return the path of an open file."""
    return Path(os.readlink(f"/proc/self/fd/{file}"))


def _names_in(folder: Path) -> dict[str, int]:
    return {each.name: each.inode() for each in os.scandir(folder)}


def _write(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    path.chmod(0o600)
