"""The pid file of an agent's daemon: which process it is, and whether its agent is there."""

import os
from dataclasses import dataclass

from culture.config import paths
from culture.lib.process import pid_file
from culture.lib.process.pid_file import PidFile, ProcessNote
from culture.runtime import REAL, Runtime


@dataclass(frozen=True)
class DaemonNote(ProcessNote):
    """What a running daemon publishes about itself; ``ready`` once it is on IRC and its agent was started."""

    ready: bool


def daemon_file(nick: str, *, runtime: Runtime = REAL) -> PidFile[DaemonNote]:
    """The file that the daemon of an agent is to hold."""
    return PidFile(paths.pid_file(nick), DaemonNote(os.getpid(), runtime.now(), ready=False))


def running(nick: str) -> DaemonNote | None:
    """The living daemon of an agent; a file that nobody holds is no daemon, whatever it says."""
    return pid_file.running(paths.pid_file(nick), DaemonNote)


def all_running() -> dict[str, DaemonNote]:
    """The daemons that live in this home folder, by nick."""
    return pid_file.all_running(paths.home() / "run", DaemonNote)
