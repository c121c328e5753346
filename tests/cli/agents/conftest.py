"""A machine with a server of its own, and agents."""

import json
import os
import signal
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from culture.clients.shared.pidfile import DaemonNote
from culture.lib.files import note_of_holder
from culture.lib.process.orphans import end_all
from tests.cli.shell import Process, Result, Shell
from tests.support.agents import FAST
from tests.support.client import Client

NICK = "spark-bee"


@dataclass
class Machine:
    """Somebody's machine: a home folder with a server called spark, and a terminal."""

    shell: Shell
    port: int
    server: Process

    @property
    def home(self) -> Path:
        return self.shell.home

    def agents(self, *agents: dict[str, Any], port: int | None = None) -> None:
        """Write agents.yaml (JSON is YAML)."""
        work = self.shell.folder / "work"
        work.mkdir(exist_ok=True)
        said = {
            "server": {"host": "127.0.0.1", "port": port or self.port},
            "recovery": FAST,
            "agents": [
                {"directory": str(work), "channels": ["#general"], "agent": "scripted", **agent} for agent in agents
            ],
        }
        self.shell.write(json.dumps(said, indent=1), "agents.yaml")

    async def run(self, *arguments: str) -> Result:
        """Run a command to its end."""
        return await self.shell.run(*arguments)

    async def status(self, nick: str = NICK) -> dict[str, Any]:
        """What `culture status --json` says of one agent."""
        found = json.loads((await self.run("status", nick, "--json")).out)
        assert isinstance(found, dict)
        return found

    def daemon(self, nick: str = NICK) -> DaemonNote | None:
        """What the living daemon says of itself."""
        text = note_of_holder(self.home / "run" / f"{nick}.pid")
        return DaemonNote.parse(text) if text else None

    def token(self, nick: str = NICK) -> str | None:
        """What the processes of the agent carry."""
        with closing(sqlite3.connect(self.home / "inbox" / f"{nick}.db")) as records:
            row = records.execute("SELECT value FROM notes WHERE key = 'token'").fetchone()
        return str(row[0]) if row else None

    def turns(self, nick: str = NICK) -> int:
        """How many turns the agent has taken."""
        with closing(sqlite3.connect(self.home / "inbox" / f"{nick}.db")) as records:
            return int(records.execute("SELECT count(*) FROM turns").fetchone()[0])

    async def close(self) -> None:
        """End the daemons that are still there, and what they started."""
        for file in self.home.glob("inbox/*.db"):
            note = self.daemon(file.stem)
            if note is not None:
                os.kill(note.pid, signal.SIGKILL)
            token = self.token(file.stem)
            if token is not None:
                await end_all(token, grace=0)


@pytest.fixture
def at_home(shell: Shell) -> Shell:
    """A terminal with sockets of its own and a server's name."""
    runtime = shell.folder / "run"
    runtime.mkdir(mode=0o700)
    shell.environment |= {"XDG_RUNTIME_DIR": str(runtime), "LOGNAME": "ori"}
    return shell


@pytest.fixture
async def machine(at_home: Shell) -> AsyncIterator[Machine]:
    """A machine whose server runs."""
    at_home.write("name: spark\n")
    server, port = await at_home.serve()
    found = Machine(at_home, port, server)
    yield found
    await found.close()


async def answer(client: Client, place: str = "#general", nick: str = NICK) -> str:
    """What the agent says next in a place."""
    said = await client.expect("PRIVMSG", place, where=lambda line: line.source.startswith(f"{nick}!"))
    return said.params[1]
