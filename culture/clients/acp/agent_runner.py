"""The runner for ACP agents: one process, one session, one turn at a time."""

import asyncio
import logging
import math
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import acp
from acp import RequestError
from acp.schema import (
    AgentMessageChunk,
    AgentThoughtChunk,
    AllowedOutcome,
    AvailableCommandsUpdate,
    DeniedOutcome,
    PermissionOption,
    PromptResponse,
    RequestPermissionResponse,
    ToolCallStart,
    ToolCallUpdate,
    UsageUpdate,
)

from culture.clients.acp.answer import FULL, LOST, AcpAnswer, AcpUsage, failure, odd_stop, tokens
from culture.clients.acp.escape_prompt import as_text, without_files, without_skills
from culture.clients.acp.options import Permissions, options
from culture.clients.acp.process import AcpProcess, require
from culture.clients.acp.quirks import program_of, quirks_of
from culture.clients.acp.sessions import AcpSessions
from culture.clients.shared.asking import Ask, OpenQuestions
from culture.clients.shared.instructions import joined
from culture.clients.shared.queued import UNKNOWN_EXIT, QueuedRunner
from culture.clients.shared.sandbox.bubblewrap import inside
from culture.clients.shared.turn import CLEAR, COMPACT, AgentDied, Can, Permit, RunnerSetup, Turn
from culture.lib.process.orphans import carrying, end_all, tokened

ALLOWANCES = ("allow_once", "allow_always")
REJECTIONS = ("reject_once", "reject_always")
log = logging.getLogger(__name__)

# OpenCode on a busy machine: its program has more than a hundred megabytes.
START_PATIENCE = 120.0
INTERRUPT_PATIENCE = 2.0
GRACE = 1.0
# Updates within so many seconds after a turn still belong to it.
LATE = 1.0
# After so many seconds of silence, further updates are a new turn that the program began by itself.
APART = 30.0
SHORTENING = ("compact", "compress")


class AcpPermissions:
    """Answers the agent's permission requests by the policy, or by asking people."""

    def __init__(self, policy: Permissions) -> None:
        self._policy = policy
        self._questions = OpenQuestions()

    async def decide(self, tool: str, given: Mapping[str, object], ask: Ask | None) -> Permit | None:
        """Return whether the tool may be used, decided by the policy or by asking people.

        ``given``: the tool's input; ``ask``: asks people, None if that is not possible: then the tool is refused.
        Returns None if the turn was interrupted.
        """
        if self._policy is Permissions.ALLOW:
            return Permit(True)
        if self._policy is Permissions.DENY or ask is None:
            return Permit(False)
        return await self._questions.put(ask, tool, given)

    def break_off(self) -> None:
        """Withdraw the open permission questions, because the turn is interrupted."""
        self._questions.forget()


def permission_response(permit: Permit | None, options: Sequence[PermissionOption]) -> RequestPermissionResponse:
    """Return the protocol's response to a permission request: the option to choose.

    Of those that fit the permit, one that holds only once is preferred; no permit means cancelled.
    """
    if permit is not None and not permit.interrupt:
        for kind in ALLOWANCES if permit.allowed else REJECTIONS:
            for option in options:
                if option.kind == kind:
                    chosen = AllowedOutcome(outcome="selected", option_id=option.option_id)
                    return RequestPermissionResponse(outcome=chosen)
    return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))


