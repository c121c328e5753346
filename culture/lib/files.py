"""Private files, atomic file replacement, and file locks.

**Replacement.** A program can be killed, and a machine can lose power, between any two system calls. ``replace_file``
leaves the old contents or the new ones at every moment, never a part and never an empty file:

1. write a temporary file in the same folder (``rename`` is atomic only within one file system);
2. ``fsync`` the file: otherwise the name can reach the disk before the contents, and power loss leaves an empty file;
3. ``rename`` it over the path;
4. ``fsync`` the folder: otherwise power loss can bring back the old file after the caller was told that the new one
   is there. A revoked token would be valid again.

When ``replace_file`` returns, the new contents survive power loss. The temporary file is ``NAME.new``, a fixed name:
after ``kill -9`` at most one is left, and the next replacement removes it. It is always created anew (``O_EXCL``), so
nobody can prepare it, and it is locked while it is written, so of two writers one waits for the other. After 5 s the
waiting one uses a random name instead: the other may be stopped, and must still find its own file when it goes on.
Two writers that each read, change and replace a file must hold ``write_lock`` from the reading on, or one loses its
change.
A symlink at the path is replaced, not followed.

**Locks.** ``FileLock`` uses ``flock``, which belongs to the open file. The kernel releases it when the process ends,
however it ends, so there are no stale locks. The POSIX locks of ``fcntl.lockf`` belong to the process: closing *any*
descriptor of the file drops them all. SQLite uses those, so a database must never be opened by a second descriptor
while it is in use; ``flock`` neither has that fault nor disturbs them. A lock file may be removed by its holder:
therefore whoever gets the lock checks that the path still leads to the file that was locked, and tries again if not.
"""

import errno
import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, Self

from culture.runtime import REAL, Runtime

PRIVATE_DIRECTORY = 0o700
PRIVATE_FILE = 0o600
# A program that only looks who holds a lock holds it for a moment, which must not keep a server from starting.
LOCK_TIMEOUT = 0.2
LOCK_PAUSE = 0.02
# Seconds that one writer of a file waits for another; programs in a sandbox can hold the lock of a file they may write.
_WRITER_TIMEOUT = 5.0
_WRITER_PAUSE = 0.002
_MOST_TRIES = 1000


class FileStamp(NamedTuple):
    """Identity of one version of a file: two versions have different stamps.

    Each replacement makes a file with a new inode.
    """

    inode: int
    changed: int
    size: int


def private_directory(path: Path) -> Path:
    """Create a folder and its missing parents with mode 0700, and return its path.

    A folder that exists is left unchanged.
    """
    if not path.is_dir():
        private_directory(path.parent)
        path.mkdir(mode=PRIVATE_DIRECTORY, exist_ok=True)
    return path


def open_private(path: Path, flags: int) -> int:
    """Open a file and return its descriptor; a file that is created has mode 0600.

    ``flags`` are those of ``os.open``. Raises OSError for a symlink.
    """
    private_directory(path.parent)
    return os.open(path, flags | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, PRIVATE_FILE)


def create_private(path: Path) -> None:
    """Create an empty file with mode 0600, unless the file exists.

    For SQLite databases: an existing file is not opened, since closing any descriptor of an open database would drop
    this process's locks on it. Raises OSError for a symlink.
    """
    if path.is_symlink() or not path.exists():
        os.close(open_private(path, os.O_RDWR))


def read_private(path: Path) -> tuple[bytes, FileStamp] | None:
    """Return the contents of a file and its stamp; None if there is no file.

    If other users could read the file, its mode is changed to 0600.
    """
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    with os.fdopen(file, "rb") as source:
        if os.fstat(file).st_mode & 0o077:
            os.fchmod(file, PRIVATE_FILE)
        data = source.read()
        return data, _stamp(os.fstat(file))


