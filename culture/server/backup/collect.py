"""Finds the files for a backup and copies them while the server may be writing."""

import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from culture.lib.files import open_private
from culture.runtime import REAL, Runtime
from culture.server import database
from culture.server.backup.manifest import DATA, BackupFile, is_known
from culture.server.backup.tarball import Count

_MAGIC = b"SQLite format 3\0"
_BESIDE = ("-wal", "-shm", "-journal")  # files of the database whose name they extend
_PASSING = (".lock", ".new")  # held or written at this moment, without meaning afterwards
_PAGES = 1_000  # copied between two reports of progress
_CHUNK = 1 << 20


class Source(NamedTuple):
    """A file of the server on disk, and the name that it has in a backup."""

    path: Path
    name: str


def in_data(folder: Path, left_out: Callable[[Path], None]) -> Iterator[Source]:
    """Yield the files of the data folder that belong into a backup.

    Locks, temporary files and the journals of databases, which serve the running server only, are skipped. ``left_out``
    is called with each other file that a backup cannot have, such as a symlink.
    """
    for path in sorted(folder.rglob("*"), key=_order):
        try:
            mode = path.lstat().st_mode
        except FileNotFoundError:
            continue
        if stat.S_ISDIR(mode) or _is_passing(folder, path):
            continue
        name = f"{DATA}/{path.relative_to(folder).as_posix()}"
        if stat.S_ISREG(mode) and is_known(name):
            yield Source(path, name)
        else:
            left_out(path)


def _order(path: Path) -> tuple[bool, Path]:
    """Return a key that sorts files by path, but git objects after the refs that need them."""
    return "objects" in path.parts, path


def _is_passing(folder: Path, path: Path) -> bool:
    if path == folder / "lock" or path.name.endswith(_PASSING):
        return True
    return any(path.name.endswith(end) and is_database(_without(path, end)) for end in _BESIDE)


def _without(path: Path, end: str) -> Path:
    return path.with_name(path.name.removesuffix(end))


def is_database(path: Path) -> bool:
    """Return whether a file is a SQLite database."""
    try:
        with path.open("rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


def copy(source: Source, folder: Path, count: Count, *, runtime: Runtime = REAL) -> BackupFile:
    """Copy a file as of one moment into ``folder``, and return its entry for the manifest.

    The copy has mode 0600; ``count`` is called with the bytes of each chunk copied. Raises FileNotFoundError if the
    file is gone.
    """
    source.path.lstat()
    target = folder / source.name
    os.close(open_private(target, os.O_WRONLY | os.O_EXCL))
    schema = None
    if is_database(source.path):
        schema = _copy_database(source.path, target, count, runtime=runtime)
    else:
        _copy_file(source.path, target, count)
    size, digest = _digest(target)
    return BackupFile(source.name, size, digest, schema)


def _copy_file(source: Path, target: Path, count: Count) -> None:
    """Copy as many bytes as the file has when it is opened, since a log may grow meanwhile.

    ``count`` is called with the bytes of each chunk.
    """
    with source.open("rb") as reading, target.open("wb") as writing:
        left = os.fstat(reading.fileno()).st_size
        while left and (chunk := reading.read(min(left, _CHUNK))):
            writing.write(chunk)
            left -= len(chunk)
            count(len(chunk))


def _copy_database(source: Path, target: Path, count: Count, runtime: Runtime) -> int:
    """Copy one state of a SQLite database that others may be writing; return its schema number.

    ``count`` is called with the bytes of each chunk.
    """
    opened = database.open_reader(source, runtime=runtime)
    with closing(opened) as reading, closing(runtime.connect(target)) as writing:
        (page,) = reading.execute("PRAGMA page_size").fetchone()
        done = 0

        def progress(_status: int, left: int, total: int) -> None:
            nonlocal done
            count((total - left - done) * page)
            done = total - left

        # A read transaction keeps one state; else each write by others would restart the copy.
        reading.execute("BEGIN")
        schema = database.version(reading)
        reading.backup(writing, pages=_PAGES, progress=progress, sleep=0)
        reading.execute("COMMIT")
    return schema


def _digest(path: Path) -> tuple[int, str]:
    with path.open("rb") as file:
        return os.fstat(file.fileno()).st_size, hashlib.file_digest(file, "sha256").hexdigest()
