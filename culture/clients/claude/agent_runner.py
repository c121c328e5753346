"""The runner for Claude Code: one long-lived process, one session, one turn at a time."""

import logging
from collections import deque
from typing import Any
from uuid import uuid4

from claude_agent_sdk import (
    AssistantMessage,
    ClaudeSDKClient,
    CLINotFoundError,
    ConversationResetMessage,
    HookMatcher,
    PermissionResultAllow,
    PermissionResultDeny,
    ProcessError,
    RateLimitEvent,
    ResultMessage,
    SystemMessage,
    ToolPermissionContext,
    UserMessage,
)
from claude_agent_sdk.types import EffortLevel, HookContext, HookEvent, HookInput, HookJSONOutput, Message

from culture.clients.claude import control, tasks, user_questions
from culture.clients.claude.answer import (
    ClaudeAnswer,
    Costs,
    failure,
    is_error,
    is_full,
    no_login,
    normalised,
    tokens,
    tool_results,
    was_interrupted,
)
from culture.clients.claude.detect import PROGRAM, TRIED
from culture.clients.claude.options import DEEPEST, effort, options
from culture.clients.claude.session import ClaudeSession
from culture.clients.claude.usage import REJECTED, Estimate, quotas
from culture.clients.shared.background import REFUSED, is_same_prompt
from culture.clients.shared.errors import WrongConfiguration
from culture.clients.shared.programs import Found, note_version
from culture.clients.shared.queued import UNKNOWN_EXIT, QueuedRunner
from culture.clients.shared.turn import COMMANDS, COMPACT, AgentDied, Can, RunnerSetup, Turn
from culture.lib.process.orphans import end_all, tokened

log = logging.getLogger(__name__)

# Errors that mean: there is no session to resume.
NO_SESSION = ("No conversation found", "--resume requires a valid session")
LAST_WORDS = 20
# Its own tool for questions to the user.
ASKS_PEOPLE = "AskUserQuestion"
# Timeout in seconds of the hook that waits until news is on disk.
KEEPING = 3600.0
# Measure exactly above this percentage; below it, the last answer's usage is close enough.
WORTH_MEASURING = 50.0


