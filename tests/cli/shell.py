"""Real ``python -m culture`` processes with a home folder of their own.

Where nothing depends on how a process came to be, it is forked from an interpreter that has loaded the modules.
"""

import asyncio
import json
import os
import re
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from culture.cli.server.pid_file import ServerNote
from culture.lib.files import note_of_holder
from tests.support.forks import NETWORK, PYTHONPATH, Command, fork, network
from tests.support.waiting import PATIENCE

ROOT = Path(__file__).resolve().parents[2]
# Generous: an interpreter has to be started on a machine which may be busy.
COMMAND_PATIENCE = 1.5 * PATIENCE
# These are read by what has started. Others may be of consequence before that, or be read by other processes.
_HARMLESS = {"CULTURE_HOME", "LOGNAME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"}


@dataclass(frozen=True)
class Result:
    """How a command ended and what it said."""

    code: int
    out: str
    err: str

    @property
    def port(self) -> int:
        """The port that the command said."""
        return said_port(self.out)


class Process:
    """A command that goes on running."""

    def __init__(self, process: Command) -> None:
        self._process = process
        self.said = ""

    @property
    def pid(self) -> int:
        return self._process.pid

    async def until(self, text: str) -> str:
        """Read what it prints until this text has come; all of it so far."""
        assert self._process.stdout is not None
        async with asyncio.timeout(COMMAND_PATIENCE):
            while text not in self.said:
                line = await self._process.stdout.readline()
                assert line, f"ended before it said {text!r}:\n{self.said}"
                self.said += line.decode()
        return self.said

    async def ended(self) -> int:
        """Wait until it is gone; its exit code."""
        async with asyncio.timeout(COMMAND_PATIENCE):
            assert self._process.stdout is not None
            self.said += (await self._process.stdout.read()).decode()
            return await self._process.wait()

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    async def kill(self) -> None:
        if self._process.returncode is None:
            self._process.kill()
        await self.ended()


@dataclass
class Shell:
    """A user's session at a terminal: a home folder, no other environment."""

    folder: Path
    environment: dict[str, str] = field(default_factory=dict)
    python: str = sys.executable
    cwd: Path | None = None
    """Where things are typed, if not in its folder."""
    has_model: bool = False
    """Servers load what finds messages by meaning."""
    may_fork: bool = True
    """Whether commands may be forks of an interpreter that has loaded their modules."""
    _processes: list[Process] = field(default_factory=list)

    @property
    def home(self) -> Path:
        return self.folder / "culture-home"

    def write(self, text: str, name: str = "culture.yaml") -> Path:
        """Put a file into the home folder."""
        self.home.mkdir(exist_ok=True)
        file = self.home / name
        file.write_text(text, encoding="utf-8")
        return file

    async def run(self, *arguments: str) -> Result:
        """Run a command to its end."""
        process = await self._start(arguments, asyncio.subprocess.PIPE)
        async with asyncio.timeout(COMMAND_PATIENCE):
            out, err = await process.communicate()
        assert process.returncode is not None
        return Result(process.returncode, out.decode(), err.decode())

    async def run_with(self, text: str, *arguments: str) -> Result:
        """Run a command to its end that reads this from its standard input."""
        process = await self._start(arguments, asyncio.subprocess.PIPE, asyncio.subprocess.PIPE)
        async with asyncio.timeout(COMMAND_PATIENCE):
            out, err = await process.communicate(text.encode())
        assert process.returncode is not None
        return Result(process.returncode, out.decode(), err.decode())

    async def spawn(self, *arguments: str, given: int = asyncio.subprocess.DEVNULL) -> Process:
        """Run a command that stays, its stdout and stderr in one."""
        process = Process(await self._start(arguments, asyncio.subprocess.STDOUT, given))
        self._processes.append(process)
        return process

    async def serve(self, *arguments: str) -> tuple[Process, int]:
        """A server in the foreground on a free port, and its port, once it accepts."""
        process = await self.spawn("server", "start", "--foreground", "--port", "0", *arguments)
        return process, said_port(await process.until("listens on"))

    def note(self, server: str = "spark") -> ServerNote | None:
        """What the living server says about itself."""
        text = note_of_holder(self.pid_file(server))
        return ServerNote.parse(text) if text else None

    def pid_file(self, server: str = "spark") -> Path:
        return self.home / "run" / f"{server}.pid"

    async def close(self) -> None:
        """End what was started and is still there."""
        for process in self._processes:
            await process.kill()
        for file in (*self.home.glob("run/*.pid"), *self.home.glob("run/*.page")):
            if text := note_of_holder(file):
                with suppress(ProcessLookupError):  # a child of the dead may hold it
                    os.kill(json.loads(text)["pid"], signal.SIGKILL)

    async def _start(self, arguments: tuple[str, ...], errors: int, given: int = asyncio.subprocess.DEVNULL) -> Command:
        environment = {
            "PYTHONPATH": str(ROOT) if self.has_model else PYTHONPATH,
            "PATH": os.defpath,
            "HOME": str(self.folder),
            "CULTURE_HOME": str(self.home),
            **self.environment,
        }
        pipe = asyncio.subprocess.PIPE
        if self._forks and given in (pipe, asyncio.subprocess.DEVNULL):
            return await fork(
                arguments, environment, self.cwd or self.folder, has_input=given == pipe, errors_apart=errors == pipe
            )
        return await asyncio.create_subprocess_exec(
            *(self.python, "-m", "culture", *arguments),
            cwd=self.cwd or self.folder,
            env=environment,
            stdin=given,
            stdout=pipe,
            stderr=errors,
        )

    @property
    def _forks(self) -> bool:
        is_usual = self.python == sys.executable and self.environment.keys() <= _HARMLESS
        return self.may_fork and is_usual and network() == NETWORK


def said_port(text: str) -> int:
    """The last port that a text names, as ``host:port`` or ``host port 7``."""
    return int(re.findall(r"(?:\S:|port )(\d+)", text)[-1])
