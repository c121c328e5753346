"""The supervisor: looks at an agent's last turns now and then, and has a model judge whether to whisper."""

import asyncio
import logging
import re
from abc import abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from culture.clients.shared.base import SupervisorBase
from culture.clients.shared.ladder import Escalate, Ladder, Step, Whisper
from culture.clients.shared.sandbox.bubblewrap import Sandbox
from culture.clients.shared.turn import Turn
from culture.clients.shared.verdicts import Verdict, parse
from culture.clients.shared.window import Window
from culture.lib.process.orphans import new_token
from culture.protocol.vocabulary import Environment
from culture.runtime import REAL, Runtime

log = logging.getLogger(__name__)

PROMPT = Path(__file__).with_name("supervisor.txt").read_text(encoding="utf-8").rstrip("\n")
"""The system prompt, as the founding document gives it."""
FURTHER = "Watch for also DEGRADATION: Tone or quality getting worse, facts, files or results made up"
SYSTEM_PROMPT = f"{PROMPT}\n{FURTHER}"
"""What a backend gives its model to judge turns."""
RETRIED = re.compile(r"Retried same approach \d+ times\.")
"""How the reason for calling people begins where it can be counted."""
DEPARTURE = 5.0
"""How long a judge that is not wanted any more may take to let go."""


class NoJudgement(Exception):
    """The model could not be asked; the text says why."""


@dataclass(frozen=True, slots=True)
class SupervisorSetup:
    """What a supervisor is made from."""

    nick: str
    directory: Path
    model: str | None = None
    thinking: str = "medium"
    window_size: int = 20
    eval_interval: int = 5
    escalation_threshold: int = 3
    timeout: float = 60.0
    """How long a judgement may take."""
    options: Mapping[str, object] = field(default_factory=dict)
    """The fields of the configuration that only this backend understands."""
    system_prompt: str = SYSTEM_PROMPT
    """What its model is told to be; another one where something else is to be judged than an agent's turns."""
    sandbox: Sandbox | None = None
    """Where its processes are started; None is no sandbox."""
    runtime: Runtime = REAL
    token: str = field(default_factory=new_token)
    """By which whatever a judgement starts is known; on disk before that, as whoever asks may be killed."""


class Supervisor(SupervisorBase):
    """Window, ladder and verdicts; a backend writes ``judge``. Its agent never waits for it."""

    on_trouble: Callable[[str], None] | None = None
    """Told once what keeps it from judging; the agent goes on."""
    on_spent: Callable[[int, float], None] | None = None
    """Told the tokens and the dollars of every judgement that cost some."""
    task: Callable[[], str] = staticmethod(lambda: "")
    """The text that began the agent's present work."""
    task_id: Callable[[], str] = staticmethod(lambda: "")
    """Tells two tasks with the same text apart."""

    def __init__(self, setup: SupervisorSetup) -> None:
        self.setup = setup
        self.environment = {Environment.TOKEN.value: setup.token}
        """What the processes of a judgement have beside the variables of who asks for it."""
        self.failures = 0
        """How often there was no verdict."""
        self._clock = setup.runtime.monotonic
        self._window = Window(setup.window_size)
        self._ladder = Ladder(setup.escalation_threshold)
        self._since = 0
        self._evaluating: asyncio.Task[None] | None = None
        self._running = False
        self._complained = False

    @abstractmethod
    async def judge(self, prompt: str) -> str:
        """Have the model answer under ``setup.system_prompt``; NoJudgement or any other error when it cannot."""

    def answered(self, turn: Turn) -> str:
        """What a turn of a judge says, when it has been counted; NoJudgement when it failed."""
        if self.on_spent is not None:
            self.on_spent(turn.tokens, turn.cost_usd)
        if turn.error:
            raise NoJudgement(turn.error)
        return turn.text

    async def start(self) -> None:
        """Begin to watch, knowing nothing yet; also after people were called, when they have had a look."""
        self._window.clear()
        self._ladder.again()
        self._since = 0
        self._running = True

    async def stop(self) -> None:
        """Judge no more."""
        self._running = False
        if self._evaluating is not None and self._evaluating is not asyncio.current_task():
            self._evaluating.cancel()
            await asyncio.wait([self._evaluating])
            # One that had not begun yet could not do so itself.
            self._evaluating = None

    async def observe(self, turn: dict[str, Any]) -> None:
        """Take note of a turn. Every few of them are judged meanwhile; what comes during that is not counted."""
        if not self._running or not self._window.add(turn, self._clock(), self.task(), self.task_id()):
            return
        if self._ladder.escalated or self._evaluating is not None:
            return
        self._since += 1
        if self._since >= self.setup.eval_interval:
            self._evaluating = asyncio.create_task(self._evaluate(), name=f"supervisor of {self.setup.nick}")

    async def rest(self) -> None:
        """Wait until nothing is being judged."""
        if self._evaluating is not None:
            await asyncio.wait([self._evaluating])

    async def _evaluate(self) -> None:
        try:
            verdict = await self._judged(self._window.prompt())
            step = self._ladder.climb(verdict) if verdict is not None else None
            if step is not None and self._running:
                await self._take(step)
        except Exception:
            log.exception("%s: the supervisor's word was not passed on", self.setup.nick)
        finally:
            self._since, self._evaluating = 0, None

    async def _judged(self, prompt: str) -> Verdict | None:
        try:
            answer = await self._asked(prompt)
        except TimeoutError:
            self._complain(f"no verdict within {self.setup.timeout:g} s")
        except NoJudgement as error:
            self._complain(str(error))
        except Exception as error:
            self._complain(f"{type(error).__name__}: {error}")
        else:
            verdict = parse(answer)
            if verdict is None:
                self._complain(f"an answer that is no verdict: {answer[:80]!r}")
            return verdict
        return None

    async def _asked(self, prompt: str) -> str:
        """The model's answer; a judge that hangs is left behind."""
        judging = asyncio.create_task(self.judge(prompt), name=f"judge of {self.setup.nick}")
        judging.add_done_callback(_let_go)
        try:
            await asyncio.wait([judging], timeout=self.setup.timeout)
            if not judging.done():
                raise TimeoutError
            return judging.result()
        finally:
            if not judging.done():
                judging.cancel()
                with suppress(asyncio.CancelledError):
                    await asyncio.wait([judging], timeout=DEPARTURE)

    async def _take(self, step: Step) -> None:
        match step:
            case Whisper(action, message):
                self._window.whispered(f"{action} {message}")
                if self.on_whisper is not None:
                    await self.on_whisper(message, action.value)
            case Escalate(message):
                if self.on_escalation is not None:
                    await self.on_escalation(self._reason(message))

    def _reason(self, message: str) -> str:
        """Why people are called, with how often the agent did the same where that can be counted."""
        times = self._window.retries()
        known = times is None or f"{times} times" in message
        return message if known else f"Retried same approach {times} times. {message}"

    def _complain(self, why: str) -> None:
        self.failures += 1
        log.warning("%s: the supervisor gave no verdict: %s", self.setup.nick, why)
        if not self._complained and self.on_trouble is not None:
            self._complained = True
            self.on_trouble(why)


def _let_go(judging: asyncio.Task[str]) -> None:
    """What a judge that was left behind still has to say is heard by nobody."""
    if not judging.cancelled():
        judging.exception()
