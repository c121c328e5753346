"""A runner that has a queue: order, callbacks and exit codes once, so that a backend takes one turn at a time."""

import asyncio
import logging
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from culture.clients.shared.background import BackgroundWork
from culture.clients.shared.base import AgentRunnerBase
from culture.clients.shared.budget import Quota
from culture.clients.shared.turn import AgentDied, Can, FormField, FormReply, News, Permit, RunnerSetup, Turn
from culture.runtime import REAL, Runtime

log = logging.getLogger(__name__)

LONGEST_QUEUE = 1000
# Interrupting is a matter of milliseconds; an agent that does not react is ended.
INTERRUPT_PATIENCE = 5.0
CLOSE_PATIENCE = 10.0
UNKNOWN_EXIT = 1
# What cannot be kept, as the disk is full, is tried again after so long.
KEEP_AGAIN = 1.0


class QueuedRunner(AgentRunnerBase):
    """Works prompts off one by one. A backend writes ``open``, ``take_turn``, ``close`` and perhaps ``interrupt``."""

    on_turn: Callable[[Turn], Awaitable[None]] | None = None
    """Called when a turn is over, before the next prompt is taken."""
    take_whispers: Callable[[], list[str]] | None = None
    """Gives what shall reach the agent before its turn is over, where the backend can; it counts as delivered then."""
    on_usage: Callable[[int, float], None] | None = None
    """Called within a turn with the tokens and dollars that it has used so far, where the backend can tell."""
    on_quotas: Callable[[Sequence[Quota]], None] | None = None
    """Called when the provider tells how much of a subscription's windows is gone, where the backend can tell."""
    permit: Callable[[str, Mapping[str, object]], Awaitable[Permit]] | None = None
    """Asks whether the agent may use a tool, with what it is given; where the backend asks at all."""
    on_news: Callable[[News], None] | None = None
    """Keeps on disk what the program would begin a turn for, where the backend can refuse it that turn."""
    on_own_turn: Callable[[], bool] | None = None
    """Called when the program begins a turn by itself, where the backend cannot refuse it; whether it may go on."""
    on_own_end: Callable[[Turn], None] | None = None
    """Called when such a turn is over."""
    on_beside: Callable[[int], bool] | None = None
    """Called with the tokens that sub-agents use between two turns; whether these are to end, as the budget is gone."""
    consult: Callable[[Sequence[FormField]], Awaitable[FormReply]] | None = None
    """Asks people what the program asks its user by itself; where the backend can answer for that user."""
    can: frozenset[Can] = frozenset()
    runtime: Runtime = REAL
    """That of the daemon, which sets it before the start."""

    def __init__(self, setup: RunnerSetup) -> None:
        self.setup = setup
        self.background = BackgroundWork()
        """What the program does beside its turns, where the backend can tell."""
        self.last_event = 0.0
        self._prompts: asyncio.Queue[str] = asyncio.Queue(LONGEST_QUEUE)
        self._worker: asyncio.Task[None] | None = None
        self._running = False
        self._busy = False
        self._exited = False
        self._lost: int | None = None
        self._telling = asyncio.Lock()
        self._model: str | None = None

    @abstractmethod
    async def open(self) -> None:
        """Spawn or connect; when this returns a turn can be taken. AgentDied when it cannot be."""

    @abstractmethod
    async def take_turn(self, prompt: str) -> Turn:
        """Give the agent a prompt and wait for the end of its answer; AgentDied when it ended meanwhile."""

    @abstractmethod
    async def close(self) -> None:
        """End the agent's process and whatever it started; called once, also after a death."""

    async def interrupt(self) -> None:
        """Break the present turn off, so that ``take_turn`` returns soon."""

    def think_deeper(self) -> None:
        """Give the next turn more thought, where the backend can."""

    async def start(self, initial_prompt: str = "") -> None:
        """Make the agent ready."""
        self._begin_anew()
        await self.open()
        if self._lost is not None:
            await self.close()
            raise AgentDied(self._lost)
        self._running = True
        self._worker = asyncio.create_task(self._work(), name=f"runner of {self.setup.nick}")
        if initial_prompt:
            await self.send_prompt(initial_prompt)

    async def stop(self) -> None:
        """End the agent; what is queued is dropped, the daemon's inbox has it."""
        self._running = False
        if self._busy:
            await self._break_off()
        await self._end_worker()
        try:
            async with asyncio.timeout(CLOSE_PATIENCE):
                await self.close()
        except TimeoutError:
            log.warning("%s: the agent did not close in time", self.setup.nick)
        await self._tell_exit(0)

    async def send_prompt(self, text: str) -> None:
        """Queue a prompt."""
        self._prompts.put_nowait(text)

    def is_running(self) -> bool:
        """Whether prompts are taken."""
        return self._running

    @property
    def busy(self) -> bool:
        """Whether a turn is being taken."""
        return self._busy

    def touch(self) -> None:
        """The agent gave a sign of life."""
        self.last_event = self.runtime.monotonic()

    async def emit(self, content: Sequence[dict[str, Any]], model: str | None = None) -> None:
        """Pass on what the agent said, thought or called, as the contract's dict."""
        self.touch()
        self._model = model or self._model
        if self.on_message is not None:
            known = self._model or self.setup.model or ""
            await self.on_message({"type": "assistant", "model": known, "content": list(content)})

    def used(self, tokens: int, cost_usd: float = 0.0) -> None:
        """The present turn has used so much so far."""
        if self.on_usage is not None:
            self.on_usage(tokens, cost_usd)

    async def keep(self, news: News) -> None:
        """Have news kept on disk, as often as it takes."""
        while self.on_news is not None:
            try:
                return self.on_news(news)
            except Exception:
                log.exception("%s: its own news could not be kept", self.setup.nick)
            await asyncio.sleep(KEEP_AGAIN)

    def begins_itself(self) -> bool:
        """The program begins a turn that nobody asked for; whether it may go on."""
        return self.on_own_turn is None or self.on_own_turn()

    def ended_itself(self, turn: Turn) -> None:
        """Such a turn is over."""
        if self.on_own_end is not None:
            self.on_own_end(turn)

    def used_beside(self, tokens: int) -> bool:
        """Sub-agents have used so much between two turns; whether they are to end."""
        return self.on_beside is not None and self.on_beside(tokens)

    def forgotten(self, session: str) -> str:
        """The session to take up is gone; what the agent is told of it in the new one."""
        log.warning("%s: session %s is gone, a new one begins", self.setup.nick, session)
        return f"Your earlier session {session} is gone: you begin without its memory."

    def told_quotas(self, quotas: Sequence[Quota]) -> None:
        """So much of the windows of the subscription is gone."""
        if quotas and self.on_quotas is not None:
            self.on_quotas(quotas)

    async def died(self, code: int) -> None:
        """The process ended by itself: the present turn is over, and the daemon is told once."""
        if not self._running:
            # While it is being started, who starts it tells.
            self._lost = code or UNKNOWN_EXIT
            return
        self._running = False
        if self._worker is not asyncio.current_task():
            async with self._telling:
                await self._end_worker()
        await self._tell_exit(code or UNKNOWN_EXIT)

    def _begin_anew(self) -> None:
        self._prompts = asyncio.Queue(LONGEST_QUEUE)
        self._exited, self._lost = False, None
        self.background.clear()
        self.touch()

    async def _work(self) -> None:
        while self._worker is asyncio.current_task():
            prompt = await self._prompts.get()
            self._busy = True
            self.touch()
            try:
                turn = await self.take_turn(prompt)
            except AgentDied as death:
                await self.died(death.code)
                return
            except Exception:
                log.exception("%s: the backend failed", self.setup.nick)
                await self.died(UNKNOWN_EXIT)
                return
            finally:
                self._busy = False
            self.touch()
            if self.on_turn is not None:
                # A turn that was taken counts, also when the agent dies while it is told.
                async with self._telling:
                    await self._tell_turn(self.on_turn, turn)

    async def _tell_turn(self, on_turn: Callable[[Turn], Awaitable[None]], turn: Turn) -> None:
        """Whatever goes wrong there, such as a full disk: an agent that takes prompts works them off."""
        try:
            await on_turn(turn)
        except Exception:
            log.exception("%s: a turn could not be noted", self.setup.nick)

    async def _break_off(self) -> None:
        try:
            async with asyncio.timeout(INTERRUPT_PATIENCE):
                await self.interrupt()
        except TimeoutError:
            log.warning("%s: the agent cannot be interrupted", self.setup.nick)
        except Exception:
            log.exception("%s: the backend failed to interrupt", self.setup.nick)

    async def _end_worker(self) -> None:
        worker, self._worker = self._worker, None
        # Who stops the runner from a callback is in the worker itself, which then ends by itself.
        if worker is not None and worker is not asyncio.current_task():
            worker.cancel()
            await asyncio.wait([worker])

    async def _tell_exit(self, code: int) -> None:
        if not self._exited and self.on_exit is not None:
            self._exited = True
            await self.on_exit(code)
