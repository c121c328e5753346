"""The disk of a host: real files in memory, and a note of which of their contents would survive a power loss.

**Model.** A program writes real files in a folder on tmpfs. What is durable is noted beside them:

- a file's contents at its last ``fsync``, and a folder's names at its last ``fsync``;
- of a database the file and the part of its write-ahead log that SQLite has synced (``wal.py``).

A crash makes the folder of the next life. ``kill`` copies all files: the kernel still has them. ``power`` leaves what
was durable. Of what was not synced any part may have reached the disk, so a name that was not synced may be there or
not, and a log may have a torn tail; the seed decides.

**Trouble.** While the disk is full, or fails to sync, each commit and each ``fsync`` raises the error of a real one.
A crash can be armed at the n-th commit from now: right before it is on disk, or after it, before anybody knows.
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
_PRIVATE = 0o700


class ArmedCrash(NamedTuple):
    """A crash at a commit: ``phase`` is ``before`` or ``after``; it comes after so many others."""

    phase: str
    skip: int
    with_power: bool
    database: str = ""
    """Only commits of the database whose path contains this count."""


class Disk:
    """The files of one life of a host, and what of them is durable."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.commits = 0
        self.armed: ArmedCrash | None = None
        self.crash: Callable[[bool], None] = lambda with_power: None
        """Ends the host, with or without power, as soon as its code has returned."""
        self.trouble = ""
        """``full``, ``sync`` or nothing."""
        self.trouble_until = 0.0
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

    def check_trouble(self) -> None:
        """Raise OSError while the disk is full or fails."""
        if self.trouble == "full":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if self.trouble:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    def note_synced(self, file: int) -> None:
        """Note that an open file or folder has been synced."""
        path = Path(os.readlink(f"/proc/self/fd/{file}"))
        if path.is_dir():
            self._names[str(path)] = _names_in(path)
        else:
            self._contents[os.fstat(file).st_ino] = path.read_bytes()

    def note_commit(self, database: str, is_synced: bool) -> None:
        """Note that something was written to a database; ``is_synced``: SQLite has synced its log."""
        note = self._logs.get(database)
        if note is None:
            note = self._logs[database] = LogNote(Path(database), is_new=True)
        note.update(is_synced)

    def strike(self, phase: str, database: str) -> bool:
        """Begin the crash that is armed for this point of this commit; return whether there is one."""
        armed, host = self.armed, self._host
        if armed is None or armed.phase != phase or armed.database not in database or host is None or not host.is_alive:
            return False
        if armed.skip:
            self.armed = armed._replace(skip=armed.skip - 1)
            return False
        self.armed = None
        host.world.after_step.append(lambda: self.crash(armed.with_power))
        return True

    def copy(self, target: Path, with_power: bool, chance: random.Random) -> None:
        """Copy what a crash leaves to the folder of the next life."""
        for path in sorted(self.folder.rglob("*")):
            to = target / path.relative_to(self.folder)
            if path.is_dir():
                to.mkdir(parents=True, exist_ok=True, mode=_PRIVATE)
            elif not path.name.endswith((".db-shm", ".db-wal")):
                to.parent.mkdir(parents=True, exist_ok=True, mode=_PRIVATE)
                if path.suffix == ".db":
                    self._copy_database(path, to, with_power, chance)
                else:
                    self._copy_file(path, to, with_power, chance)

    def _copy_database(self, path: Path, to: Path, with_power: bool, chance: random.Random) -> None:
        note = self._logs.get(str(path))
        log = path.with_name(f"{path.name}-wal")
        if with_power:
            if note is None:
                note = LogNote(path, is_new=True)
            database, tail = note.after_power_loss(chance)
        else:
            database, tail = path.read_bytes(), log.read_bytes() if log.exists() else None
        _write(to, database)
        if tail is not None:
            _write(to.with_name(f"{to.name}-wal"), tail)

    def _copy_file(self, path: Path, to: Path, with_power: bool, chance: random.Random) -> None:
        if not with_power:
            _write(to, path.read_bytes())
            return
        durable = self._names.get(str(path.parent), {}).get(path.name)
        present = path.stat().st_ino
        if durable != present and chance.random() < 0.5:
            durable = present  # the kernel happened to write the folder
        if durable is None:
            return
        contents = self._contents.get(durable)
        _write(to, contents if contents is not None else b"")

    def close(self) -> None:
        """Close the databases of a life that has ended, without the checkpoint that a program would make."""
        for connection in self.connections:
            try:
                sqlite3.Connection.close(connection)
            except sqlite3.Error:
                pass
        self.connections.clear()


def _names_in(folder: Path) -> dict[str, int]:
    return {each.name: each.inode() for each in os.scandir(folder)}


def _write(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    path.chmod(0o600)
