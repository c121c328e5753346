"""One live process of the Copilot CLI: it is watched itself, as its SDK tells nobody that it has died."""

import asyncio
import logging
import subprocess
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from copilot import CopilotClient, RuntimeConnection

from culture.clients.shared.queued import UNKNOWN_EXIT
from culture.clients.shared.sandbox.bubblewrap import Sandbox, inside
from culture.clients.shared.turn import AgentDied
from culture.lib.process.handle import wait_gone
from culture.lib.process.orphans import end_all

log = logging.getLogger(__name__)
# It writes a traceback for everything that is refused, which is for us to tell.
logging.getLogger("copilot").setLevel(logging.ERROR)

START_PATIENCE = 60.0
LEAVE_PATIENCE = 3.0
# A session of its own, so that what is typed at the daemon's terminal does not reach it.
SETSID = "setsid"

COMPLAINTS = 100
"""So many lines of what the program complains of are kept, the last of them."""
COMPLAINT = 1000
"""And so many characters of each."""

Lost = Callable[[int], Awaitable[None]]


class _Complaints(deque[str]):
    """The last lines of standard error, for a death to be told with; the SDK keeps all of them for ever."""

    def append(self, line: str) -> None:
        super().append(line[:COMPLAINT])


class CopilotProcess:
    """A running program and its client."""

    def __init__(self, client: CopilotClient, token: str, lost: Lost | None = None) -> None:
        self.client = client
        self._token = token
        self._process = _process(client)
        self._killed = False
        self._watch = asyncio.create_task(self._watched(lost), name="life of Copilot")

    @classmethod
    async def start(
        cls,
        program: Path,
        directory: Path,
        environment: Mapping[str, str],
        token: str,
        lost: Lost | None = None,
        sandbox: Sandbox | None = None,
    ) -> "CopilotProcess":
        """Start the program; AgentDied when it does not come up."""
        connection = RuntimeConnection.for_stdio(path=SETSID, args=inside(sandbox, [str(program)], environment))
        client = CopilotClient(
            connection=connection, working_directory=str(directory), env=dict(environment), log_level="error"
        )
        try:
            async with asyncio.timeout(START_PATIENCE):
                await client.start()
        except BaseException as error:
            await _end(client, token)
            if isinstance(error, Exception):
                raise AgentDied(UNKNOWN_EXIT, str(error) or "the Copilot CLI does not begin") from error
            raise
        _forget_complaints(client)
        return cls(client, token, lost)

    def kill(self) -> None:
        """End it at once; its death is told."""
        self._killed = True
        self._process.kill()

    async def leave(self) -> None:
        """Say goodbye; what has not gone after a while is ended by force, and so is whatever it left behind."""
        if self._watch is not asyncio.current_task():
            self._watch.cancel()
            await asyncio.wait([self._watch])
        if not self._killed and self._process.poll() is None:
            # A task of its own, as the SDK must not be cancelled on its way out.
            leaving = asyncio.create_task(self.client.stop(), name="Copilot leaves")
            await asyncio.wait([leaving], timeout=LEAVE_PATIENCE)
            await end_all(self._token)
            await asyncio.wait([leaving], timeout=LEAVE_PATIENCE)
            if leaving.done() and (error := leaving.exception()) is not None:
                log.warning("the Copilot CLI did not leave cleanly: %s", error)
        await _end(self.client, self._token, self._process)

    async def _watched(self, lost: Lost | None) -> None:
        await wait_gone(self._process.pid)
        code = self._process.wait()
        if lost is not None:
            await lost(code)


def _forget_complaints(client: CopilotClient) -> None:
    # There is no public way to have it forget any.
    if (wire := client._client) is not None:
        with wire._stderr_lock:
            wire._stderr_output = _Complaints(wire._stderr_output, COMPLAINTS)  # type: ignore[assignment]


def _process(client: CopilotClient) -> subprocess.Popen[bytes]:
    # There is no public way to the process.
    process: subprocess.Popen[bytes] | None = client._cli_process
    if process is None:
        raise AgentDied(UNKNOWN_EXIT, "the Copilot CLI is not running")
    return process


async def _end(client: CopilotClient, token: str, process: "subprocess.Popen[bytes] | None" = None) -> None:
    """End all of it, and close the pipes that the SDK leaves open."""
    process = process or client._cli_process
    await end_all(token)
    try:
        await client.force_stop()
    except Exception as error:
        log.warning("the Copilot CLI could not be let go of: %s", error)
    if process is not None:
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()
