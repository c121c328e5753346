"""The file of a daemon's socket: for its owner alone from the first moment, and never taken from a living daemon."""

import logging
import os
import re
import socket
import stat
from pathlib import Path

from culture.config import paths
from culture.lib.files import PRIVATE_FILE, FileLock, private_directory
from culture.runtime import REAL, Runtime

BACKLOG = 128
_PROBE_PATIENCE = 2.0

log = logging.getLogger(__name__)


class SocketTaken(Exception):
    """The daemon cannot have its socket; the text says why and what to do."""


class SocketFile:
    """A listening socket, its file, the symlink by which others find it, and the lock that says whose it is."""

    def __init__(self, path: Path, alias: Path | None = None, *, runtime: Runtime = REAL) -> None:
        if len(os.fsencode(path)) > paths.SOCKET_PATH_LIMIT:
            raise SocketTaken(
                f"{path} is longer than the {paths.SOCKET_PATH_LIMIT} bytes a Unix socket's path may have: "
                "set XDG_RUNTIME_DIR to a folder with a shorter path"
            )
        self.path = path
        self._lock = _lock(path, runtime=runtime)
        try:
            _check_folder(path.parent)
            _remove_dead(path, runtime=runtime)
            self.socket = _listen(path, runtime=runtime)
        except BaseException:
            self._lock.release()
            raise
        self._inode = path.lstat().st_ino
        self._alias = alias if alias is not None and alias != path and _link(alias, path, runtime=runtime) else None

    def remove(self) -> None:
        """Take the file away, unless it has become somebody else's."""
        if self._alias is not None and _leads_to(self._alias, self.path):
            self._alias.unlink(missing_ok=True)
        try:
            if self.path.lstat().st_ino == self._inode:
                self.path.unlink()
        except FileNotFoundError:
            pass
        self._lock.release()


def _lock(path: Path, *, runtime: Runtime) -> FileLock:
    """Two daemons that start at once must not both find the old socket dead."""
    lock = FileLock(paths.home() / "run" / f"{path.name}.lock", runtime=runtime)
    if not lock.try_acquire():
        raise _living(path)
    return lock


def _living(path: Path) -> SocketTaken:
    return SocketTaken(f"a daemon is running at {path}: stop that one first")


def _check_folder(folder: Path) -> None:
    try:
        private_directory(folder)
        status = folder.stat()
    except OSError as error:
        raise SocketTaken(f"{folder}: {error.strerror}; set XDG_RUNTIME_DIR to a folder of your own") from None
    is_shared = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    if is_shared and not status.st_mode & stat.S_ISVTX:
        raise SocketTaken(f"others may write to {folder}: chmod 700 it, or set XDG_RUNTIME_DIR to another folder")
    if status.st_uid not in (0, os.geteuid()):
        raise SocketTaken(f"{folder} belongs to another user: set XDG_RUNTIME_DIR to a folder of your own")


def _remove_dead(path: Path, *, runtime: Runtime) -> None:
    try:
        status = path.lstat()
    except FileNotFoundError:
        return
    if _is_alias(path, status):
        path.unlink()  # the name is this daemon's own: another home had put its symlink there while it was free
        return
    if not stat.S_ISSOCK(status.st_mode):
        kind = "a symlink" if stat.S_ISLNK(status.st_mode) else "no socket"
        raise SocketTaken(f"{path} is {kind}, and none of ours: look at it and remove it")
    if status.st_uid != os.geteuid():
        raise SocketTaken(f"{path} belongs to another user: set XDG_RUNTIME_DIR to a folder of your own")
    if _answers(path, runtime=runtime):
        raise _living(path)
    path.unlink()


def _link(alias: Path, path: Path, *, runtime: Runtime) -> bool:
    """Make the symlink where the name is free; whatever is there and not a dead leftover of ours is left alone."""
    try:
        _remove_leftover(alias, path, runtime=runtime)
        alias.symlink_to(path)
    except OSError as error:
        log.info("%s is not made for %s: %s", alias, path, error.strerror)
        return False
    return True


def _remove_leftover(alias: Path, path: Path, *, runtime: Runtime) -> None:
    """Remove our own symlink, or socket of an earlier version, behind which nobody listens."""
    try:
        status = alias.lstat()
    except FileNotFoundError:
        return
    is_link, is_socket = stat.S_ISLNK(status.st_mode), stat.S_ISSOCK(status.st_mode)
    if status.st_uid != os.geteuid() or not (is_link or is_socket):
        return
    if (is_link and (_leads_to(alias, path) or not alias.exists())) or not _answers(alias, runtime=runtime):
        alias.unlink()


def _is_alias(path: Path, status: os.stat_result) -> bool:
    """Is it a symlink of this user to the socket of the same nick in another home?"""
    if not stat.S_ISLNK(status.st_mode) or status.st_uid != os.geteuid():
        return False
    nick = path.name.removeprefix("culture-")
    return re.fullmatch(f"culture-([0-9a-f]{{8}}-)?{re.escape(nick)}", Path(os.readlink(path)).name) is not None


def _leads_to(alias: Path, path: Path) -> bool:
    try:
        return os.readlink(alias) == str(path)
    except OSError:
        return False


def _answers(path: Path, *, runtime: Runtime) -> bool:
    with runtime.new_socket(socket.AF_UNIX) as probe:
        probe.settimeout(_PROBE_PATIENCE)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            return False
        except OSError:
            # Somebody listens who is too busy to accept.
            return True
    return True


def _listen(path: Path, *, runtime: Runtime) -> socket.socket:
    listener = runtime.new_socket(socket.AF_UNIX)
    try:
        # bind() gives the file the mode that the socket itself has; the umask is everybody's, and stays as it is.
        os.fchmod(listener.fileno(), PRIVATE_FILE)
        listener.bind(str(path))
        if stat.S_IMODE(path.lstat().st_mode) != PRIVATE_FILE:
            raise SocketTaken(f"{path} cannot be made for its owner alone: set XDG_RUNTIME_DIR to another folder")
        listener.listen(BACKLOG)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        raise SocketTaken(f"{path}: {error.strerror}") from None
    except SocketTaken:
        listener.close()
        raise
    return listener
