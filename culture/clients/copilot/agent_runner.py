"""The runner for GitHub Copilot: one long-lived process, one session, one turn at a time."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from copilot import CopilotSession
from copilot._jsonrpc import JsonRpcError
from copilot.rpc import PermissionDecisionApproveOnce, PermissionDecisionReject
from copilot.session import (
    PermissionInvocation,
    PermissionNoResult,
    PermissionRequestResult,
    PostToolUseFailureHookInput,
    PostToolUseFailureHookOutput,
    PostToolUseHookInput,
    UserPromptSubmittedHookInput,
    UserPromptSubmittedHookOutput,
)
from copilot.session_events import (
    AssistantMessageData,
    AssistantUsageData,
    PermissionRequest,
    SessionCompactionCompleteData,
    SessionEvent,
    SessionUsageInfoData,
    ToolExecutionCompleteData,
)

from culture.clients.copilot import user_requests
from culture.clients.copilot.answer import CopilotAnswer, normalised, not_logged_in, result, tokens
from culture.clients.copilot.conversation import UNREACHABLE, CopilotConversation
from culture.clients.copilot.detect import PROGRAM, TRIED, known_login
from culture.clients.copilot.options import DEEP, appended, asks, read
from culture.clients.copilot.process import START_PATIENCE, CopilotProcess
from culture.clients.copilot.tasks import Shells
from culture.clients.copilot.user_requests import wanted
from culture.clients.shared.asking import OpenQuestions
from culture.clients.shared.background import REFUSED, is_same_prompt
from culture.clients.shared.errors import WrongConfiguration
from culture.clients.shared.programs import Found, Login, note_version
from culture.clients.shared.queued import UNKNOWN_EXIT, QueuedRunner
from culture.clients.shared.turn import CLEAR, COMPACT, AgentDied, Can, FormField, FormReply, RunnerSetup, Turn
from culture.lib.process.orphans import end_all, tokened

log = logging.getLogger(__name__)

NO_SESSION = "Session not found"


class CopilotRunner(QueuedRunner):
    """Runs GitHub Copilot through its SDK."""

    can = frozenset(Can)

    def __init__(self, setup: RunnerSetup) -> None:
        super().__init__(setup)
        environment, self._token = tokened(setup.environment)
        self._options = read(
            setup.nick, setup.directory, setup.options, environment, model=setup.model, thinking=setup.thinking
        )
        self._asks = asks(setup.options)
        self._live: CopilotProcess | None = None
        self._talk: CopilotConversation | None = None
        self._session: str | None = None
        self._questions = OpenQuestions()
        self._shells = Shells(self.background)
        self._asked: str | None = None
        """Prompt of the running turn."""
        self._deeper = False
        self._effort: str | None = self._options.effort
        self._spent = 0
        self._fullness: float | None = None

    @property
    def session_id(self) -> str | None:
        """Return the id of the present session, to resume it later; None without a session."""
        return self._session

    def think_deeper(self) -> None:
        """Use a higher reasoning effort for the next prompt that is not a command."""
        self._deeper = True

    async def open(self) -> None:
        """Start the Copilot CLI; resume the session named in the agent's setup, or begin a new one.

        ``WrongConfiguration`` if it is not logged in, ``AgentDied`` if it does not begin.
        """
        self._spent, self._fullness = 0, None
        chosen = self._options
        live = self._live = await CopilotProcess.start(
            chosen.program, self.setup.directory, chosen.environment, self._token, self.died, self.setup.sandbox
        )
        talk = self._talk = CopilotConversation(self._said)
        try:
            async with asyncio.timeout(START_PATIENCE):
                await self._greet(live)
                self._settle(talk, await self._resume(live))
        except WrongConfiguration:
            await self.close()
            raise
        except Exception as error:
            await self.close()
            raise AgentDied(UNKNOWN_EXIT, str(error) or "the Copilot CLI does not begin") from error

    async def take_turn(self, prompt: str) -> Turn:
        """Send a prompt or a command to Copilot, and return the turn once the program is idle."""
        live, talk = self._require_running()
        if prompt == CLEAR:
            return await self._clear(live, talk)
        try:
            collected = await (talk.compact() if prompt == COMPACT else self._ask(talk, prompt))
        finally:
            self._asked = None
            self._questions.forget()
        return self._turn(collected)

    async def interrupt(self) -> None:
        """Interrupt Copilot's running turn, if any; return when it has ended, or after a timeout."""
        if self._talk is not None:
            await self._talk.interrupt()

    async def close(self) -> None:
        """End the Copilot CLI and all processes that it started."""
        live, self._live = self._live, None
        talk, self._talk = self._talk, None
        self._questions.forget()
        await (end_all(self._token) if live is None else live.leave())
        if talk is not None:
            await talk.close()

    async def _greet(self, live: CopilotProcess) -> None:
        """Record the Copilot CLI's version; ``WrongConfiguration`` if it is not logged in."""
        status = await live.client.get_status()
        note_version(self.setup.nick, Found(PROGRAM, status.version, tried=TRIED))
        if self._options.provider is not None or known_login(self._options.environment)[0] is not Login.MISSING:
            # It also reports no login while GitHub is unreachable; then turns fail until it is back.
            return
        if not (await live.client.get_auth_status()).isAuthenticated:
            raise WrongConfiguration(f"{self.setup.nick}: {not_logged_in()}")

    async def _resume(self, live: CopilotProcess) -> CopilotSession:
        """Return the session named in the agent's setup, resumed.

        A new one begins if none is named or it no longer exists.
        """
        if self.setup.resume is None:
            return await self._begin(live)
        try:
            return await live.client.resume_session(self.setup.resume, **self._details())
        except JsonRpcError as error:
            if NO_SESSION not in error.message:
                raise
        return await self._begin(live, self.forgotten(self.setup.resume))

    async def _begin(self, live: CopilotProcess, note: str = "") -> CopilotSession:
        return await live.client.create_session(**self._details(note))

    def _settle(self, talk: CopilotConversation, session: CopilotSession) -> None:
        talk.session, self._session = session, session.session_id

    def _details(self, note: str = "") -> dict[str, Any]:
        """Return the parameters to start or resume a session; ``note``: added to the instructions."""
        return {
            "model": self._options.model,
            "provider": self._options.provider,
            "reasoning_effort": self._options.effort,
            "working_directory": str(self.setup.directory),
            "system_message": {"mode": "append", "content": appended(self.setup.instructions, note)},
            # Use its own settings and skills.
            "enable_config_discovery": True,
            "streaming": True,
            "on_permission_request": self._decide,
            "on_user_input_request": lambda request, _where: user_requests.answered(request, self._consult),
            "on_elicitation_request": lambda form: user_requests.elicited(form, self._consult),
            "hooks": {
                "on_user_prompt_submitted": self._before_prompt,
                "on_post_tool_use": self._after_tool,
                "on_post_tool_use_failure": self._after_tool,
            },
            "on_event": self._hear,
        }

    async def _ask(self, talk: CopilotConversation, prompt: str) -> CopilotAnswer:
        # A model without an effort setting may not support one.
        usual = self._effort if self._deeper else None
        self._deeper, self._asked = False, prompt
        if usual is None:
            return await talk.ask(prompt)
        await talk.think(DEEP)
        try:
            return await talk.ask(prompt)
        finally:
            await talk.think(usual)

    async def _clear(self, live: CopilotProcess, talk: CopilotConversation) -> Turn:
        """Start a new session in the same process, for the command ``clear``; return an empty turn."""
        before = talk.session
        try:
            self._settle(talk, await self._begin(live))
        except (JsonRpcError, *UNREACHABLE) as error:
            raise AgentDied(UNKNOWN_EXIT, str(error)) from error
        self._fullness = None
        if before is not None:
            with suppress(Exception):
                await before.disconnect()
        return self._turn(CopilotAnswer())

    def _turn(self, collected: CopilotAnswer) -> Turn:
        spent, self._spent = self._spent, 0
        return collected.turn(spent, self._fullness, own_provider=self._options.provider is not None)

    def _hear(self, event: SessionEvent) -> None:
        """Queue an event of the Copilot CLI for the conversation; kill the CLI if the queue is full."""
        self.touch()
        if self._live is None or self._talk is None:
            return
        try:
            self._talk.hear(event)
        except asyncio.QueueFull:
            log.error("%s: too many unread events of Copilot: ending it", self.setup.nick)
            self._live.kill()

    async def _said(self, event: SessionEvent) -> None:
        """Process an event of the Copilot CLI: pass on output and count usage.

        Of a sub-agent's events only the usage is counted.
        """
        self._shells.note(event.data)
        match event.data:
            case AssistantUsageData() as usage:
                self._spend(tokens(usage))
                self._effort = self._effort or usage.reasoning_effort
            case SessionCompactionCompleteData() as compaction:
                self._spend(tokens(compaction.compaction_tokens_used))
            case SessionUsageInfoData(current_tokens=used, token_limit=limit) if limit and not event.agent_id:
                self._fullness = 100 * used / limit
            case AssistantMessageData() as said if not event.agent_id:
                if content := normalised(said):
                    await self.emit(content, said.model)
            case ToolExecutionCompleteData() as done if not event.agent_id:
                await self.emit([result(done)])

    def _spend(self, used: int) -> None:
        self._spent += used
        if self.busy:
            self.used(self._spent)

    async def _decide(self, request: PermissionRequest, _invocation: PermissionInvocation) -> PermissionRequestResult:
        """Return Copilot's permission for a tool: given at once, or by people.

        People are asked if the setting ``permission_mode`` is ``ask``, or the organisation's policy requires it.
        """
        self.touch()
        # Requests that the organisation's policy requires are always asked.
        if not self._asks and not getattr(request, "managed_approval_required", False):
            return PermissionDecisionApproveOnce()
        if self.permit is None:
            return PermissionDecisionReject(feedback="nobody can be asked")
        permit = await self._questions.put(self.permit, *wanted(request))
        self.touch()
        if permit is None:
            return PermissionNoResult()
        if permit.interrupt:
            await self.interrupt()
            return PermissionNoResult()
        return PermissionDecisionApproveOnce() if permit.allowed else PermissionDecisionReject(feedback=permit.why)

    async def _before_prompt(
        self, given: UserPromptSubmittedHookInput, _where: dict[str, str]
    ) -> UserPromptSubmittedHookOutput | None:
        """Block a prompt that culture did not send, after storing it as news for the agent.

        Copilot calls this hook before a prompt reaches the model; None lets the prompt pass. News is a report of
        background work that has ended.
        """
        self.touch()
        if self._asked is not None and is_same_prompt(given["prompt"], self._asked):
            return None
        if self.on_news is None:
            return None
        await self.keep(self._shells.news(given))
        return {"decision": "block", "reason": REFUSED}

    async def _consult(self, fields: Sequence[FormField]) -> FormReply:
        """Pass Copilot's own questions to people, and return their answers."""
        self.touch()
        reply = FormReply(why=user_requests.NOBODY) if self.consult is None else await self.consult(fields)
        self.touch()
        return reply

    async def _after_tool(
        self, used: PostToolUseHookInput | PostToolUseFailureHookInput, _where: dict[str, str]
    ) -> PostToolUseFailureHookOutput | None:
        self.touch()
        # Whispers are for the agent, not for its sub-agents.
        if self.take_whispers is None or "agentId" in used or not (whispers := self.take_whispers()):
            return None
        return {"additionalContext": "\n".join(whispers)}

    def _require_running(self) -> tuple[CopilotProcess, CopilotConversation]:
        if self._live is None or self._talk is None:
            raise AgentDied(UNKNOWN_EXIT, "the Copilot CLI is not running")
        return self._live, self._talk


AgentRunner = CopilotRunner