def file_stamp(path: Path) -> FileStamp | None:
    """Return the stamp of the file that is at this path now; None if there is no file.

    This takes one system call.
    """
    try:
        return _stamp(os.stat(path, follow_symlinks=False))
    except FileNotFoundError:
        return None


def _stamp(status: os.stat_result) -> FileStamp:
    return FileStamp(status.st_ino, status.st_mtime_ns, status.st_size)


def replace_file(
    path: Path,
    contents: bytes | str,
    *,
    mode: int | None = PRIVATE_FILE,
    durable: bool = True,
    check: Callable[[Path], object] | None = None,
    runtime: Runtime = REAL,
) -> None:
    """Replace or create a file in one step: readers see either the old or the new contents.

    Missing folders are created with mode 0700. ``mode`` None keeps the permissions of the replaced file. ``durable``
    False leaves out both fsyncs, for a file that is written often and whose loss does no harm. ``check`` is called with
    the path of the complete temporary file; if it raises, the file stays as it was.
    """
    private_directory(path.parent)
    temporary, file = _open_temporary(path, runtime)
    try:
        try:
            _write(file, contents.encode() if isinstance(contents, str) else contents, runtime)
            os.fchmod(file, _present_mode(path) if mode is None else mode)
            if durable:
                runtime.fsync(file)
            if check is not None:
                check(temporary)
            if not _is_same(temporary, file):  # never publish what another writer has written a part of
                raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), str(temporary))
            os.replace(temporary, path)
        except BaseException:
            if _is_same(temporary, file):
                temporary.unlink()
            raise
    finally:
        os.close(file)
    if durable:
        sync_directory(path.parent, runtime=runtime)


def place_new_file(source: Path, path: Path, *, runtime: Runtime = REAL) -> None:
    """Move a complete file to a path on the same file system.

    Raises FileExistsError if it exists.
    """
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE_FILE))
    os.replace(source, path)
    sync_directory(path.parent, runtime=runtime)


def sync_directory(folder: Path, *, runtime: Runtime = REAL) -> None:
    """Write a folder's entries to disk (fsync): new and renamed files survive a power loss."""
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        runtime.fsync(file)
    finally:
        os.close(file)


def _open_temporary(path: Path, runtime: Runtime) -> tuple[Path, int]:
    """Create and lock the temporary file for a replacement of ``path``.

    Return path and descriptor. Waits a limited time while another process writes one.
    """
    temporary = path.with_name(f"{path.name}.new")
    deadline = runtime.monotonic() + _WRITER_TIMEOUT
    for _ in range(_MOST_TRIES):
        try:
            file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, PRIVATE_FILE)
        except FileExistsError:
            if not _remove_leftover(temporary, deadline, runtime):
                temporary = path.with_name(f"{path.name}.{runtime.token_hex(8)}.new")
            continue
        if _flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB, runtime) and _is_same(temporary, file):
            return temporary, file
        os.close(file)  # another writer took it for a leftover before it was locked
    raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), str(path))


def _remove_leftover(path: Path, deadline: float, runtime: Runtime) -> bool:
    """Remove the temporary file that a killed process left, and return True.

    While a living process still writes it, wait until the deadline (``runtime.monotonic()``); return False if it still
    does.
    """
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:  # another writer was quicker; what has this name from now on is not a leftover
        return True
    except OSError:  # a symlink, or another user's
        path.unlink(missing_ok=True)
        return True
    try:
        while not _flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB, runtime):
            if runtime.monotonic() >= deadline:
                return False
            runtime.sleep(_WRITER_PAUSE)
        if _is_same(path, file):
            path.unlink()
        return True
    finally:
        os.close(file)


def _write(file: int, data: bytes, runtime: Runtime) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[runtime.write(file, rest) :]


def _present_mode(path: Path) -> int:
    try:
        return path.stat().st_mode & 0o777
    except FileNotFoundError:
        return PRIVATE_FILE


class LockTaken(Exception):
    """A lock is held by another process, or by another object of this one.

    ``note`` is the text that the holder wrote into the lock file.
    """

    def __init__(self, note: str) -> None:
        super().__init__(note)
        self.note = note


