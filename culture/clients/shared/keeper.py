"""Keeps one agent running: starts it, starts it again after a crash, breaks off what hangs, ends what it began."""

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

from culture.clients.shared.base import AgentRunnerBase
from culture.clients.shared.budget import Quota
from culture.clients.shared.errors import WrongConfiguration
from culture.clients.shared.notes import Notes
from culture.clients.shared.queued import QueuedRunner
from culture.clients.shared.recovery import Recovery, Restart
from culture.clients.shared.turn import AgentDied, Can, News, Turn
from culture.config.agents import RecoveryConfig
from culture.lib.process.orphans import GRACE, end_all
from culture.runtime import REAL, Runtime

log = logging.getLogger(__name__)

SILENT = -1
"""The exit code of an agent that was ended because it did not react."""
STOP_PATIENCE = 1.5
"""Seconds that the agent's program may take to end where the daemon stops; then its processes are ended by force."""
STOP_GRACE = 0.5
RENEW = -2
"""Among the exit codes: the session is of no more use, and nobody died."""
_LOOKS = 8  # how often silence is looked for within its limit


class Listener(Protocol):
    """Who is told what becomes of the agent."""

    async def on_message(self, message: dict[str, Any]) -> None:
        """The agent said, thought or called something."""

    async def on_turn(self, turn: Turn) -> None:
        """A turn is over."""

    def on_usage(self, tokens: int, cost_usd: float) -> None:
        """The present turn has used so many tokens so far."""

    def on_quotas(self, quotas: Sequence[Quota]) -> None:
        """The provider told how much of a subscription's windows is gone."""

    def on_news(self, news: News) -> None:
        """The program would begin a turn by itself, and is refused it once this returns."""

    def on_own_turn(self) -> bool:
        """The program begins a turn by itself; whether it may go on."""

    def on_own_end(self, turn: Turn) -> None:
        """Such a turn is over."""

    def on_beside(self, tokens: int) -> bool:
        """Sub-agents have used so much between two turns; whether they are to end."""

    def on_crash(self, code: int, restart_in: float | None) -> None:
        """The agent died; it starts again after so many seconds, or not at all."""

    def on_unable(self, why: str) -> None:
        """The agent cannot be started again, and trying does not help: its program or its login is gone."""

    def on_ready(self, resumed: bool) -> None:
        """The agent takes prompts, with its old session or a new one."""

    def on_silence(self, seconds: float) -> None:
        """The present turn has shown no sign of life for so long, and is broken off."""


Make = Callable[[str | None, str], AgentRunnerBase]
"""A runner from the session to take up again and the token for its orphans."""


class EndProcesses(Protocol):
    """How processes are found by their token and ended."""

    async def __call__(self, token: str, grace: float = GRACE) -> int:
        """End every process with this token; return how many there were."""


