"""Makes a backup: copies each file first, then packs the copies into one file."""

import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import gmtime, strftime
from typing import NamedTuple

from culture.lib.files import open_private, place_new_file
from culture.runtime import REAL, Runtime
from culture.server.backup import collect, tarball
from culture.server.backup.collect import Source
from culture.server.backup.manifest import BackupFile, Manifest
from culture.server.backup.tarball import Count


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
            files.append(collect.copy(source, stage, count, runtime=runtime))
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
