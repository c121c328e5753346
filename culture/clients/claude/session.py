"""One live process of Claude Code: reads its messages, and sends prompts while it is idle.

Claude Code also begins turns by itself, for example when a background command has ended. A prompt sent during such a
turn may be answered within it, without a result of its own. So a prompt waits until the program is idle, a result
counts as the answer only if its origin is our prompt, and a result of another origin ends our prompt only if the
program is idle afterwards.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Any

from claude_agent_sdk import (
    ClaudeSDKClient,
    ClaudeSDKError,
    CLIConnectionError,
    ProcessError,
    ResultMessage,
    SystemMessage,
)
from claude_agent_sdk.types import Message

from culture.clients.claude.answer import OWN, is_own
from culture.clients.shared.queued import UNKNOWN_EXIT
from culture.clients.shared.turn import COMMANDS, AgentDied

log = logging.getLogger(__name__)

INTERRUPT_PATIENCE = 2.0
DISCONNECT_PATIENCE = 3.0
# Seconds between a failed write and the program's exit, at most.
DEATH_PATIENCE = 2.0


class ClaudeSession:
    """A connected Claude Code process; its messages are read all the time, so its death is noticed.

    ``heard`` is called with each message; ``lost`` with the exit code; ``itself`` at the start (None) and with the
    result of a turn that Claude Code began itself, and returns whether that may go on.
    """

    def __init__(
        self,
        client: ClaudeSDKClient,
        heard: Callable[[Message], Awaitable[None]],
        lost: Callable[[int], Awaitable[None]],
        itself: Callable[[ResultMessage | None], bool] = lambda result: True,
    ) -> None:
        self.client = client
        self._heard = heard
        self._lost = lost
        self._itself = itself
        self._own_turn = False
        self._result: asyncio.Future[ResultMessage] | None = None
        self._joined: ResultMessage | None = None
        # Cleared during a turn that the program began by itself.
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._refused = False
        self._stopping: set[asyncio.Task[None]] = set()
        self._dead = False
        self._reader = asyncio.create_task(self._read(), name="what Claude says")

    async def ready(self) -> None:
        """Wait until Claude Code is idle: a prompt sent earlier could join the running turn."""
        await self._quiet.wait()

    async def ask(self, prompt: str) -> ResultMessage:
        """Send a prompt and return its result; ``AgentDied`` if the process ends first."""
        self._result, self._joined = asyncio.get_running_loop().create_future(), None
        try:
            await self.client.query(put(prompt))
            return await self._result
        except CLIConnectionError as error:
            await asyncio.wait([self._result], timeout=DEATH_PATIENCE)
            return self._result.result() if self._result.done() else _unreachable(error)
        finally:
            self._result = None

    def refused(self) -> None:
        """Record that a hook blocked a turn that Claude Code began itself: ignore its result."""
        self._refused = True

    async def interrupt(self) -> None:
        """Interrupt any running turn; returns when the turn has ended, or after a timeout."""
        if self._dead or (self._result is None and self._quiet.is_set()):
            return
        await self.client.interrupt()
        if self._result is not None:
            await asyncio.wait([self._result], timeout=INTERRUPT_PATIENCE)

    async def stop_tasks(self, running: Iterable[str]) -> None:
        """Stop the background tasks with these ids; Claude Code reports when they have ended."""
        for task in running:
            stopping = asyncio.create_task(self.client.stop_task(task), name="end of a task in Claude's background")
            self._stopping.add(stopping)
            stopping.add_done_callback(self._stopped)

    def _stopped(self, stopping: asyncio.Task[None]) -> None:
        self._stopping.discard(stopping)
        if not stopping.cancelled() and (error := stopping.exception()) is not None:
            log.warning("a task in Claude's background could not be ended: %s", error)

    async def leave(self, end: Callable[[], Awaitable[object]]) -> None:
        """Disconnect from Claude Code; ``end`` is called to kill what remains of its processes."""
        if not self._dead:
            await self._interrupt_unasked_work()
            # After a death the reader is reporting it, and must not be cancelled.
            self._reader.cancel()
            await asyncio.wait([self._reader])
        # A task of its own, as the SDK must not be cancelled on its way out.
        leaving = asyncio.create_task(self.client.disconnect(), name="Claude leaves")
        await asyncio.wait([leaving], timeout=DISCONNECT_PATIENCE)
        await end()
        await asyncio.wait([leaving], timeout=DISCONNECT_PATIENCE)
        if leaving.done() and (error := leaving.exception()) is not None:
            log.warning("Claude Code did not leave cleanly: %s", error)

    async def _interrupt_unasked_work(self) -> None:
        """Interrupt work that Claude Code began itself: it does not exit while a command runs."""
        try:
            async with asyncio.timeout(INTERRUPT_PATIENCE):
                await self.interrupt()
        except Exception as error:
            log.warning("Claude Code cannot be interrupted: %s", error)

    async def _read(self) -> None:
        code = await self._read_to_the_end()
        self._dead = True
        if self._result is None:
            await self._lost(code)
        elif not self._result.done():
            self._result.set_exception(AgentDied(code))

    async def _read_to_the_end(self) -> int:
        while True:
            try:
                async for message in self.client.receive_messages():
                    await self._take(message)
                return 0
            except ProcessError as error:
                return error.exit_code or UNKNOWN_EXIT
            except CLIConnectionError as error:
                # Nothing to read from: retrying would be a busy loop.
                log.warning("cannot reach Claude Code: %s", error)
                return UNKNOWN_EXIT
            except ClaudeSDKError as error:
                # A message that the SDK does not know; a broken stream ends the next read.
                log.warning("unknown message of Claude Code: %s", error)
            except Exception:
                log.exception("cannot parse the output of Claude Code")
                return UNKNOWN_EXIT

    async def _take(self, message: Message) -> None:
        try:
            await self._heard(message)
        except Exception:
            log.exception("cannot handle a message of Claude Code")
        match message:
            case ResultMessage():
                self._end_turn(message)
            case SystemMessage(subtype="init") if self._result is None:
                self._quiet.clear()
                await self._begin_itself()
            case SystemMessage(subtype="session_state_changed", data={"state": "idle"}):
                self._quiet.set()
                if self._joined is not None:
                    self._answer(self._joined)

    async def _begin_itself(self) -> None:
        """Handle the start of a turn that Claude Code began itself and that no hook blocked.

        Hooks may be off in the program's settings.
        """
        if not self._refused:
            self._own_turn = True
            if not self._itself(None):
                await self.client.interrupt()

    def _end_turn(self, result: ResultMessage) -> None:
        self._quiet.set()
        refused, self._refused = self._refused, False
        own_turn, self._own_turn = self._own_turn, False
        if is_own(result):
            self._answer(result)
            return
        if own_turn:
            self._itself(result)
        if refused:
            return
        if self._result is not None:
            # The prompt is still waiting, or it joined this turn: if the program is idle next, it joined.
            self._joined = result

    def _answer(self, result: ResultMessage) -> None:
        self._joined = None
        if self._result is not None and not self._result.done():
            self._result.set_result(result)


async def put(prompt: str) -> AsyncIterator[dict[str, Any]]:
    """Yield a prompt in the SDK's format.

    A prompt that is no command is marked, so that Claude Code finds no commands or file references in it.
    """
    yield {
        "type": "user",
        "message": {"role": "user", "content": prompt},
        "parent_tool_use_id": None,
        "client_composed": prompt not in COMMANDS,
        "origin": OWN,
    }


def _unreachable(error: CLIConnectionError) -> ResultMessage:
    raise AgentDied(UNKNOWN_EXIT, str(error)) from error