class ClaudeRunner(QueuedRunner):
    """Runs Claude Code through the Claude Agent SDK."""

    can = frozenset(Can)

    def __init__(self, setup: RunnerSetup) -> None:
        super().__init__(setup)
        self._environment, self._token = tokened(setup.environment)
        self._live: ClaudeSession | None = None
        self._session: str | None = None
        self._effort: EffortLevel | None = None
        self._deeper = False
        self._costs = Costs()
        self._estimate = Estimate()
        self._fullness: float | None = None
        self._collected = ClaudeAnswer()
        self._beside = ClaudeAnswer()
        self._asked: str | None = None
        """Prompt of the running turn."""
        self._asked_id = ""
        self._words: deque[str] = deque(maxlen=LAST_WORDS)

    @property
    def session_id(self) -> str | None:
        """Return the id of the present session, to resume it later; None without a session."""
        return self._session

    def think_deeper(self) -> None:
        """Use the highest reasoning effort for the next prompt that is not a command."""
        self._deeper = True

    async def open(self) -> None:
        """Start Claude Code; resume the session named in the agent's setup, or begin a new one."""
        self._effort, self._fullness = effort(self.setup.thinking), None
        if self.setup.resume is None:
            await self._begin()
        elif not await self._resume(self.setup.resume):
            await self._begin(self.forgotten(self.setup.resume))

    async def take_turn(self, prompt: str) -> Turn:
        """Send a prompt to Claude Code, and return the turn when it has ended."""
        live = self._require_session()
        if prompt not in COMMANDS:
            await self._think(live, DEEPEST if self._deeper else effort(self.setup.thinking))
            self._deeper = False
        await live.ready()
        collected, self._beside = ClaudeAnswer(), ClaudeAnswer()
        self._collected, self._asked = collected, prompt
        try:
            result = await live.ask(prompt)
        finally:
            self._asked = None
        cost_usd = self._costs.spent(result.total_cost_usd)
        self._estimate.correct(collected.listed, cost_usd)
        return Turn(
            text=collected.text,
            error=failure(result) or (collected.not_compacted if prompt == COMPACT else ""),
            interrupted=was_interrupted(result),
            tools=tuple(collected.tools),
            tokens=tokens(result.usage) + collected.of_agents,
            cost_usd=cost_usd,
            context_pct=await self._measure(live, result, collected),
            full=is_full(result),
            limited_until=collected.limited_until if result.is_error else None,
            compacted=collected.compacted,
        )

    async def interrupt(self) -> None:
        """Interrupt Claude Code's turn, if any; return when it has ended, or after a timeout."""
        if self._live is not None:
            await self._live.interrupt()

    async def close(self) -> None:
        """End Claude Code and all processes that it started."""
        live, self._live = self._live, None
        if live is None:
            await end_all(self._token)
        else:
            await live.leave(lambda: end_all(self._token))

    async def _begin(self, note: str = "") -> None:
        session = str(uuid4())
        self._live = ClaudeSession(
            await self._connect(fresh=session, note=note), self._hear, self.died, self._by_itself
        )
        self._session, self._costs = session, Costs()

    async def _resume(self, session: str) -> bool:
        """Resume the session with this id; return False if it does not exist."""
        try:
            client = await self._connect()
        except AgentDied as death:
            if any(text in str(death) for text in NO_SESSION):
                return False
            raise
        self._live = ClaudeSession(client, self._hear, self.died, self._by_itself)
        self._session, self._costs = session, Costs(await control.total_cost(client))
        return True

    async def _connect(self, fresh: str | None = None, note: str = "") -> ClaudeSDKClient:
        self._words.clear()
        chosen = options(
            self.setup,
            environment=self._environment,
            fresh=fresh,
            note=note,
            hooks=self._hooks(),
            stderr=self._on_stderr,
            asks=self._ask if self.permit is not None else None,
        )
        client = ClaudeSDKClient(chosen)
        try:
            await client.connect()
        except CLINotFoundError as error:
            raise WrongConfiguration(str(error)) from error
        except ProcessError as error:
            raise AgentDied(error.exit_code or UNKNOWN_EXIT, self._last_words(error)) from error
        except Exception as error:
            raise AgentDied(UNKNOWN_EXIT, self._last_words(error)) from error
        await self._greet(client)
        return client

    async def _greet(self, client: ClaudeSDKClient) -> None:
        """Record Claude Code's version; ``WrongConfiguration`` if the program is not logged in."""
        told = await control.greeting(client)
        note_version(self.setup.nick, Found(PROGRAM, told.version or None, tried=TRIED))
        if not told.logged_in:
            await client.disconnect()
            raise WrongConfiguration(f"{self.setup.nick}: {no_login()}")

    async def _hear(self, message: Message) -> None:
        """Process a message of Claude Code: pass on its output, and count its usage."""
        self.touch()
        tasks.note(self.background, message)
        if isinstance(message, AssistantMessage):
            await self._count(message)
        match message:
            case AssistantMessage(parent_tool_use_id=None) if not is_error(message):
                content = normalised(message.content)
                self._collected.take(message, content)
                if content:
                    await self.emit(content, message.model)
            case UserMessage(parent_tool_use_id=None):
                self._collected.told(message)
                if results := tool_results(message):
                    await self.emit(results)
            case SystemMessage(subtype="status", data={"compact_result": "failed", "compact_error": str(why)}):
                self._collected.not_compacted = why
            case SystemMessage(subtype="compact_boundary"):
                self._collected.compacted = True
            case RateLimitEvent(rate_limit_info=limit):
                self.told_quotas(quotas(limit))
                if limit.status == REJECTED:
                    self._collected.limited_until = limit.resets_at
            case ConversationResetMessage():
                self._costs = Costs()
            case ResultMessage(session_id=session) if session:
                self._session = session

    async def _count(self, message: AssistantMessage) -> None:
        """Add the usage of a model call, made in a turn or by a sub-agent between turns."""
        if self._asked is not None:
            used = self._collected.count(message)
            self.used(used, self._estimate.of(self._collected.listed))
        elif message.parent_tool_use_id is not None:
            before = self._beside.of_agents
            self._beside.count(message)
            if self.used_beside(self._beside.of_agents - before) and self._live is not None:
                await self._live.stop_tasks(self.background.agents)
        else:
            used = self._beside.count(message)
            self.used(used, self._estimate.of(self._beside.listed))

    def _by_itself(self, result: ResultMessage | None) -> bool:
        """Handle the start (None) or the result of a turn that Claude Code began itself.

        Returns whether the turn may go on.
        """
        if result is None:
            self._beside = ClaudeAnswer()
            return self.begins_itself()
        cost = self._costs.spent(result.total_cost_usd)
        self.ended_itself(Turn(interrupted=was_interrupted(result), tokens=tokens(result.usage), cost_usd=cost))
        return True

    async def _think(self, live: ClaudeSession, level: EffortLevel | None) -> None:
        if level != self._effort and await control.set_effort(live.client, level):
            self._effort = level

    async def _measure(self, live: ClaudeSession, result: ResultMessage, collected: ClaudeAnswer) -> float | None:
        """Return how much of the context window is in use, in %; None if unknown.

        After a failed turn it is the earlier value. ``live``: the session to ask; ``result``: the end of the turn;
        ``collected``: its output and usage.
        """
        if not failure(result):
            self._fullness = collected.fullness(result)
            if self._fullness is None or self._fullness >= WORTH_MEASURING:
                self._fullness = await control.fullness(live.client) or self._fullness
        return self._fullness

    async def _ask(
        self, tool: str, given: dict[str, Any], _context: ToolPermissionContext
    ) -> PermissionResultAllow | PermissionResultDeny:
        """Return whether Claude may call a tool, decided by asking people.

        ``given``: the tool's input.
        """
        self.touch()
        if self.permit is None:
            return PermissionResultDeny(message=user_questions.NOBODY)
        if tool == ASKS_PEOPLE:
            answered, why = await user_questions.answered(given, self.consult)
            self.touch()
            return PermissionResultDeny(message=why) if why else PermissionResultAllow(updated_input=answered)
        permit = await self.permit(tool, given)
        self.touch()
        if permit.allowed:
            return PermissionResultAllow()
        return PermissionResultDeny(message=permit.why, interrupt=permit.interrupt)

    def _hooks(self) -> dict[HookEvent, list[HookMatcher]]:
        before, after = HookMatcher(hooks=[self._before_tool]), HookMatcher(hooks=[self._after_tool])
        prompt = HookMatcher(hooks=[self._before_prompt], timeout=KEEPING)
        return {
            "UserPromptSubmit": [prompt],
            user_questions.ELICITATION: [HookMatcher(hooks=[self._elicit], timeout=user_questions.PATIENCE)],
            "PreToolUse": [before],
            "PostToolUse": [after],
            "PostToolUseFailure": [after],
        }

    async def _before_prompt(self, given: HookInput, _id: str | None, _context: HookContext) -> HookJSONOutput:
        """Block a prompt that culture did not send, after storing it as news for the agent.

        Claude Code calls this hook before a prompt reaches the model. News is a report of background work that has
        ended.
        """
        self.touch()
        text, number = str(given.get("prompt", "")), str(given.get("prompt_id", ""))
        if self._asked is not None and is_same_prompt(text, self._asked):
            self._asked_id = number
            return {}
        if self.on_news is None:
            return {}
        await self.keep(tasks.news(self.background, text, number))
        goes_on = self._asked is not None and number == self._asked_id
        if not goes_on and self._live is not None:
            self._live.refused()
        return {"decision": "block", "reason": REFUSED}

    async def _elicit(self, form: HookInput, _id: str | None, _context: HookContext) -> HookJSONOutput:
        """Pass a form of an MCP server to people, and return their answer to Claude Code."""
        self.touch()
        output = await user_questions.elicited(form, self.consult)
        self.touch()
        return output

    async def _before_tool(self, _input: HookInput, _id: str | None, _context: HookContext) -> HookJSONOutput:
        self.touch()
        return {}

    async def _after_tool(self, used: HookInput, _id: str | None, _context: HookContext) -> HookJSONOutput:
        self.touch()
        # A whisper is for the agent, not for one that it has sent off.
        if self.take_whispers is None or "agent_id" in used or not (whispers := self.take_whispers()):
            return {}
        said = "\n".join(whispers)
        if used["hook_event_name"] == "PostToolUse":
            return {"hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": said}}
        return {"hookSpecificOutput": {"hookEventName": "PostToolUseFailure", "additionalContext": said}}

    def _require_session(self) -> ClaudeSession:
        if self._live is None:
            raise AgentDied(UNKNOWN_EXIT, "Claude Code is not running")
        return self._live

    def _on_stderr(self, line: str) -> None:
        self._words.append(line)
        log.debug("%s: %s", self.setup.nick, line)

    def _last_words(self, error: Exception) -> str:
        return "\n".join([str(error), *self._words])


AgentRunner = ClaudeRunner
