"""One session of Copilot: sends a prompt, collects its events in order, and finds its end.

The id of a prompt is known only when ``send`` returns, and its first events may arrive before that. So events are held
back while a prompt is sent. A prompt is over when the session is idle after the prompt's own message was seen; an idle
event before that belongs to the previous turn.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

from copilot import CopilotSession
from copilot._jsonrpc import JsonRpcError, ProcessExitedError
from copilot.session_events import (
    AssistantIdleData,
    AssistantMessageData,
    AssistantUsageData,
    SessionCompactionCompleteData,
    SessionErrorData,
    SessionEvent,
    SessionIdleData,
    SessionUsageInfoData,
    SessionWarningData,
    SystemNotificationData,
    ToolExecutionCompleteData,
    UserMessageData,
)

from culture.clients.copilot.answer import CopilotAnswer
from culture.clients.shared.queued import UNKNOWN_EXIT
from culture.clients.shared.turn import AgentDied

log = logging.getLogger(__name__)

INTERRUPT_PATIENCE = 2.0
# Events that may wait; with more the program is ended.
MOST_UNHEARD = 10_000
UNREACHABLE = (ProcessExitedError, OSError)
HEARD = (
    AssistantIdleData,
    AssistantMessageData,
    AssistantUsageData,
    SessionCompactionCompleteData,
    SessionErrorData,
    SessionIdleData,
    SessionUsageInfoData,
    SessionWarningData,
    SystemNotificationData,
    ToolExecutionCompleteData,
    UserMessageData,
)


class PendingPrompt:
    """A prompt that was sent to Copilot, its output so far, and a future for its end."""

    def __init__(self) -> None:
        self.collected = CopilotAnswer()
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.number: str | None = None
        """The program's id of the prompt; None while it is being sent."""
        self.begun = False
        self.interrupting = False

    def take(self, event: SessionEvent) -> None:
        """Update the prompt's output and state from an event of the session.

        Events before the prompt's own message are ignored.
        """
        match event.data:
            case UserMessageData(message_id=number) if number == self.number:
                self.begun = True
            case AssistantMessageData() as said if self.begun:
                self.collected.take(said)
            case SessionCompactionCompleteData(success=True) if self.begun:
                self.collected.compacted = True
            case SessionWarningData(warning_type="policy_blocked", message=why, originating_message_id=number):
                if number == self.number:
                    self.begun, self.collected.error = True, why
            case SessionErrorData(originating_message_id=number) as error if number in (None, self.number):
                self.collected.fail(error)
            case AssistantIdleData(aborted=aborted) | SessionIdleData(aborted=aborted):
                self._idle(bool(aborted))

    def _idle(self, aborted: bool) -> None:
        # One of the two idle events can belong to the previous turn.
        meant = self.begun or self.collected.error or (aborted and self.interrupting)
        if meant and not self.over.done():
            self.collected.interrupted = aborted
            self.over.set_result(None)


class CopilotConversation:
    """A session of Copilot; handles its events in order."""

    def __init__(self, said: Callable[[SessionEvent], Awaitable[None]]) -> None:
        self.session: CopilotSession | None = None
        self._said = said
        self._asked: PendingPrompt | None = None
        self._events: asyncio.Queue[SessionEvent] = asyncio.Queue(MOST_UNHEARD)
        # Cleared while a prompt is sent: its id, which assigns events to it, is not known yet.
        self._named = asyncio.Event()
        self._named.set()
        self._listener = asyncio.create_task(self._listen(), name="what Copilot says")

    def hear(self, event: SessionEvent) -> None:
        """Put an event of the session into the queue; ``QueueFull`` if too many are waiting."""
        if isinstance(event.data, HEARD):
            self._events.put_nowait(event)

    async def lost(self, code: int) -> None:
        """Fail the running prompt, because the program exited with this code."""
        if self._asked is not None and not self._asked.over.done():
            self._asked.over.set_exception(AgentDied(code))

    async def ask(self, prompt: str) -> CopilotAnswer:
        """Send a prompt and return its output when it has ended.

        ``AgentDied`` if the process ends first.
        """
        asked = self._asked = PendingPrompt()
        self._named.clear()
        try:
            asked.number = await self._require_session().send(prompt)
            self._named.set()
            await asked.over
        except (JsonRpcError, *UNREACHABLE) as error:
            raise AgentDied(UNKNOWN_EXIT, str(error)) from error
        finally:
            self._named.set()
            self._asked = None
        return asked.collected

    async def compact(self) -> CopilotAnswer:
        """Compact the session's context, and return the outcome as the output of a prompt."""
        asked = self._asked = PendingPrompt()
        try:
            result = await self._require_session().rpc.history.compact()
            asked.collected.compacted = result.success
            await self._events.join()
        except JsonRpcError as error:
            asked.collected.error, asked.collected.interrupted = error.message, asked.interrupting
        except UNREACHABLE as error:
            raise AgentDied(UNKNOWN_EXIT, str(error)) from error
        finally:
            asked.over.cancel()
            self._asked = None
        return asked.collected

    async def interrupt(self) -> None:
        """Interrupt the running prompt; returns when the prompt has ended, or after a timeout."""
        asked, session = self._asked, self.session
        if asked is None or session is None:
            return
        asked.interrupting = True
        with suppress(JsonRpcError, *UNREACHABLE):
            await session.rpc.history.abort_manual_compaction()
            await session.abort()
        await asyncio.wait([asked.over], timeout=INTERRUPT_PATIENCE)

    async def think(self, level: str) -> None:
        """Set the reasoning effort from the next model call on; a failure is only logged."""
        try:
            session = self._require_session()
            now = await session.rpc.model.get_current()
            if now.model_id is not None:
                await session.set_model(now.model_id, reasoning_effort=level)
        except (JsonRpcError, *UNREACHABLE) as error:
            log.warning("cannot change the effort: %s", error)

    async def close(self) -> None:
        """Stop processing events of the session."""
        if self._listener is not asyncio.current_task():
            self._listener.cancel()
            await asyncio.wait([self._listener])

    async def _listen(self) -> None:
        while True:
            event = await self._events.get()
            await self._named.wait()
            try:
                if self._asked is not None and not event.agent_id:
                    self._asked.take(event)
                await self._said(event)
            except Exception:
                log.exception("cannot handle an event of Copilot")
            finally:
                self._events.task_done()

    def _require_session(self) -> CopilotSession:
        if self.session is None:
            raise AgentDied(UNKNOWN_EXIT, "the Copilot CLI is not running")
        return self.session
