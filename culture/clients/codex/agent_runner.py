"""The runner for Codex: one long-lived process, one thread, one turn at a time."""

import asyncio
import re
from collections.abc import Sequence
from typing import Any

from culture.clients.codex import account, options, user_requests
from culture.clients.codex.answer import (
    LIMITED,
    CodexAnswer,
    CodexUsage,
    failure,
    freed,
    is_full,
    quotas,
    reason,
    result,
)
from culture.clients.codex.app_server import AppServer, AppServerError, Params, with_tools
from culture.clients.codex.conversation import CodexThread
from culture.clients.codex.detect import PROGRAM, TRIED
from culture.clients.codex.options import added
from culture.clients.codex.user_requests import NOBODY
from culture.clients.shared.budget import Quota
from culture.clients.shared.errors import WrongConfiguration
from culture.clients.shared.programs import Found, note_version
from culture.clients.shared.queued import UNKNOWN_EXIT, QueuedRunner
from culture.clients.shared.sandbox.bubblewrap import inside
from culture.clients.shared.turn import CLEAR, COMPACT, AgentDied, Can, FormField, FormReply, Permit, RunnerSetup, Turn
from culture.lib.process.orphans import end_all, tokened

# Errors that mean: there is no thread to resume.
NO_THREAD = ("no rollout found", "invalid session id", "invalid thread id")
# Errors about the user's own settings of Codex.
SETTINGS = re.compile(r"configuration|config\.toml|Model provider")
REFUSED = "[REFUSED] Why your last request was refused is said between the tags that begin with external_irc."


