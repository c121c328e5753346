"""Which process is the server of a name, known from a file that the living server holds."""

import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Self

from culture import __version__
from culture.config import paths
from culture.lib.files import FileLock, LockTaken, note_of_holder
from culture.lib.process import handle
from culture.lib.process.log_rotation import is_own_output
from culture.server.errors import StartError

if TYPE_CHECKING:  # whoever only asks who runs needs no settings
    from culture.config.model import ServerConfig

# How much longer than its own time to say goodbye a server may take to be gone.
GRACE = 5.0


@dataclass(frozen=True)
class ServerNote:
    """What a running server says about itself; no addresses means it does not accept yet, no log that it
    prints to where it was started, no version that it is older than this field."""

    pid: int
    since: float
    data_dir: str
    shutdown_timeout: float
    options: tuple[str, ...] = ()
    addresses: tuple[tuple[str, int], ...] = ()
    log: str = ""
    version: str = ""
    stopping: bool = False
    """Whether it was told to stop."""

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Read a note back; None when it is not one."""
        try:
            said = json.loads(text)
            addresses = tuple((str(host), int(port)) for host, port in said["addresses"])
            options = tuple(map(str, said["options"]))
            pid, since, timeout = int(said["pid"]), float(said["since"]), float(said["shutdown_timeout"])
            log, version = (str(said.get(key, "")) for key in ("log", "version"))
            stopping = said.get("stopping") is True
            return cls(pid, since, str(said["data_dir"]), timeout, options, addresses, log, version, stopping)
        except (ValueError, KeyError, TypeError):
            return None

    def __str__(self) -> str:
        return json.dumps(asdict(self)) + "\n"


class PidFile:
    """The running server's own side: hold the file, and say in it what others want to know."""

    def __init__(self, config: "ServerConfig", options: Sequence[str]) -> None:
        self._server = config.name
        self._lock = FileLock(paths.pid_file(config.name))
        timeout = config.limits.shutdown_timeout
        log = paths.log_file(config.name)
        self._note = ServerNote(
            os.getpid(),
            time.time(),
            str(config.data_dir),
            timeout,
            tuple(options),
            log=str(log) if is_own_output(log) else "",
            version=__version__,
        )

    @contextmanager
    def held(self) -> Iterator[Self]:
        """Hold the file, whatever a server that is gone left in it; refuse when a living one holds it."""
        try:
            self._lock.acquire(str(self._note))
        except LockTaken as taken:
            raise StartError(already_running(self._server, ServerNote.parse(taken.note))) from None
        try:
            yield self
        except BaseException:
            self._lock.release()  # what it says tells `culture up` whether it was told to stop
            raise
        self._lock.release(remove=True)

    def accepts(self, addresses: Sequence[tuple[str, int]]) -> None:
        """Say where clients may connect from now on."""
        self._note = replace(self._note, addresses=tuple(addresses))
        self._lock.write(str(self._note))

    def stops(self) -> None:
        """Say that the server was told to stop."""
        self._note = replace(self._note, stopping=True)
        self._lock.write(str(self._note))


def already_running(server: str, note: ServerNote | None) -> str:
    """What to say to somebody who starts a server twice."""
    pid = f" (pid {note.pid})" if note else ""
    return (
        f"{server} is running already{pid}. Look at it with `culture server status`, or use `culture server restart`."
    )


def running(server: str) -> ServerNote | None:
    """The living server of that name; a file that nobody holds is no server, whatever it says."""
    text = note_of_holder(paths.pid_file(server))
    return ServerNote.parse(text) if text is not None else None


def was_told_to_stop(server: str) -> bool:
    """Whether a server that is gone, and did not end in order, had been told to stop."""
    try:
        note = ServerNote.parse(paths.pid_file(server).read_text(encoding="utf-8", errors="replace"))
    except FileNotFoundError:
        return False
    return note is not None and note.stopping


def all_running() -> list[str]:
    """The names of the servers that live in this home folder."""
    found = sorted(file.stem for file in (paths.home() / "run").glob("*.pid"))
    return [server for server in found if running(server)]


def end(server: str, grace: float = GRACE) -> bool | None:
    """Ask the server to stop and wait until its process is gone: whether it went; None when there was none."""
    note = running(server)
    if note is None:
        return None
    return handle.end(note.pid, lambda: running(server) == note, note.shutdown_timeout + grace)
