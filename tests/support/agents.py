"""Agents for tests: real daemons with real agent programs, in this process or in their own."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from culture.clients.shared.assembly import assemble, backend_fields
from culture.clients.shared.daemon import AgentDaemon
from culture.clients.shared.notes import Notes
from culture.clients.shared.records import Records
from culture.config import paths
from culture.config.agents import BACKEND_FIELDS, AgentsConfig
from culture.config.load import load_agents
from culture.lib.process.orphans import end_all
from tests.support.waiting import PATIENCE

FAST = {"restart_delay": 0.05, "silence": 60, "interrupt_grace": 5}
"""Recovery in tests: nobody waits five seconds."""


def agents_yaml(home: Path, port: int, *agents: dict[str, Any], rules: dict[str, Any] | None = None) -> AgentsConfig:
    """Write agents.yaml (JSON is YAML) into the folder that $CULTURE_HOME names, and read it."""
    work = home / "work"
    work.mkdir(parents=True, exist_ok=True)
    said = {
        "server": {"host": "127.0.0.1", "port": port},
        "recovery": FAST,
        "cool_down": 0,
        **(rules or {}),
        "agents": [
            {"directory": str(work), "channels": ["#general"], "agent": "scripted", **agent} for agent in agents
        ],
    }
    file = home / "agents.yaml"
    file.write_text(json.dumps(said), encoding="utf-8")
    return load_agents(file, {**BACKEND_FIELDS, **backend_fields()}).config


def playbook(folder: Path, rules: list[dict[str, Any]], default: list[dict[str, Any]] | None = None) -> str:
    """Write a playbook; the path for ``playbook:``."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "playbook.yaml"
    file.write_text(json.dumps({"rules": rules, "default": default or [{"say": "heard: {text}"}]}), encoding="utf-8")
    return str(file)


def prompts(work: Path) -> list[str]:
    """The prompts that a scripted agent was given, as its sessions remember them."""
    files = sorted((work / ".scripted").glob("*.jsonl"), key=lambda file: file.stat().st_ctime_ns)
    # The last line of a file that is being written may be half there.
    whole = [line for file in files for line in file.read_text(encoding="utf-8").split("\n")[:-1]]
    lines = [json.loads(line) for line in whole]
    return [line["prompt"] for line in lines if "prompt" in line]


@asynccontextmanager
async def running(config: AgentsConfig, nick: str, patience: float = PATIENCE) -> AsyncIterator[AgentDaemon]:
    """The daemon of an agent, in this process."""
    daemon = assemble(config, nick)
    try:
        async with asyncio.timeout(patience):
            await daemon.start()
        yield daemon
    finally:
        await daemon.stop()


def watchdog_of(daemon: int) -> int | None:
    """The process that waits for the death of a daemon."""
    try:
        children = Path(f"/proc/{daemon}/task/{daemon}/children").read_text().split()
    except FileNotFoundError:
        return None
    return next(
        (int(each) for each in children if b"watchdog_process" in Path(f"/proc/{each}/cmdline").read_bytes()), None
    )


def kill_watchdog(daemon: int) -> None:
    """kill -9, so that what a killed daemon leaves behind stays."""
    watchdog = watchdog_of(daemon)
    assert watchdog is not None
    os.kill(watchdog, signal.SIGKILL)


class DaemonProcess:
    """A daemon in a process of its own, that a test may kill."""

    def __init__(self, nick: str, home: Path, environment: dict[str, str] | None = None) -> None:
        self.nick = nick
        self.log = home / f"{nick}.out"
        self._environment = {**os.environ, "CULTURE_HOME": str(home), **(environment or {})}
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Begin to start it; it is there when it comes into its channels."""
        with self.log.open("ab") as out:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "culture.clients.claude.daemon",
                self.nick,
                stdout=out,
                stderr=out,
                env=self._environment,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """The process."""
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Is there a process?"""
        return self._process is not None and self._process.returncode is None

    async def kill(self) -> None:
        """kill -9."""
        assert self._process is not None
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()

    async def stop(self) -> int:
        """Ask it to stop; its exit code."""
        assert self._process is not None
        if self._process.returncode is None:
            self._process.terminate()
        async with asyncio.timeout(PATIENCE):
            return await self._process.wait()

    async def ended(self) -> int:
        """Wait until it ends by itself; its exit code."""
        assert self._process is not None
        async with asyncio.timeout(PATIENCE):
            return await self._process.wait()


@asynccontextmanager
async def process(nick: str, home: Path) -> AsyncIterator[DaemonProcess]:
    """A daemon in a process of its own, begun to start; ended with whatever it left behind."""
    daemon = DaemonProcess(nick, home)
    await daemon.start()
    try:
        yield daemon
    finally:
        await daemon.kill()
        records = Records(paths.inbox_file(nick))
        token = Notes(records).token
        records.close()
        if token is not None:
            await end_all(token, grace=0)
