"""The pid file of a server: which process it is, where it listens, and how to stop it."""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from culture import __version__
from culture.config import paths
from culture.lib.files import LockTaken
from culture.lib.process import pid_file
from culture.lib.process.log_rotation import is_own_output
from culture.lib.process.pid_file import PidFile, ProcessNote
from culture.server.errors import StartError

if TYPE_CHECKING:  # only the server itself needs the settings
    from culture.config.model import ServerConfig

GRACE = 5.0
"""Seconds that a server may take to exit beyond its shutdown_timeout."""


@dataclass(frozen=True)
class ServerNote(ProcessNote):
    """The contents of a running server's pid file: its process, data folder, options, addresses.

    ``shutdown_timeout``: seconds that it may take to stop.
    """

    data_dir: str
    shutdown_timeout: float
    options: tuple[str, ...] = ()
    addresses: tuple[tuple[str, int], ...] = ()
    """Addresses where it accepts connections; empty before it does."""
    log: str = ""
    """File that its output goes to; empty for a terminal or systemd."""
    version: str = ""
    """Empty for servers older than this field."""
    stopping: bool = False
    """Whether it was told to stop."""


@contextmanager
def held(config: "ServerConfig", options: Sequence[str]) -> Iterator[PidFile[ServerNote]]:
    """Hold the pid file of a server during the block, as its process.

    ``options``: arguments with which it was started. ``StartError`` is raised if another process holds the file. If the
    block raises an exception, the contents of the file stay: from them `culture up` knows whether the server was asked
    to stop.
    """
    path, log = paths.pid_file(config.name), paths.log_file(config.name)
    note = ServerNote(
        os.getpid(),
        time.time(),
        str(config.data_dir),
        config.limits.shutdown_timeout,
        tuple(options),
        log=str(log) if is_own_output(log) else "",
        version=__version__,
    )
    file = PidFile(path, note)
    try:
        file.acquire()
    except LockTaken as taken:
        raise StartError(already_running(config.name, ServerNote.parse(taken.note))) from None
    with file.releasing():
        yield file


def already_running(server: str, note: ServerNote | None) -> str:
    """Return the error message for starting a server that runs already.

    ``note``: what its pid file says, None if that cannot be read.
    """
    pid = f" (pid {note.pid})" if note else ""
    return (
        f"{server} is running already{pid}. Look at it with `culture server status`, or use `culture server restart`."
    )


def running(server: str) -> ServerNote | None:
    """Return what the pid file of a running server says; None if the server does not run.

    It runs only if a process holds a lock on the file.
    """
    return pid_file.running(paths.pid_file(server), ServerNote)


def was_told_to_stop(server: str) -> bool:
    """Whether a server that died without removing its pid file had been asked to stop."""
    note = pid_file.last_note(paths.pid_file(server), ServerNote)
    return note is not None and note.stopping


def all_running() -> list[str]:
    """Return the names of the servers that run in this home folder."""
    return list(pid_file.all_running(paths.home() / "run", ServerNote))


def end(server: str, grace: float = GRACE) -> bool | None:
    """Stop a server and wait; return whether its process has exited, None if it did not run.

    ``grace``: seconds to wait in addition to the server's own timeout.
    """
    note = running(server)
    if note is None:
        return None
    return pid_file.end(paths.pid_file(server), ServerNote, note.shutdown_timeout + grace)
