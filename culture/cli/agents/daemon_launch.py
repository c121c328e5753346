"""Starts the daemon of an agent in the background, and waits until its agent takes prompts."""

import sys
import time
from dataclasses import dataclass
from pathlib import Path

from culture.cli import output
from culture.clients.shared import pidfile
from culture.clients.shared.skill.call import CallFailed, call
from culture.config import paths
from culture.config.agents import ServerAddress
from culture.lib.process.background import STEP, BackgroundProcess, EndedEarly
from culture.lib.process.children import Launch, launch_unrecorded
from culture.protocol.vocabulary import AgentState, Environment

PATIENCE = 60.0
"""How long a daemon may take until its agent takes prompts."""
STATUS_PATIENCE = 3.0
LAST_LINES = 15
# What belongs to whoever calls us: an agent that starts another must not pass on who it is.
_NOT_OURS = (Environment.NICK.value, Environment.TOKEN.value, Environment.WIKI.value, "NOTIFY_SOCKET")


@dataclass(frozen=True)
class DaemonNotStarted(Exception):
    """The daemon ended, or is not ready yet; ``said`` is the end of what it printed."""

    why: str
    said: str
    code: int | None

    def __str__(self) -> str:
        return "\n".join([self.why, *(f"  {line}" for line in self.said.splitlines())])


def launch(
    nick: str, file: Path | None = None, at: ServerAddress | None = None, how: Launch = launch_unrecorded
) -> BackgroundProcess:
    """Run the daemon as a process of its own, its output going to the agent's log; ``at`` goes over the file."""
    arguments = [nick, *(["--config", str(file.absolute())] if file else [])]
    if at is not None:
        arguments += ["--at", at.host, str(at.port)]
    command = [sys.executable, "-m", "culture.clients.shared", *arguments]
    return BackgroundProcess(nick, command, paths.log_file(nick), launch=how, cwd=paths.home(), without=_NOT_OURS)


def start(nick: str, file: Path | None = None, patience: float = PATIENCE) -> pidfile.DaemonNote:
    """Start the daemon and return when its agent is there; DaemonNotStarted says why it is not."""
    return until_ready(launch(nick, file), patience)


def until_ready(process: BackgroundProcess, patience: float = PATIENCE) -> pidfile.DaemonNote:
    """Wait until the agent of a daemon that was launched is there; DaemonNotStarted says why it is not."""
    nick = process.name

    def ready(pid: int) -> pidfile.DaemonNote | None:
        note = pidfile.running(nick)
        return note if note is not None and note.pid == pid and note.ready else None

    try:
        note = process.wait_until(ready, patience)
    except EndedEarly as early:
        code = early.returncode
        raise DaemonNotStarted(f"{nick} did not start (exit code {code}):", printed(process), code) from None
    if note is None:
        text = f"{nick} is not ready after {patience:g} s, and goes on trying; `culture stop {nick}` ends it:"
        raise DaemonNotStarted(text, printed(process), None)
    return note


def until_at_work(process: BackgroundProcess, patience: float = PATIENCE) -> None:
    """Wait until the agent's program takes prompts; DaemonNotStarted where that has died, which its daemon survives."""
    nick, deadline = process.name, time.monotonic() + patience
    while time.monotonic() < deadline:
        try:
            status = call(nick, "status", patience=STATUS_PATIENCE)
        except CallFailed:
            return  # its daemon is there and busy; `culture status` tells more
        if not isinstance(status, dict):
            return
        if status.get("state") in (AgentState.CRASHED, AgentState.PARKED) and not status.get("budget"):
            raise DaemonNotStarted(f"{nick}: its daemon runs, its program has crashed:", printed(process), None)
        if status.get("ready", True):
            return
        time.sleep(STEP)


def printed(process: BackgroundProcess) -> str:
    """The last lines that a daemon has written to its log since it was launched, safe to show in a terminal."""
    return output.shown(process.output(LAST_LINES))
