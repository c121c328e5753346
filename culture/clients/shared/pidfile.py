"""Which process is the daemon of an agent, known from a file that the living daemon holds."""

import json
import os
import time
from dataclasses import asdict, dataclass, replace
from typing import Self

from culture.config import paths
from culture.lib.files import FileLock, note_of_holder


@dataclass(frozen=True, slots=True)
class DaemonNote:
    """What a running daemon says about itself; ``ready`` once it is on IRC and its agent was started."""

    pid: int
    since: float
    ready: bool = False

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Read a note back; None when it is not a daemon's."""
        try:
            said = json.loads(text)
            return cls(int(said["pid"]), float(said["since"]), bool(said["ready"]))
        except (ValueError, KeyError, TypeError):
            return None

    def __str__(self) -> str:
        return json.dumps(asdict(self)) + "\n"


class DaemonFile:
    """The running daemon's own side: hold the file, and say in it how far it is."""

    def __init__(self, nick: str) -> None:
        self._lock = FileLock(paths.pid_file(nick))
        self._note = DaemonNote(os.getpid(), time.time())

    def acquire(self) -> None:
        """Hold the file; Taken when a living daemon does."""
        self._lock.acquire(str(self._note))

    def ready(self) -> None:
        """Say that the agent is there."""
        self._note = replace(self._note, ready=True)
        self._lock.write(str(self._note))

    def release(self) -> None:
        """Take the file away."""
        self._lock.release(remove=True)


def running(nick: str) -> DaemonNote | None:
    """The living daemon of an agent; a file that nobody holds is no daemon, whatever it says."""
    text = note_of_holder(paths.pid_file(nick))
    return DaemonNote.parse(text) if text is not None else None


def all_running() -> dict[str, DaemonNote]:
    """The daemons that live in this home folder, by nick."""
    found = sorted(file.name.removesuffix(".pid") for file in (paths.home() / "run").glob("*.pid"))
    return {nick: note for nick in found if (note := running(nick)) is not None}
