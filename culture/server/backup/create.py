"""Makes a backup: finds the files, copies each while the server may write it, packs the copies."""

import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from time import gmtime, strftime
from typing import NamedTuple

from culture.lib.files import open_private, place_new_file
from culture.runtime import REAL, Runtime
from culture.server import database
from culture.server.backup import tarball
from culture.server.backup.manifest import DATA, BackupFile, Manifest, is_known
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


def data_files(folder: Path, left_out: Callable[[Path], None]) -> Iterator[Source]:
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


def copy_source(source: Source, folder: Path, count: Count, *, runtime: Runtime = REAL) -> BackupFile:
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
        _copy_bytes(source.path, target, count)
    size, digest = _digest(target)
    return BackupFile(source.name, size, digest, schema)


def _copy_bytes(source: Path, target: Path, count: Count) -> None:
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


class Label(NamedTuple):
    """Description of the server in a backup: name, program version, and store of the history."""

    server: str
    program: str
    history: str


class BackupDiskFull(Exception):
    """The disk has too little room for a backup."""


def create(
    file: Path,
    label: Label,
    sources: Sequence[Source],
    at: float,
    copied: Count,
    packed: Count,
    *,
    runtime: Runtime = REAL,
) -> Manifest:
    """Write a backup of the files in ``sources`` to ``file`` and return its manifest.

    ``label``: describes the server; ``at``: time of the backup (seconds since 1970). ``copied`` and ``packed`` are
    called with numbers of bytes, as files are copied and then packed. Raises FileExistsError if ``file`` exists, and
    BackupDiskFull.
    """
    if file.exists():
        raise FileExistsError(file)
    _check_room(sources, file.parent)
    stage = Path(tempfile.mkdtemp(prefix=f".{file.name}-", dir=file.parent))
    try:
        copies = _copies(sources, stage, copied, runtime=runtime)
        manifest = Manifest(label.server, _time(at), label.program, copies, label.history)
        _write(stage / "backup", file, manifest, at, packed, runtime=runtime)
    finally:
        shutil.rmtree(stage)
    return manifest


def _time(at: float) -> str:
    return strftime("%Y-%m-%dT%H:%M:%SZ", gmtime(at))


def _copies(sources: Sequence[Source], stage: Path, count: Count, runtime: Runtime) -> tuple[BackupFile, ...]:
    files = []
    for source in sources:
        try:
            files.append(copy_source(source, stage, count, runtime=runtime))
        except FileNotFoundError:
            continue  # the running server removed it meanwhile
    return tuple(files)


def _write(part: Path, file: Path, manifest: Manifest, at: float, count: Count, runtime: Runtime) -> None:
    """Write the backup to ``part`` and move it to ``file``.

    ``at``: time of the files; ``count`` is called with numbers of bytes. Raises FileExistsError if ``file`` exists:
    no file is replaced.
    """
    with os.fdopen(open_private(part, os.O_WRONLY | os.O_EXCL), "wb") as out:
        tarball.pack(out, manifest, part.parent, at, count)
        out.flush()
        runtime.fsync(out.fileno())
    place_new_file(part, file, runtime=runtime)


def _check_room(sources: Sequence[Source], folder: Path) -> None:
    needed = sum(source.path.stat().st_size for source in sources if source.path.exists())
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise BackupDiskFull(f"{folder} has {free} bytes free, and the copies need {needed}")
