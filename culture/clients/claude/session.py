"""One live process of Claude Code: what it says is always read, and a prompt is put when it has nothing else to do."""

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
# How long after a failed write its death must have been seen.
DEATH_PATIENCE = 2.0


class ClaudeSession:
    """Reads all the time, so that a death is noticed also when nothing is asked."""

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
        """Told that the program begins a turn by itself (None), or of its result; whether the turn may go on."""
        self._own_turn = False
        self._result: asyncio.Future[ResultMessage] | None = None
        self._joined: ResultMessage | None = None
        # Set unless it sees to something by itself, such as a command in the background that has ended.
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._refused = False
        self._stopping: set[asyncio.Task[None]] = set()
        self._dead = False
        self._reader = asyncio.create_task(self._read(), name="what Claude says")

    async def ready(self) -> None:
        """Wait until it does nothing: a prompt put while it works can become a part of that work."""
        await self._quiet.wait()

    async def ask(self, prompt: str) -> ResultMessage:
        """Put a prompt and wait for its result; AgentDied when the process ends meanwhile."""
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
        """A turn that the program wants to begin by itself is refused: its result is no answer to anything."""
        self._refused = True

    async def interrupt(self) -> None:
        """Break off what it does, whether asked or not; returns when it has ended, or after a while."""
        if self._dead or (self._result is None and self._quiet.is_set()):
            return
        await self.client.interrupt()
        if self._result is not None:
            await asyncio.wait([self._result], timeout=INTERRUPT_PATIENCE)

    async def stop_tasks(self, running: Iterable[str]) -> None:
        """End what runs in the background; the program tells of its end."""
        for task in running:
            stopping = asyncio.create_task(self.client.stop_task(task), name="end of a task in Claude's background")
            self._stopping.add(stopping)
            stopping.add_done_callback(self._stopped)

    def _stopped(self, stopping: asyncio.Task[None]) -> None:
        self._stopping.discard(stopping)
        if not stopping.cancelled() and (error := stopping.exception()) is not None:
            log.warning("a task in Claude's background could not be ended: %s", error)

    async def leave(self, end: Callable[[], Awaitable[object]]) -> None:
        """Say goodbye; ``end`` ends by force what has not gone after a while, and whatever it left behind."""
        if not self._dead:
            await self._hush()
            # Past a death the reader is telling of it, and must not be cut short.
            self._reader.cancel()
            await asyncio.wait([self._reader])
        # A task of its own, as the SDK must not be cancelled on its way out.
        leaving = asyncio.create_task(self.client.disconnect(), name="Claude leaves")
        await asyncio.wait([leaving], timeout=DISCONNECT_PATIENCE)
        await end()
        await asyncio.wait([leaving], timeout=DISCONNECT_PATIENCE)
        if leaving.done() and (error := leaving.exception()) is not None:
            log.warning("Claude Code did not leave cleanly: %s", error)

    async def _hush(self) -> None:
        """Break off what it does by itself, as it does not leave while a command runs."""
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
                # There is nothing to read from, and asking again would take no time, for ever.
                log.warning("Claude Code is not to be reached: %s", error)
                return UNKNOWN_EXIT
            except ClaudeSDKError as error:
                # One message that the SDK does not know; if nothing can be read any more, the next look ends it.
                log.warning("Claude Code said something unknown: %s", error)
            except Exception:
                log.exception("Claude Code cannot be understood")
                return UNKNOWN_EXIT

    async def _take(self, message: Message) -> None:
        try:
            await self._heard(message)
        except Exception:
            log.exception("what Claude said was not taken")
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
        """A turn that nobody asked for and nothing has refused: hooks are switched off in the program's settings."""
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
            # Either the prompt waits its turn, or it went into what has just ended: being idle next tells.
            self._joined = result

    def _answer(self, result: ResultMessage) -> None:
        self._joined = None
        if self._result is not None and not self._result.done():
            self._result.set_result(result)


async def put(prompt: str) -> AsyncIterator[dict[str, Any]]:
    """A prompt as the program takes it: text that a client composed is neither a command nor a reference to a file."""
    yield {
        "type": "user",
        "message": {"role": "user", "content": prompt},
        "parent_tool_use_id": None,
        "client_composed": prompt not in COMMANDS,
        "origin": OWN,
    }


def _unreachable(error: CLIConnectionError) -> ResultMessage:
    raise AgentDied(UNKNOWN_EXIT, str(error)) from error
