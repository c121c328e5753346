"""One live process of the Copilot CLI, watched here as its SDK does not report its death."""

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
# It logs a traceback for every refused request; we report those ourselves.
logging.getLogger("copilot").setLevel(logging.ERROR)

START_PATIENCE = 60.0
LEAVE_PATIENCE = 3.0
# A session of its own, so that signals from the daemon's terminal do not reach it.
SETSID = "setsid"

COMPLAINTS = 100
"""Lines of standard error that are kept, the last ones."""
COMPLAINT = 1000
"""Characters that are kept of each line."""

Lost = Callable[[int], Awaitable[None]]


class _Complaints(deque[str]):
    """The last lines of the Copilot CLI's standard error, to report when it dies.

    The SDK would keep all lines.
    """

    def append(self, line: str) -> None:
        super().append(line[:COMPLAINT])


class CopilotProcess:
    """A running Copilot CLI and the SDK's client for it."""

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
        """Start the Copilot CLI, in the sandbox if there is one; ``AgentDied`` if it does not start.

        ``token``: the value in the environment by which all its processes are found; ``lost`` is called with the exit
        code when the program dies.
        """
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
        """Kill the Copilot CLI at once; its death is reported as usual."""
        self._killed = True
        self._process.kill()

    async def leave(self) -> None:
        """Stop the Copilot CLI; after a timeout kill it with all processes that it started."""
        if self._watch is not asyncio.current_task():
            self._watch.cancel()
            await asyncio.wait([self._watch])
        if not self._killed and self._process.poll() is None:
            # A task of its own: the SDK must not be cancelled while it stops.
            leaving = asyncio.create_task(self.client.stop(), name="Copilot leaves")
            await asyncio.wait([leaving], timeout=LEAVE_PATIENCE)
            await end_all(self._token)
            await asyncio.wait([leaving], timeout=LEAVE_PATIENCE)
            if leaving.done() and (error := leaving.exception()) is not None:
                log.warning("the Copilot CLI did not stop cleanly: %s", error)
        await _end(self.client, self._token, self._process)

    async def _watched(self, lost: Lost | None) -> None:
        await wait_gone(self._process.pid)
        code = self._process.wait()
        if lost is not None:
            await lost(code)


def _forget_complaints(client: CopilotClient) -> None:
    # The SDK has no public way to limit them.
    if (wire := client._client) is not None:
        with wire._stderr_lock:
            wire._stderr_output = _Complaints(wire._stderr_output, COMPLAINTS)  # type: ignore[assignment]


def _process(client: CopilotClient) -> subprocess.Popen[bytes]:
    # The SDK has no public access to the process.
    process: subprocess.Popen[bytes] | None = client._cli_process
    if process is None:
        raise AgentDied(UNKNOWN_EXIT, "the Copilot CLI is not running")
    return process


async def _end(client: CopilotClient, token: str, process: "subprocess.Popen[bytes] | None" = None) -> None:
    """Kill all processes with ``token`` in their environment, and close the SDK's open pipes."""
    process = process or client._cli_process
    await end_all(token)
    try:
        await client.force_stop()
    except Exception as error:
        log.warning("cannot close the client of the Copilot CLI: %s", error)
    if process is not None:
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()