class AcpRunner(QueuedRunner):
    """Runs the program of the setting ``acp_command`` as an agent; ACP: Agent Client Protocol."""

    def __init__(self, setup: RunnerSetup) -> None:
        super().__init__(setup)
        self._environment, self._token = tokened(setup.environment)
        everything = {**os.environ, **self._environment}
        self._options = options(setup.options, everything)
        self._program = program_of(self._options.command)
        self._quirks = quirks_of(self._options.command)
        require(self._options.command, everything)
        self._compact = self._quirks.compact
        self.can = frozenset({Can.RESUME, Can.CLEAR, *([Can.COMPACT] if self._compact else [])})
        self._sessions: AcpSessions | None = None
        self._watcher: asyncio.Task[None] | None = None
        self._session: str | None = None
        self._preamble = ""
        self._meter = AcpUsage()
        self._permissions = AcpPermissions(self._options.permissions)
        self._update_lock = asyncio.Lock()
        self._answer: AcpAnswer | None = None
        self._over = asyncio.Event()
        self._interrupted = False
        self._turn_ended: float | None = None
        self._itself_at = -math.inf
        """When the program last worked without a prompt."""

    @property
    def session_id(self) -> str | None:
        """Return the id of the present session, to resume it later; None without a session."""
        return self._session

    async def open(self) -> None:
        """Start the ACP program; resume the session named in the agent's setup, or begin a new one.

        Raises ``AgentDied`` if the program does not begin.
        """
        free = self._options.permissions is Permissions.ALLOW
        asking = {} if free else self._quirks.asking
        unset = {name: value for name, value in self._quirks.variables.items() if name not in os.environ}
        environment = {**unset, **asking, **self._environment}
        command = inside(self.setup.sandbox, self._options.command, environment)
        link = await AcpProcess.open(command, self.setup.directory, environment, self._token, self)
        mode = self._options.mode or (self._quirks.free if free else self._quirks.careful)
        chosen = replace(self._options, mode=mode)
        self._sessions = AcpSessions(link, self.setup.nick, self.setup.directory, chosen, self.setup.model)
        try:
            async with asyncio.timeout(START_PATIENCE):
                await self._begin(self._sessions)
        except (TimeoutError, RequestError) as error:
            why = failure(error) if isinstance(error, RequestError) else link.last_words()
            await self.close()
            raise AgentDied(UNKNOWN_EXIT, f"{self._program} does not begin: {why}") from error
        except BaseException:
            await self.close()
            raise
        self._watcher = asyncio.create_task(self._watch(link), name=f"life of {self.setup.nick}")

    async def take_turn(self, prompt: str) -> Turn:
        """Send a prompt or a command to the agent, and return the turn when it has ended."""
        sessions = self._require_sessions()
        match prompt:
            case str() if prompt == CLEAR:
                return await self._clear(sessions)
            case str() if prompt == COMPACT:
                return await self._shorten(sessions)
        return await self._ask(sessions, self._escaped(prompt))

    async def interrupt(self) -> None:
        """Interrupt the running turn; returns when the turn has ended, or after a timeout."""
        if not await self._cancelled():
            return
        try:
            async with asyncio.timeout(INTERRUPT_PATIENCE):
                await self._over.wait()
        except TimeoutError:
            log.debug("%s: the agent has not stopped in time", self.setup.nick)

    async def close(self) -> None:
        """End the ACP program and all processes that it started."""
        sessions, self._sessions = self._sessions, None
        watcher, self._watcher = self._watcher, None
        if watcher is not None and watcher is not asyncio.current_task():
            watcher.cancel()
        if sessions is None:
            await end_all(self._token, grace=GRACE)
        else:
            await sessions.link.leave(GRACE)

    # Messages of the agent.

    async def session_update(self, session_id: str, update: Any, **_meta: Any) -> None:
        """Handle a ``session/update`` notification of the agent: pass on its output, count usage.

        The connection makes a task of each update, so several may arrive at once; they are handled one at a time.
        """
        async with self._update_lock:
            self.touch()
            match update:
                case UsageUpdate() if session_id == self._session:
                    self._meter.read(update)
                    if self._answer is not None:
                        self.used(self._answer.counted, self._meter.running)
                case AvailableCommandsUpdate(available_commands=commands) if self._compact is None:
                    named = {command.name for command in commands}
                    self._compact = next((f"/{name}" for name in SHORTENING if name in named), None)
                    self.can |= {Can.COMPACT} if self._compact else set()
                case _ if self._answer is not None and session_id == self._session:
                    await self._pass_on(self._answer.take(update))
                    if self._answer.counted:
                        self.used(self._answer.counted, self._meter.running)
                case AgentMessageChunk() | AgentThoughtChunk() | ToolCallStart() if session_id == self._session:
                    await self._handle_unasked_work()

    async def _handle_unasked_work(self) -> None:
        """Handle work that the agent began without a prompt: let it go on, or cancel it.

        The protocol marks neither the start nor the end of such work.
        """
        now = time.monotonic()
        # Before the first turn, updates repeat the history of a resumed session.
        if self._turn_ended is None or now < self._turn_ended + LATE:
            return
        begins, self._itself_at = now > self._itself_at + APART, now
        if not begins or self._sessions is None or self._session is None:
            return
        goes_on = self.begins_itself()
        if not goes_on:
            await self._sessions.link.agent.cancel(session_id=self._session)
        self.ended_itself(Turn(interrupted=not goes_on))

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption], **_meta: Any
    ) -> RequestPermissionResponse:
        """Return the option to choose of those that the ACP agent offers for a tool call.

        It allows or refuses the call, as the policy says or people answer.
        """
        async with self._update_lock:
            self.touch()
            answer = self._answer if session_id == self._session else None
            if answer is None or self._interrupted:
                return permission_response(None, options)
            await self._pass_on([*answer.flush(), *answer.called(tool_call, sure=True)])
        permit = await self._permissions.decide(*answer.use(tool_call), self.permit)
        self.touch()
        if permit is not None and permit.interrupt:
            # Do not wait for the end of the turn here: it waits for this answer.
            await self._cancelled()
        return permission_response(permit, options)

    # Sessions.

    def _require_sessions(self) -> AcpSessions:
        if self._sessions is None:
            raise AgentDied(UNKNOWN_EXIT, f"{self._program} is not running")
        return self._sessions

    async def _begin(self, sessions: AcpSessions) -> None:
        await sessions.initialize()
        if not sessions.can_resume:
            self.can -= {Can.RESUME}
        if self.setup.resume is not None:
            # Set before resuming: some agents report usage while a session is resumed.
            self._session, self._meter, self._preamble = self.setup.resume, AcpUsage(cost=None), ""
            if not await sessions.resume(self.setup.resume):
                await self._fresh(sessions, self.forgotten(self.setup.resume))
        else:
            await self._fresh(sessions)

    async def _fresh(self, sessions: AcpSessions, note: str = "") -> None:
        self._session, self._meter = await sessions.fresh(), AcpUsage()
        self._preamble = joined(self.setup.instructions, note)

    async def _clear(self, sessions: AcpSessions) -> Turn:
        earlier = self._session
        try:
            await self._fresh(sessions)
        except RequestError as error:
            return Turn(error=failure(error))
        if earlier is not None:
            await sessions.leave(earlier)
        return Turn()

    # Turns.

    def _escaped(self, prompt: str) -> str:
        """Return the prompt changed so that the program finds no commands or file names in it.

        In a new session the agent's instructions are put before it.
        """
        preamble, self._preamble = self._preamble, ""
        text = without_files(prompt, self.setup.directory) if self._quirks.pulls_files else prompt
        text = without_skills(text) if self._quirks.pulls_skills else text
        return f"{preamble}\n\n{text}" if preamble else as_text(text)

    async def _shorten(self, sessions: AcpSessions) -> Turn:
        if self._compact is None:
            return Turn(error=f"{self._program} cannot shorten its context")
        turn = await self._ask(sessions, self._compact, quiet=True)
        if turn.error or turn.interrupted:
            return turn
        # The instructions from the start of the session may be gone: send them again.
        self._preamble = self.setup.instructions
        return Turn(tokens=turn.tokens, cost_usd=turn.cost_usd, context_pct=turn.context_pct, compacted=True)

    async def _ask(self, sessions: AcpSessions, text: str, *, quiet: bool = False) -> Turn:
        assert self._session is not None
        answer = self._answer = AcpAnswer(quiet=quiet, notices=self._quirks.notices)
        self._interrupted = False
        self._over.clear()
        before = carrying(self._token) if self._quirks.leaves_commands else None
        ended, error = None, ""
        agent = sessions.link.agent
        try:
            ended = await sessions.link.talk(agent.prompt(session_id=self._session, prompt=[acp.text_block(text)]))
        except RequestError as failed:
            error = failure(failed)
            if LOST.search(error):
                raise AgentDied(UNKNOWN_EXIT, error) from failed
            answer.drop(error)
        finally:
            self._answer = None
            self._turn_ended, self._itself_at = time.monotonic(), -math.inf
            self._over.set()
        if before is not None and self._interrupted:
            await end_all(self._token, GRACE, spare=before)
        await self._pass_on(answer.finish())
        return self._turn(answer, ended, error)

    def _turn(self, answer: AcpAnswer, ended: PromptResponse | None, error: str) -> Turn:
        interrupted = self._interrupted or (ended is not None and ended.stop_reason == "cancelled")
        why = odd_stop(ended, answer) if ended is not None else error
        return Turn(
            text=answer.text,
            error="" if interrupted else why,
            interrupted=interrupted,
            tools=answer.tools,
            tokens=tokens(ended, answer),
            cost_usd=self._meter.spent(),
            context_pct=self._meter.context_pct,
            full=FULL.search(error) is not None,
        )

    async def _cancelled(self) -> bool:
        """Cancel the running turn; return False if no turn is running."""
        if self._sessions is None or self._session is None or self._answer is None:
            return False
        self._interrupted = True
        self._permissions.break_off()
        await self._sessions.link.agent.cancel(session_id=self._session)
        return True

    async def _pass_on(self, blocks: list[dict[str, Any]]) -> None:
        if blocks:
            try:
                await self.emit(blocks)
            except Exception:
                log.exception("%s: cannot pass on the agent's output", self.setup.nick)

    async def _watch(self, link: AcpProcess) -> None:
        await asyncio.wait([link.death])
        await self.died(link.death.result())


AgentRunner = AcpRunner