class FileLock:
    """An exclusive lock on a file; a note (text) in the file tells others who holds the lock."""

    def __init__(self, path: Path, *, parents: bool = True, runtime: Runtime = REAL) -> None:
        """Make a lock that is not held yet; ``path`` is the lock file.

        ``parents`` False: if the folder is missing, ``acquire`` raises FileNotFoundError and does not create it.
        """
        self.path = path
        self._parents = parents
        self._runtime = runtime
        self._file = -1

    def acquire(self, note: str = "", timeout: float | None = LOCK_TIMEOUT) -> None:
        """Wait for the lock and take it; write ``note`` into the lock file.

        Raises LockTaken if the lock is not free within ``timeout`` seconds; None waits without limit.
        """
        deadline = None if timeout is None else self._runtime.monotonic() + timeout
        while not self._try(note, wait=deadline is None):
            if deadline is not None and self._runtime.monotonic() >= deadline:
                raise LockTaken(_read_note(self.path))
            if deadline is not None:
                self._runtime.sleep(LOCK_PAUSE)

    def try_acquire(self, note: str = "") -> bool:
        """Take the lock if it is free, without waiting, and return True; return False if it is held.

        ``note`` is written into the lock file.
        """
        return self._try(note, wait=False)

    @contextmanager
    def held(self, note: str = "", timeout: float | None = LOCK_TIMEOUT) -> Iterator[Self]:
        """Hold the lock during the ``with`` block.

        ``note`` is written into the lock file. Raises LockTaken if the lock is not free within ``timeout`` seconds.
        """
        self.acquire(note, timeout)
        try:
            yield self
        finally:
            self.release()

    def write(self, note: str) -> None:
        """Replace the text in the lock file by ``note``; only the holder of the lock may call this."""
        _put_note(self._file, note)

    def release(self, *, remove: bool = False) -> None:
        """Release the lock, and with ``remove`` delete the lock file; do nothing if it is not held."""
        if self._file >= 0:
            if remove:
                self.path.unlink(missing_ok=True)
            os.close(self._file)
            self._file = -1

    def _try(self, note: str, *, wait: bool) -> bool:
        file = self._open()
        try:
            how = fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB
            if _flock(file, how, self._runtime) and _is_same(self.path, file):
                _put_note(file, note)
                self._file, file = file, -1
                return True
            return False
        finally:
            if file >= 0:
                os.close(file)

    def _open(self) -> int:
        if self._parents:
            return open_private(self.path, os.O_RDWR)
        return os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, PRIVATE_FILE)


@contextmanager
def write_lock(path: Path, *, runtime: Runtime = REAL) -> Iterator[None]:
    """Hold a file's lock, ``NAME.lock``, during the block, which may read and replace the file.

    Waits without limit until the lock is free.
    """
    with FileLock(path.with_name(f"{path.name}.lock"), runtime=runtime).held(timeout=None):
        yield


def note_of_holder(path: Path) -> str | None:
    """Return the text in a lock file that a process holds; None if no process holds it."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    try:
        return None if _flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB, REAL) else _read_note(path)
    finally:
        os.close(file)


def _flock(file: int, operation: int, runtime: Runtime) -> bool:
    """Lock an open file by flock; return False if another holder prevents it.

    ``operation``: the flags of flock; only with LOCK_NB it does not wait.
    """
    try:
        runtime.flock(file, operation)
    except BlockingIOError:
        return False
    return True


def _is_same(path: Path, file: int) -> bool:
    """Return whether the path leads to the same file as the open descriptor."""
    try:
        return os.path.samestat(os.fstat(file), path.stat(follow_symlinks=False))
    except FileNotFoundError:
        return False


def _put_note(file: int, note: str) -> None:
    data = note.encode()
    os.pwrite(file, data, 0)
    os.ftruncate(file, len(data))


def _read_note(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""
