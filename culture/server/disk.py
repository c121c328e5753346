"""A file that is always whole: written beside, made durable, then put in place; one writer at a time."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from culture.config import paths


class FileStamp(NamedTuple):
    """What tells one version of a file from another; every write makes a new inode."""

    inode: int
    changed: int
    size: int


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Hold the right to write, also against other processes; the kernel lets go of it with the process."""
    lock = paths.open_private(path.with_name(f"{path.name}.lock"), os.O_RDWR)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def replace(path: Path, data: bytes) -> None:
    """Put new contents in place of the old; whoever is interrupted leaves one or the other. Only within `writing`."""
    beside = path.with_name(f"{path.name}.new")
    file = paths.open_private(beside, os.O_WRONLY | os.O_TRUNC)
    try:
        os.fchmod(file, paths.PRIVATE_FILE)
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(file, rest) :]
        os.fsync(file)
    finally:
        os.close(file)
    os.replace(beside, path)
    make_durable(path.parent)


def read(path: Path) -> tuple[bytes, FileStamp] | None:
    """The contents and their stamp, None when there is no file; one that others could read becomes private."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    with os.fdopen(file, "rb") as source:
        if os.fstat(file).st_mode & 0o077:
            os.fchmod(file, paths.PRIVATE_FILE)
        data = source.read()
        return data, _stamp(os.fstat(file))


def stamp(path: Path) -> FileStamp | None:
    """Which version is there now: one stat."""
    try:
        return _stamp(os.stat(path, follow_symlinks=False))
    except FileNotFoundError:
        return None


def _stamp(found: os.stat_result) -> FileStamp:
    return FileStamp(found.st_ino, found.st_mtime_ns, found.st_size)


def make_durable(folder: Path) -> None:
    """The new name is part of the folder, which has to be on disk as well."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
