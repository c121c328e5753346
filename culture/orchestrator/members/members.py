"""The handle on each member, and what a member has used."""

import asyncio
import time
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum, StrEnum
from typing import Any, Protocol
from uuid import uuid4

from culture.clients.shared.errands import WAITING, WORKING
from culture.clients.shared.ipc import MARGIN
from culture.orchestrator.errors import NoAnswer
from culture.orchestrator.members.daemons import Away

WARN_PCT = 80


class Fill(Enum):
    """What is to be done because of it."""

    ROOM = "nothing"
    WARN = "the member wraps up what it is at"
    SHIFT = "the member hands over"


class ContextTracker:
    """The backend's own figure where it gives one; else what was read so far, against the window of the model."""

    def __init__(self, window_size: int, threshold_pct: float = 90, warn_pct: float = WARN_PCT) -> None:
        self.window_size = window_size
        self.threshold_pct = threshold_pct
        self.warn_pct = min(warn_pct, threshold_pct)
        self.input_tokens = 0
        self._told: float | None = None

    def add(self, input_tokens: int, pct: float | None = None) -> None:
        """A turn is over: what was read in it, and how full its backend says the context is."""
        self.input_tokens += input_tokens
        if pct is not None:
            self._told = pct

    def renew(self) -> None:
        """A new session begins, with nothing in it."""
        self.input_tokens = 0
        self._told = None

    @property
    def pct(self) -> float:
        """How full it is."""
        return self._told if self._told is not None else 100 * self.input_tokens / self.window_size

    @property
    def fill(self) -> Fill:
        """What is to be done."""
        if self.pct >= self.threshold_pct:
            return Fill.SHIFT
        return Fill.WARN if self.pct >= self.warn_pct else Fill.ROOM


SEND_TIMEOUT = 300.0
_AGAIN = 0.2  # so long after its daemon has gone, it is asked whether it is there again


class Daemons(Protocol):
    """What a session needs of the members' daemons."""

    async def stop(self, nick: str) -> None:
        """End one."""

    async def call(self, nick: str, verb: str, patience: float | None = None, **fields: Any) -> dict[str, Any]:
        """Ask one."""


@dataclass(frozen=True, slots=True)
class PromptResult:
    """How a prompt ended: ``outcome`` is ``done``, ``interrupted``, ``aborted`` or ``failed``."""

    outcome: str
    text: str = ""
    tokens: int = 0
    cost_usd: float = 0.0
    context_pct: float | None = None
    session: str | None = None


@dataclass
class AgentSession:
    """A member's agent. Its daemon keeps the conversation: each prompt goes on with the session there is."""

    name: str
    model: str
    system_prompt: str
    """What is appended to the preset of the agent's own program."""
    cwd: str
    mcp_servers: dict[str, dict[str, Any]]
    context_tracker: ContextTracker
    daemons: Daemons = field(repr=False)
    nick: str = ""
    """The nick, where it is not the name."""
    session_id: str | None = None
    tokens: int = 0
    cost_usd: float = 0.0
    last_active: float | None = None
    """When the agent last said or did something, in seconds since 1970."""
    _alive: bool = True
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock, repr=False)
    _send_timeout: float = SEND_TIMEOUT

    def __post_init__(self) -> None:
        self.nick = self.nick or self.name

    @property
    def is_alive(self) -> bool:
        """Whether it was not ended."""
        return self._alive

    async def send(self, text: str, key: str | None = None, place: str | None = None) -> PromptResult:
        """Give the agent a prompt and wait until its turn is over; one at a time. NoAnswer says why there is no end.

        A prompt with a ``key`` is given once: sent again, also by another process, it is only waited for. That its
        daemon restarts meanwhile is no matter. The closing text is posted to the channel ``place``.
        """
        async with self._lock:
            sent = await self._finished(text, key or str(uuid4()), place)
            self._note(sent)
            return sent

    async def look(self) -> dict[str, Any]:
        """What its daemon knows of it; its session and figures are taken from there."""
        status = await self.daemons.call(self.nick, "status")
        if active := status.get("last_active"):
            self.last_active = datetime.fromisoformat(active).timestamp()
        self._in_session(status.get("session"))
        self.context_tracker.add(0, status.get("context_pct"))
        return status

    async def kill(self) -> None:
        """End the agent and its daemon; what is being sent has no answer."""
        self._alive = False
        await self.daemons.stop(self.nick)

    async def _finished(self, text: str, key: str, place: str | None) -> PromptResult:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._send_timeout
        fields = {"text": text, "key": key, "wait": True, **({"place": place} if place else {})}
        while self._alive and (left := deadline - loop.time()) > 0:
            try:
                told = await self.daemons.call(self.nick, "prompt", left + MARGIN, **fields, timeout=left)
            except Away:
                await asyncio.sleep(min(_AGAIN, left))
                continue
            if told["outcome"] not in (WAITING, WORKING):
                return PromptResult(**{name: value for name, value in told.items() if name != "key"})
        why = "has not finished within {:g} s" if self._alive else "was ended"
        raise NoAnswer(f"{self.name} {why.format(self._send_timeout)}")

    def _note(self, sent: PromptResult) -> None:
        self.last_active = time.time()
        self._in_session(sent.session)
        self.tokens += sent.tokens
        self.cost_usd += sent.cost_usd
        self.context_tracker.add(sent.tokens, sent.context_pct)

    def _in_session(self, session: str | None) -> None:
        if session is None or session == self.session_id:
            return
        if self.session_id is not None:
            self.context_tracker.renew()
        self.session_id = session


@dataclass
class ManagedAgent:
    """A member as the team has it: its session, the task it works on, and its role there."""

    session: AgentSession
    task_id: str | None
    role: str


_LARGE, _USUAL = 1_000_000, 200_000
_LARGE_VARIANT = "[1m]"
"""The end of the name of a model that is used with the large window."""


class ModelTier(StrEnum):
    """The families of models that differ in what fits into them."""

    OPUS = "opus"
    SONNET = "sonnet"
    HAIKU = "haiku"
    OTHER = "other"

    @classmethod
    def of(cls, model: str | None) -> "ModelTier":
        """The family of a model, by its name."""
        name = (model or "").lower()
        return next((tier for tier in (cls.OPUS, cls.SONNET, cls.HAIKU) if tier.value in name), cls.OTHER)

    @staticmethod
    def context_window(model: str | None) -> int:
        """How many tokens a session with a model may hold; of a model that is not known, as many as usual."""
        large = ModelTier.of(model) is ModelTier.OPUS or (model or "").lower().endswith(_LARGE_VARIANT)
        return _LARGE if large else _USUAL
