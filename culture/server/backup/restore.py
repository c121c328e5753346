"""Restores a backup: unpacks and checks it, then exchanges the data folders in one step.

Everything is unpacked and checked beside the data folder, on its disk. Then two folder names change places by one
system call (renameat2), so that a crash leaves either the old or the new data, never a mixture.
"""

import ctypes
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

from culture.lib.files import (
    FileLock,
    LockTaken,
    open_private,
    private_directory,
    read_private,
    replace_file,
    sync_directory,
    write_lock,
)
from culture.runtime import REAL, Runtime
from culture.server.auth.account_store import AccountStore
from culture.server.backup import tarball
from culture.server.backup.manifest import ACCOUNTS, CONFIG, DATA, TLS, BadBackup, Manifest, schemas
from culture.server.backup.tarball import Count
from culture.server.core import ids

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


def exchange(one: Path, other: Path) -> None:
    """Exchange two files or folders in one step: each gets the name of the other."""
    libc = ctypes.CDLL(None, use_errno=True)
    names = os.fsencode(one), os.fsencode(other)
    if libc.renameat2(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(one), None, str(other))


_UNPACKING = ".unpacking-"


class Unpacked(NamedTuple):
    """A backup that was checked and unpacked into a folder of its own, with a new epoch of ids."""

    manifest: Manifest
    folder: Path

    @property
    def data(self) -> Path:
        """Return the unpacked folder that is to become the data folder."""
        return self.folder / DATA

    @property
    def accounts(self) -> Path | None:
        """Return the path of the unpacked accounts file; None if the backup has none."""
        return _if_there(self.folder / ACCOUNTS)

    @property
    def config(self) -> Path | None:
        """Return the path of the unpacked configuration file; None if the backup has none."""
        return _if_there(self.folder / CONFIG)

    @property
    def tls(self) -> list[Path]:
        """Return the paths of the unpacked certificates and keys."""
        return sorted((self.folder / TLS).glob("*"))


def _if_there(path: Path) -> Path | None:
    return path if path.exists() else None


@contextmanager
def unpacked(
    source: IO[bytes],
    beside: Path,
    supported: Mapping[str, int],
    stamp: str,
    count: Count,
    *,
    runtime: Runtime = REAL,
) -> Iterator[Unpacked]:
    """Unpack a backup next to the data folder ``beside``, for the duration of the block.

    ``source``: the backup's contents; ``supported``: the highest schema that this program can read of each database;
    ``stamp``: a part of the new folder's name. ``count`` is called with the bytes of each chunk. Raises BadBackup,
    which leaves everything unchanged.
    """
    manifest, members = tarball.opened(source)
    _check(manifest, beside.parent, supported)
    with _alone(beside, runtime=runtime):
        folder = beside.with_name(f"{beside.name}{_UNPACKING}{stamp}")
        try:
            private_directory(folder / DATA)
            for member in members:
                _write(folder / member.name, member.chunks, count, runtime=runtime)
            ids.begin_epoch(folder / DATA / ids.FILE, runtime=runtime)
            _make_durable(folder, runtime=runtime)
            yield Unpacked(manifest, folder)
        finally:
            shutil.rmtree(folder)


@contextmanager
def _alone(beside: Path, runtime: Runtime) -> Iterator[None]:
    """During the block, keep other restores out; remove first what a killed restore left behind.

    ``beside``: the data folder. Raises BadBackup if another restore is under way.
    """
    lock = FileLock(beside.with_name(f"{beside.name}.restoring"), runtime=runtime)
    try:
        lock.acquire(f"{os.getpid()}\n")
    except LockTaken as taken:
        raise BadBackup(f"another restore is under way (pid {taken.note.strip()})") from None
    try:
        for stale in beside.parent.iterdir():
            if stale.name.startswith(f"{beside.name}{_UNPACKING}"):
                shutil.rmtree(stale)
        yield
    finally:
        lock.release(remove=True)


def _check(manifest: Manifest, folder: Path, supported: Mapping[str, int]) -> None:
    for name, schema in schemas(manifest).items():
        if schema > supported.get(name, schema):
            raise BadBackup(f"{name} has schema {schema}, written by culture {manifest.program}: use that version")
    free = shutil.disk_usage(private_directory(folder)).free
    if manifest.size > free:
        raise BadBackup(f"{folder} has {free} bytes free, and it needs {manifest.size}")


def _write(path: Path, chunks: Iterator[bytes], count: Count, runtime: Runtime) -> None:
    with os.fdopen(open_private(path, os.O_WRONLY | os.O_EXCL), "wb") as file:
        for chunk in chunks:
            file.write(chunk)
            count(len(chunk))
        file.flush()
        runtime.fsync(file.fileno())


def _make_durable(folder: Path, runtime: Runtime) -> None:
    for each, _, _ in os.walk(folder):
        sync_directory(Path(each), runtime=runtime)


def put_in_place(new: Path, folder: Path, aside: Path, *, runtime: Runtime = REAL) -> bool:
    """Make ``new`` the data folder, with the path ``folder``; move the former one to ``aside``.

    Returns False if there was no former data. The caller holds the data folder's lock. At every moment either the new
    or the former data is in place.
    """
    os.rename(new, aside)
    try:
        exchange(aside, folder)
    except BaseException:
        os.rename(aside, new)
        raise
    sync_directory(folder.parent, runtime=runtime)
    if any(each.name != "lock" for each in aside.iterdir()):
        return True
    shutil.rmtree(aside)
    return False


def keep_revoked(new: Path, present: Path, prefix: str, *, runtime: Runtime = REAL) -> list[str]:
    """Revoke in a backup's accounts file those accounts that are revoked here.

    Return their names. ``new``: accounts file of the backup; ``present``: that of this server; ``prefix``: the
    server's short name if nicks begin with it, else "". Raises AccountsError if one of the files cannot be read.
    """
    here, there = (AccountStore(path, prefix, runtime=runtime) for path in (present, new))
    names = [account.name for account in here.all() if not account.is_active and there.active(account.name)]
    for name in names:
        there.revoke(name)
    return names


def put_file(new: Path, path: Path, stamp: str, *, runtime: Runtime = REAL) -> Path | None:
    """Give the file at ``path`` the contents of ``new``; return where the former file was moved.

    None if there was no former file, or it has the same contents. ``stamp`` is part of the moved file's name.
    """
    data = new.read_bytes()
    with write_lock(path, runtime=runtime):
        former = read_private(path)
        if former is not None and former[0] == data:
            return None
        aside = path.with_name(f"{path.name}.before-{stamp}")
        if former is not None:
            replace_file(aside, former[0], runtime=runtime)
        replace_file(path, data, runtime=runtime)
    return aside if former is not None else None
