"""Starts the daemon of an agent as a background process, and waits until it is ready."""

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
"""Seconds that an agent may take until it accepts prompts."""
STATUS_PATIENCE = 3.0
LAST_LINES = 15
# The identity of the caller, and its folder and repository: an agent that it starts has its own.
_NOT_OURS = (
    *(Environment.NICK.value, Environment.TOKEN.value, Environment.WIKI.value),
    *("NOTIFY_SOCKET", "PWD", "OLDPWD"),
    *("GIT_DIR", "GIT_COMMON_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_PREFIX"),
)


@dataclass(frozen=True)
class DaemonNotStarted(Exception):
    """An agent's daemon exited or was not ready in time.

    ``why``: the reason. ``log_end``: the last lines of its log. ``code``: its exit code, None if it still runs.
    """

    why: str
    log_end: str
    code: int | None

    def __str__(self) -> str:
        return "\n".join([self.why, *(f"  {line}" for line in self.log_end.splitlines())])


def launch(
    nick: str, file: Path | None = None, at: ServerAddress | None = None, how: Launch = launch_unrecorded
) -> BackgroundProcess:
    """Start the daemon of an agent with its output in the agent's log; return without waiting.

    ``file``: agents.yaml, if not the usual one. ``at``: the server's address, in place of the one in the file. ``how``:
    the function that starts the process.
    """
    arguments = [nick, *(["--config", str(file.absolute())] if file else [])]
    if at is not None:
        arguments += ["--at", at.host, str(at.port)]
    command = [sys.executable, "-m", "culture.clients.shared", *arguments]
    return BackgroundProcess(nick, command, paths.log_file(nick), launch=how, cwd=paths.home(), without=_NOT_OURS)


def start(nick: str, file: Path | None = None, patience: float = PATIENCE) -> pidfile.DaemonNote:
    """Start an agent's daemon and wait until the agent is ready; return what its pid file says.

    ``file``: agents.yaml, if not the usual one. DaemonNotStarted is raised if the daemon exits or is not ready within
    ``patience`` seconds.
    """
    return until_ready(launch(nick, file), patience)


def until_ready(process: BackgroundProcess, patience: float = PATIENCE) -> pidfile.DaemonNote:
    """Wait until a launched daemon is ready, and return what its pid file says.

    DaemonNotStarted is raised if it exits or is not ready within ``patience`` seconds.
    """
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
    """Wait, at most ``patience`` seconds, until the program of a launched agent accepts prompts.

    DaemonNotStarted is raised if the program has crashed.
    """
    nick, deadline = process.name, time.monotonic() + patience
    while time.monotonic() < deadline:
        try:
            status = call(nick, "status", patience=STATUS_PATIENCE)
        except CallFailed:
            return  # the daemon is busy; `culture status` shows more
        if not isinstance(status, dict):
            return
        if status.get("state") in (AgentState.CRASHED, AgentState.PARKED) and not status.get("budget"):
            raise DaemonNotStarted(f"{nick}: its daemon runs, its program has crashed:", printed(process), None)
        if status.get("ready", True):
            return
        time.sleep(STEP)


def printed(process: BackgroundProcess) -> str:
    """Return the last lines that a daemon printed since its launch, cleaned for a terminal."""
    return output.clean(process.output(LAST_LINES))