class CodexRunner(QueuedRunner):
    """Runs Codex through its app server."""

    can = frozenset(Can)
    outside = True
    """Whether prompts are sent as messages from outside, not as the user's."""

    def __init__(self, setup: RunnerSetup) -> None:
        super().__init__(setup)
        options.effort(setup.thinking)
        self._environment, self._token = tokened(setup.environment)
        self._thread = options.thread(setup, self._environment)
        self._server: AppServer | None = None
        self._conversation: CodexThread | None = None
        self._efforts: dict[str, list[str]] = {}
        self._deeper = False
        self._late: list[str] = []
        self._whispering: list[asyncio.Task[None]] = []
        self._windows: list[Quota] = []
        self._meter = CodexUsage()
        self._collected = CodexAnswer()
        self._turns: dict[str, CodexAnswer] = {}
        """Output of turns that have not been collected, by id."""
        self._cutting: asyncio.Task[None] | None = None

    @property
    def session_id(self) -> str | None:
        """Return the id of the present thread, to resume it later; None without a thread."""
        return self._conversation.id if self._conversation is not None else None

    def think_deeper(self) -> None:
        """Use the highest reasoning effort for the next prompt that is not a command."""
        self._deeper = True

    async def open(self) -> None:
        """Start Codex's app server; resume the thread named in the agent's setup, or begin one.

        A thread is Codex's word for a session. ``WrongConfiguration`` if Codex has no login or wrong settings,
        ``AgentDied`` if it does not begin.
        """
        program, tools = options.program()
        self._server = server = AppServer(self._hear, self._answer, self.died)
        argv = [str(program), *account.arguments(self._environment), "app-server"]
        self._meter = CodexUsage()
        try:
            environment = with_tools(self._environment, tools)
            await server.start(inside(self.setup.sandbox, argv, environment), self.setup.directory, environment)
            note_version(self.setup.nick, Found(PROGRAM, server.version or None, tried=TRIED))
            await account.log_in(server, self._environment)
            await self._take_up(server)
            self._efforts = await _efforts(server)
        except AppServerError as refusal:
            await self.close()
            raise _unable(refusal) from refusal
        except BaseException:
            await self.close()
            raise

    async def take_turn(self, prompt: str) -> Turn:
        """Send a prompt or a command to Codex, and return the turn when it has ended."""
        server, conversation = self._require_running()
        try:
            if prompt == CLEAR:
                await self._begin(server)
                return Turn()
            if prompt == COMPACT:
                ended = await conversation.compact()
            else:
                late, self._late = self._late, []
                said = "\n".join([*late, prompt])
                ended = await conversation.ask(said, self._effort(conversation), outside=self.outside)
                self._deeper = False
                await self._whispered()
        except AppServerError as refusal:
            return Turn(error=str(refusal), context_pct=self._meter.fullness)
        collected = self._turns.pop(ended["id"], CodexAnswer())
        if ended.get("status") == "interrupted":
            await conversation.end_commands(set(collected.items))
        return self._turn(ended, collected)

    async def interrupt(self) -> None:
        """Interrupt Codex's running turn, if any; return when it has ended, or after a timeout."""
        if self._conversation is not None:
            await self._conversation.interrupt()

    async def close(self) -> None:
        """End Codex and all processes that it started."""
        server, self._server = self._server, None
        whispering, self._whispering = self._whispering, []
        for whisper in whispering:
            whisper.cancel()
        if (cutting := self._cutting) is not None:
            cutting.cancel()
            whispering.append(cutting)
        await asyncio.gather(*whispering, return_exceptions=True)
        if server is not None:
            await server.leave()
        await end_all(self._token)

    async def thread_params(self, server: AppServer, note: str = "") -> Params:
        """Return the parameters of the request that starts or resumes a thread.

        ``server``: Codex's process, which is asked for its settings; ``note`` is appended to the instructions.
        """
        started = options.servers(await self.settings(server), self._environment)
        told = {"developerInstructions": added(self.setup.instructions, note)}
        return {**self._thread, **told, "config": {**self._thread["config"], **started}}

    async def settings(self, server: AppServer) -> Params:
        """Return Codex's effective settings in the agent's folder."""
        read = await server.request("config/read", {"includeLayers": False, "cwd": str(self.setup.directory)})
        return read.get("config") or {}

    async def _take_up(self, server: AppServer) -> None:
        if (resume := self.setup.resume) is None:
            return await self._begin(server)
        try:
            params = await self.thread_params(server)
            opened = await server.request("thread/resume", {**params, "threadId": resume, "excludeTurns": True})
            self._conversation = CodexThread(server, opened)
        except AppServerError as refusal:
            if not str(refusal).startswith(NO_THREAD):
                raise
            await self._begin(server, self.forgotten(resume))

    async def _begin(self, server: AppServer, note: str = "") -> None:
        opened = await server.request("thread/start", await self.thread_params(server, note))
        self._conversation, self._meter = CodexThread(server, opened), CodexUsage()

    def _effort(self, conversation: CodexThread) -> str:
        """Return the reasoning effort of the next turn.

        It is sent with every turn, since Codex keeps the one that was sent last.
        """
        offered = self._efforts.get(conversation.model, [])
        deepest = options.DEEPEST if offered else options.DEEP
        return options.fitting(deepest if self._deeper else options.effort(self.setup.thinking), offered)

    def _turn(self, ended: Params, collected: CodexAnswer) -> Turn:
        return Turn(
            text=collected.text,
            error=failure(ended),
            interrupted=ended.get("status") == "interrupted",
            tools=tuple(collected.tools),
            tokens=collected.tokens,
            context_pct=self._meter.fullness,
            full=is_full(ended),
            limited_until=freed(self._windows) if reason(ended) == LIMITED else None,
            compacted=collected.compacted,
        )

    async def _hear(self, method: str, params: Params) -> None:
        """Process a notification of the app server: pass on output, and count usage."""
        self.touch()
        conversation = self._conversation
        own = conversation is not None and params.get("threadId") == conversation.id
        match method:
            case "thread/tokenUsage/updated":
                self._count(params, conversation if own else None)
            case "account/rateLimits/updated":
                self._windows = quotas(params["rateLimits"]) or self._windows
                self.told_quotas(self._windows)
            case "item/started":
                call = self._collected.begin(params["item"], own=own)
                await self._emit(call if own else None)
            case "item/completed" if own:
                await self._emit(self._collected.end(params["item"]))
                if (outcome := result(params["item"])) is not None:
                    await self._emit(outcome)
                    self._whisper()
            case "turn/started" if own and conversation is not None:
                self._began(conversation, params["turn"]["id"])
                conversation.notice(method, params)
            case "turn/completed" if own and conversation is not None:
                conversation.notice(method, params)
                self._ended(params["turn"])

    def _began(self, conversation: CodexThread, turn: str) -> None:
        """Handle the start of the turn with the id ``turn``.

        A turn that Codex began without a prompt is interrupted if the agent may not work.
        """
        self._meter.begin()
        asked = conversation.is_asked(turn)
        self._collected = self._turns[turn] = CodexAnswer(asked=asked)
        if not asked and not self.begins_itself():
            # A task of its own: the reader must not wait for an answer.
            self._cutting = asyncio.create_task(self._cut(conversation, turn), name="end of a turn of Codex's own")

    async def _cut(self, conversation: CodexThread, turn: str) -> None:
        if conversation.active == turn:
            await conversation.interrupt()

    def _ended(self, ended: Params) -> None:
        collected = self._turns.get(ended["id"])
        if collected is None:
            return
        collected.tokens = self._meter.used
        if not collected.asked:
            self.ended_itself(self._turn(ended, self._turns.pop(ended["id"])))

    def _count(self, params: Params, conversation: CodexThread | None) -> None:
        """Add the tokens that Codex reports for one of its threads.

        ``conversation``: the agent's own thread, None if the report is of another (a sub-agent's). The first report
        of a resumed thread only states its earlier usage.
        """
        usage = params["tokenUsage"]
        earlier = conversation is not None and params.get("turnId") != conversation.active
        self._meter.take(params["threadId"], usage, earlier=earlier)
        if conversation is not None:
            self._meter.measure(usage)
        if not earlier:
            self.used(self._meter.used)

    async def _emit(self, block: dict[str, Any] | None) -> None:
        if block is not None:
            await self.emit([block], self._conversation.model if self._conversation is not None else None)

    def _whisper(self) -> None:
        """Send the supervisor's pending whispers to the agent; called after a tool call."""
        if self.take_whispers is not None and (whispers := self.take_whispers()):
            # A task of its own: the reader must not wait for an answer.
            self._whispering.append(asyncio.create_task(self._deliver("\n".join(whispers)), name="a whisper to Codex"))

    async def _deliver(self, whisper: str) -> None:
        """Add a whisper to the running turn, or to the next prompt if no turn runs."""
        if self._conversation is None or not await self._conversation.steer(whisper):
            self._late.append(whisper)

    async def _whispered(self) -> None:
        """Wait until all whispers of the turn are delivered, or stored for the next prompt."""
        whispering, self._whispering = self._whispering, []
        await asyncio.gather(*whispering)

    async def _answer(self, method: str, params: Params) -> Params | None:
        """Return the response to a request of Codex: a permission, a question or a form.

        ``method`` and ``params`` are those of the request; None if the method is unknown.
        """
        self.touch()
        item = self._collected.items.get(str(params.get("itemId")), {})
        answer, why = await user_requests.answer_request(
            method, params, item, self.setup.directory, self._ask, self._consult
        )
        if why and self._conversation is not None and answer != user_requests.CANCEL:
            # Codex tells the model only that it was refused; the reason is text from IRC.
            await self._conversation.steer(REFUSED, why)
        self.touch()
        return answer

    async def _ask(self, tool: str, given: Any) -> Permit:
        return Permit(False) if self.permit is None else await self.permit(tool, given)

    async def _consult(self, fields: Sequence[FormField]) -> FormReply:
        return FormReply(why=NOBODY) if self.consult is None else await self.consult(fields)

    def _require_running(self) -> tuple[AppServer, CodexThread]:
        if self._server is None or self._conversation is None:
            raise AgentDied(UNKNOWN_EXIT, "Codex is not running")
        return self._server, self._conversation


def _unable(refusal: AppServerError) -> Exception:
    """Return the exception to raise for a failed start.

    An error in Codex's settings is permanent (``WrongConfiguration``), any other is ``AgentDied``.
    """
    if SETTINGS.search(str(refusal)):
        return WrongConfiguration(f"Codex does not understand its settings: {refusal}")
    return AgentDied(UNKNOWN_EXIT, str(refusal))


async def _efforts(server: AppServer) -> dict[str, list[str]]:
    """Return the reasoning efforts that each model supports, by model id."""
    models = (await server.request("model/list", {})).get("data", ())
    return {each["id"]: [level["reasoningEffort"] for level in each["supportedReasoningEfforts"]] for each in models}


AgentRunner = CodexRunner
