"""Starting a daemon that stays when the command line is gone."""

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from culture.cli import output
from culture.cli.up.child_processes import Launch, plainly
from culture.clients.shared import pidfile
from culture.clients.shared.skill.call import CallFailed, call
from culture.config import paths
from culture.config.agents import ServerAddress
from culture.protocol.vocabulary import AgentState, Environment

PATIENCE = 60.0
"""How long a daemon may take until its agent takes prompts."""
STEP = 0.02
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
    nick: str, file: Path | None = None, at: ServerAddress | None = None, how: Launch = plainly
) -> subprocess.Popen[bytes]:
    """Run the daemon as a process of its own, its output going to the agent's log; ``at`` goes over the file."""
    log = paths.open_private(paths.log_file(nick), os.O_WRONLY | os.O_APPEND)
    arguments = [nick, *(["--config", str(file.absolute())] if file else [])]
    if at is not None:
        arguments += ["--at", at.host, str(at.port)]
    try:
        return how(nick, lambda: _process(arguments, log))
    finally:
        os.close(log)


def _process(arguments: Sequence[str], output: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "culture.clients.shared", *arguments],
        cwd=paths.home(),
        env={name: value for name, value in os.environ.items() if name not in _NOT_OURS},
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        start_new_session=True,
    )


def start(nick: str, file: Path | None = None, patience: float = PATIENCE) -> pidfile.DaemonNote:
    """Start the daemon and return when its agent is there; NotStarted says why it is not."""
    begun = size(paths.log_file(nick))
    return until_ready(nick, launch(nick, file), begun, patience)


def until_ready(
    nick: str, process: subprocess.Popen[bytes], begun: int, patience: float = PATIENCE
) -> pidfile.DaemonNote:
    """Wait until the agent is there; ``begun`` is how long its log was before."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        code = process.poll()
        if code is not None:
            raise DaemonNotStarted(f"{nick} did not start (exit code {code}):", said(nick, begun), code)
        note = pidfile.running(nick)
        if note is not None and note.pid == process.pid and note.ready:
            return note
        time.sleep(STEP)
    text = f"{nick} is not ready after {patience:g} s, and goes on trying; `culture stop {nick}` ends it:"
    raise DaemonNotStarted(text, said(nick, begun), None)


def until_at_work(nick: str, begun: int, patience: float = PATIENCE) -> None:
    """Wait until the agent's program takes prompts; NotStarted where that has died, which its daemon survives."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        try:
            status = call(nick, "status", patience=STATUS_PATIENCE)
        except CallFailed:
            return  # its daemon is there and busy; `culture status` tells more
        if not isinstance(status, dict):
            return
        if status.get("state") in (AgentState.CRASHED, AgentState.PARKED) and not status.get("budget"):
            raise DaemonNotStarted(f"{nick}: its daemon runs, its program has crashed:", said(nick, begun), None)
        if status.get("ready", True):
            return
        time.sleep(STEP)


def said(nick: str, since: int) -> str:
    """The last lines of an agent's log, of those after a place in it."""
    with paths.log_file(nick).open("rb") as text:
        text.seek(since)
        lines = output.shown(text.read().decode(errors="replace")).splitlines()
    return "\n".join(lines[-LAST_LINES:])


def size(file: Path) -> int:
    """How long a file is; one that is not there is empty."""
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0
