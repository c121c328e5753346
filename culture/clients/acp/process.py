"""The process of an ACP program: start, connection, death, end."""

import asyncio
import logging
import os
import signal
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar, cast

import acp
from acp.client.connection import ClientSideConnection
from acp.schema import PermissionOption, RequestPermissionResponse, ToolCallUpdate

from culture.clients.acp.quirks import quirks_of
from culture.clients.shared.errors import WrongConfiguration
from culture.clients.shared.options import check_directory
from culture.clients.shared.programs import located
from culture.clients.shared.queued import UNKNOWN_EXIT
from culture.clients.shared.turn import AgentDied
from culture.lib.process.orphans import end_all
from culture.lib.process.pipes import ended, release, spawn

log = logging.getLogger(__name__)

T = TypeVar("T")
LAST_WORDS = 2000
# Seconds between the end of its output and its exit, at most.
DEATH_PATIENCE = 2.0
CLOSE_PATIENCE = 2.0


def require(command: Sequence[str], environment: Mapping[str, str]) -> None:
    """Raise ``WrongConfiguration`` if the program is missing; the text says how to install it."""
    if located(command[0], environment) is None:
        install = quirks_of(command).install
        remedy = f": {install}" if install else "; correct the path or the name"
        raise WrongConfiguration(f"acp_command: {command[0]} is not installed{remedy}")


class AcpClient(Protocol):
    """Receives what the ACP agent sends: updates and permission requests."""

    async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
        """Handle an update that the ACP agent sends: a piece of text, a tool call, its usage."""

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption], **kwargs: Any
    ) -> RequestPermissionResponse:
        """Return which of the options the ACP agent shall choose for a tool call: allow or refuse."""
        ...


class AcpProcess:
    """A running ACP program, the connection to it, and a task that ends with it."""

    def __init__(self, process: asyncio.subprocess.Process, client: AcpClient, token: str) -> None:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        self.agent: ClientSideConnection = acp.connect_to_agent(cast(acp.Client, client), process.stdin, process.stdout)
        self._process = process
        self._token = token
        self._words = b""
        self._stderr_task = asyncio.create_task(self._read_stderr(process.stderr), name="what an agent complains of")
        self.death = asyncio.create_task(ended(process), name="death of an agent")

    @classmethod
    async def open(
        cls, command: Sequence[str], directory: Path, environment: Mapping[str, str], token: str, client: AcpClient
    ) -> Self:
        """Start the ACP program and connect to it; ``WrongConfiguration`` if it cannot be run.

        ``token``: the value in the environment by which all processes of the program are found; ``client`` receives
        the agent's messages.
        """
        check_directory(directory)
        try:
            process = await spawn(command, directory, environment, stderr=asyncio.subprocess.PIPE)
        except OSError as error:
            raise WrongConfiguration(f"acp_command: {command[0]} cannot be run: {error.strerror}") from error
        return cls(process, client, token)

    async def talk(self, call: Coroutine[Any, Any, T]) -> T:
        """Return the result of ``call``, a request to the agent; ``AgentDied`` if it ends first."""
        asking = asyncio.create_task(call, name="a question to an agent")
        try:
            await asyncio.wait([asking, self.death], return_when=asyncio.FIRST_COMPLETED)
            if asking.done():
                return asking.result()
        except ConnectionError:
            await asyncio.wait([self.death], timeout=DEATH_PATIENCE)
        finally:
            asking.cancel()
        raise AgentDied(self._code(), self.last_words())

    async def leave(self, grace: float) -> None:
        """End the ACP program and all processes it started, by SIGKILL after ``grace`` seconds."""
        await end_all(self._token, grace=grace)
        if self._process.returncode is None:
            # Kill what has no token but is in its process group; it may have exited unnoticed.
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        try:
            async with asyncio.timeout(CLOSE_PATIENCE):
                await self.agent.close()
        except Exception as error:
            log.debug("the connection did not close: %r", error)
        self._stderr_task.cancel()
        await release(self._process)
        await asyncio.wait([self._stderr_task, self.death])

    def last_words(self) -> str:
        """Return the last lines of the program's standard error, as text for an error message."""
        said = self._words.decode(errors="replace").strip()
        return f"it ended: {said}" if said else ""

    def _code(self) -> int:
        return (self.death.result() if self.death.done() else 0) or UNKNOWN_EXIT

    async def _read_stderr(self, stream: asyncio.StreamReader) -> None:
        while chunk := await stream.read(LAST_WORDS):
            self._words = (self._words + chunk)[-LAST_WORDS:]
            log.debug("stderr of the agent: %s", chunk.decode(errors="replace").rstrip())