class Keeper:
    """The life of an agent's runner."""

    def __init__(
        self,
        nick: str,
        make: Make,
        notes: Notes,
        recovery: Recovery,
        config: RecoveryConfig,
        *,
        end_processes: EndProcesses = end_all,
        runtime: Runtime = REAL,
    ) -> None:
        self._nick = nick
        self._make = make
        self._notes = notes
        self._recovery = recovery
        self._config = config
        self._end_processes = end_processes
        self._runtime = runtime
        self._runner: AgentRunnerBase | None = None
        # With each whose it is: what is told of one that has been replaced is no end of its successor.
        self._exits: asyncio.Queue[tuple[AgentRunnerBase | None, int]] = asyncio.Queue()
        self._tasks: list[asyncio.Task[None]] = []
        self._token = ""
        self.on_token: Callable[[str], None] = lambda token: None
        """Called with the token of the processes that are about to be started."""
        self._heard = self._runtime.monotonic()
        self._rest = asyncio.Event()  # set while the agent is doing nothing
        self._rest.set()
        self._quiet_by_choice: Callable[[], bool] = lambda: False
        self._stopping = False
        self._changing = asyncio.Lock()  # whoever begins or ends a runner
        self._reviving: asyncio.Task[None] | None = None
        self.parked = False

    def watch(self, listener: Listener, quiet_by_choice: Callable[[], bool]) -> None:
        """Say who listens, and how to know that an agent is silent because it waits for somebody."""
        self._listener = listener
        self._quiet_by_choice = quiet_by_choice

    @property
    def ready(self) -> bool:
        """Whether the agent takes prompts."""
        return self._runner is not None and self._runner.is_running() and not self._stopping

    @property
    def runner(self) -> AgentRunnerBase | None:
        """The runner there is now."""
        return self._runner

    @property
    def runs_commands(self) -> bool:
        """Whether a command runs in the background, as far as the backend tells."""
        return isinstance(self._runner, QueuedRunner) and bool(self._runner.background.commands)

    def in_background(self, place: str) -> int:
        """Number of commands and sub-agents begun in a place that run in the background, as far as the backend tells.

        Their end is told to the agent as a prompt of that place.
        """
        return self._runner.background.running_in(place) if isinstance(self._runner, QueuedRunner) else 0

    @property
    def cannot(self) -> list[str]:
        """What some kinds of agents can do and this one cannot; nothing is known while there is none."""
        if self._runner is None:
            return []
        able = self._runner.can if isinstance(self._runner, QueuedRunner) else frozenset()
        return [ability.name.lower() for ability in Can if ability not in able]

    async def start(self) -> None:
        """End what an earlier run left behind and start the agent."""
        await self._reap()
        self._tasks = [
            asyncio.create_task(self._look_after(), name=f"keeper of {self._nick}"),
            asyncio.create_task(self._watch_silence(), name=f"silence of {self._nick}"),
        ]
        await self._launch(self._notes.session)

    async def stop(self) -> None:
        """End the agent and everything it started."""
        self._stopping = True
        tasks = [*self._tasks, *([self._reviving] if self._reviving is not None else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._dispose()

    async def feed(self, text: str) -> None:
        """Give the agent a prompt; only when it is ready and has none."""
        if self._runner is None:
            raise RuntimeError("there is no agent to give a prompt to")
        self.touch()
        self._rest.clear()
        await self._runner.send_prompt(text)

    async def interrupt(self) -> None:
        """Break the present turn off, where the backend can."""
        if isinstance(self._runner, QueuedRunner):
            await self._runner.interrupt()

    def renew(self) -> None:
        """Begin a new session in a new process as soon as the present turn is over."""
        self._notes.session = None
        self._exits.put_nowait((self._runner, RENEW))

    async def revive(self) -> None:
        """A person wants a parked agent back; what is left of the old one ends first."""
        if not self.parked:
            return
        async with self._changing:
            if self.parked and not self._stopping:
                self.parked = False
                self._recovery.forget()
                self._reviving = asyncio.create_task(self._relaunch(None), name=f"return of {self._nick}")
                await asyncio.wait([self._reviving])

    def touch(self) -> None:
        """The agent gave a sign of life."""
        self._heard = self._runtime.monotonic()

    async def _launch(self, session: str | None) -> None:
        """Start a runner; a session that cannot be taken up is one more crash."""
        try:
            runner = self._new(session)
            await runner.start()
        except WrongConfiguration:
            raise
        except AgentDied as death:
            log.error("%s did not start: %s", self._nick, death)
            self._exits.put_nowait((self._runner, death.code))
        except Exception:
            log.exception("%s did not start", self._nick)
            self._exits.put_nowait((self._runner, 1))
        else:
            self._note_session()
            self._listener.on_ready(session is not None and runner.session_id == session)

    def _new(self, session: str | None) -> AgentRunnerBase:
        self._token = self._runtime.token_hex(16)
        # On disk before the first process: whatever happens, the next start finds them.
        self._notes.token = self._token
        self.on_token(self._token)
        runner = self._runner = self._make(session, self._token)
        runner.on_message = self._on_message
        runner.on_exit = partial(self._on_exit, runner)
        if isinstance(runner, QueuedRunner):
            runner.runtime = self._runtime
            runner.on_turn = self._on_turn
            runner.on_usage = self._listener.on_usage
            runner.on_quotas = self._listener.on_quotas
            runner.on_news = self._listener.on_news
            runner.on_own_turn = self._listener.on_own_turn
            runner.on_own_end = self._listener.on_own_end
            runner.on_beside = self._listener.on_beside
        return runner

    async def _dispose(self, *, reacts: bool = True) -> None:
        """End the runner and all it started; one that does not react loses its processes first."""
        runner, self._runner = self._runner, None
        self._rest.set()
        if runner is not None:
            runner.on_exit = None
            if not reacts:
                await self._reap()
            await self._end_runner(runner)
        await self._reap()

    async def _end_runner(self, runner: AgentRunnerBase) -> None:
        """End a runner; where the daemon stops, the processes of one that hangs are ended by force meanwhile."""
        leaving = asyncio.create_task(runner.stop(), name=f"end of {self._nick}")
        if self._stopping:
            await asyncio.wait([leaving], timeout=STOP_PATIENCE)
            if not leaving.done() and self._notes.token is not None:
                log.warning("%s does not react and is ended by force", self._nick)
                await self._end_processes(self._notes.token, grace=STOP_GRACE)
        try:
            await leaving
        except Exception:
            log.exception("%s: the runner failed to stop", self._nick)

    async def _reap(self) -> None:
        """End the processes that carry the token of this agent's last run, and no others."""
        if self._notes.token is not None:
            ended = await self._end_processes(self._notes.token)
            if ended:
                log.info("%s: ended %d processes that were left", self._nick, ended)
            self._notes.token = None

    async def _look_after(self) -> None:
        while True:
            runner, code = await self._exits.get()
            if runner is not self._runner:
                continue
            if code == RENEW:
                async with self._changing:
                    if not self.parked:
                        await self._end()
                        await self._relaunch(None)
                continue
            restart = self._recovery.crashed(self._runtime.monotonic())
            # Somebody who resumes it from here on waits until the old one has gone.
            async with self._changing:
                self.parked = restart is None
                session = self._crashed(code, restart)
                await self._end(reacts=code != SILENT)
            if restart is not None:
                await asyncio.sleep(restart.delay)
                await self._relaunch(session)

    def _crashed(self, code: int, restart: Restart | None) -> str | None:
        """Tell of a crash; the session to take up again. An agent is started again also when its end cannot be told."""
        try:
            self._note_session()
            self._listener.on_crash(code, restart.delay if restart else None)
            return None if restart is None or restart.fresh else self._notes.session
        except Exception:
            log.exception("%s: its crash could not be told", self._nick)
            return None

    async def _end(self, *, reacts: bool = True) -> None:
        """End the runner, as far as that is possible."""
        try:
            await self._dispose(reacts=reacts)
        except Exception:
            log.exception("%s: what it has left could not be ended", self._nick)

    async def _relaunch(self, session: str | None) -> None:
        try:
            await self._launch(session)
        except WrongConfiguration as error:
            self.parked = True
            self._listener.on_unable(str(error))
        except Exception:
            # It runs, and who looks after it must not end before it does.
            log.exception("%s: its start could not be told", self._nick)

    async def _watch_silence(self) -> None:
        while True:
            await asyncio.sleep(self._config.silence / _LOOKS)
            if self._rest.is_set() or self._quiet_by_choice():
                self.touch()
            elif (silent := self._runtime.monotonic() - self._last_sign()) > self._config.silence:
                try:
                    await self._break_off(silent)
                except Exception:
                    log.exception("%s: its silence could not be ended", self._nick)

    async def _break_off(self, silent: float) -> None:
        """Interrupt; then stop by force."""
        self._listener.on_silence(silent)
        runner = self._runner
        try:
            async with asyncio.timeout(self._config.interrupt_grace):
                await self.interrupt()
                await self._rest.wait()
        except TimeoutError:
            log.warning("%s does not react and is ended", self._nick)
        except Exception:
            log.exception("%s cannot be interrupted", self._nick)
        if not self._rest.is_set() and self._runner is runner:
            self._rest.set()
            self._exits.put_nowait((runner, SILENT))
        self.touch()

    def _last_sign(self) -> float:
        of_runner = self._runner.last_event if isinstance(self._runner, QueuedRunner) else 0.0
        return max(self._heard, of_runner)

    def _note_session(self) -> None:
        """Remember the session; where that fails for now, whatever it is that has happened goes on all the same."""
        if self._runner is None or self._runner.session_id is None:
            return
        try:
            self._notes.session = self._runner.session_id
        except sqlite3.Error:
            log.exception("%s: its session could not be noted", self._nick)

    async def _on_message(self, message: dict[str, Any]) -> None:
        self.touch()
        await self._listener.on_message(message)
        if self._runner is not None and not isinstance(self._runner, QueuedRunner):
            # The contract alone knows no other end of a turn than what the agent says.
            await self._on_turn(_turn_of(message))

    async def _on_turn(self, turn: Turn) -> None:
        self._rest.set()
        self._note_session()
        await self._listener.on_turn(turn)

    async def _on_exit(self, runner: AgentRunnerBase, code: int) -> None:
        if not self._stopping:
            self._exits.put_nowait((runner, code))


def _turn_of(message: dict[str, Any]) -> Turn:
    blocks = message.get("content", [])
    texts = [str(block.get("text", "")) for block in blocks if block.get("type") == "text"]
    tools = [str(block.get("name", "")) for block in blocks if block.get("type") == "tool_use"]
    return Turn(text=texts[-1] if texts else "", tools=tuple(tools))
