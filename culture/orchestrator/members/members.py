"""A member's session, context fill and usage, as the orchestrator sees them."""

import asyncio
import time
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum, StrEnum
from typing import Any
from uuid import uuid4

from culture.clients.shared.errands import WAITING, WORKING
from culture.clients.shared.ipc import MARGIN
from culture.orchestrator.errors import NoAnswer
from culture.orchestrator.members.daemons import DaemonAway, MemberDaemons

WARN_PCT = 80


class Fill(Enum):
    """Action that the fill of a member's context requires."""

    ROOM = "nothing"
    WARN = "the member wraps up what it is at"
    SHIFT = "the member hands over"


class ContextTracker:
    """How full a member's context is: as the backend reports, else computed from input tokens."""

    def __init__(self, window_size: int, threshold_pct: float = 90, warn_pct: float = WARN_PCT) -> None:
        self.window_size = window_size
        self.threshold_pct = threshold_pct
        self.warn_pct = min(warn_pct, threshold_pct)
        self.input_tokens = 0
        self._reported_pct: float | None = None

    def add(self, input_tokens: int, pct: float | None = None) -> None:
        """Add a turn's input tokens; ``pct`` is the fill in % that the backend reports, if any."""
        self.input_tokens += input_tokens
        if pct is not None:
            self._reported_pct = pct

    def reset(self) -> None:
        """Record that the session is a new one, whose context is empty."""
        self.input_tokens = 0
        self._reported_pct = None

    @property
    def pct(self) -> float:
        """Return how full the context is, in %."""
        return self._reported_pct if self._reported_pct is not None else 100 * self.input_tokens / self.window_size

    @property
    def fill(self) -> Fill:
        """Return what the fill of the context calls for: a shift change, a warning, or nothing."""
        if self.pct >= self.threshold_pct:
            return Fill.SHIFT
        return Fill.WARN if self.pct >= self.warn_pct else Fill.ROOM


SEND_TIMEOUT = 300.0
_AGAIN = 0.2
"""Seconds before asking again for a daemon that is away."""


@dataclass(frozen=True, slots=True)
class PromptResult:
    """How a prompt ended; ``outcome`` is ``done``, ``interrupted``, ``aborted`` or ``failed``."""

    outcome: str
    text: str = ""
    tokens: int = 0
    cost_usd: float = 0.0
    context_pct: float | None = None
    session: str | None = None


@dataclass
class AgentSession:
    """A member's conversation with its model, which the member's daemon holds."""

    name: str
    model: str
    system_prompt: str
    """Text appended to the system prompt of the agent's own program."""
    cwd: str
    mcp_servers: dict[str, dict[str, Any]]
    context_tracker: ContextTracker
    daemons: MemberDaemons = field(repr=False)
    nick: str = ""
    """The nick; the name if empty."""
    session_id: str | None = None
    tokens: int = 0
    cost_usd: float = 0.0
    last_active: float | None = None
    """Time of the agent's last activity, in seconds since 1970."""
    _alive: bool = True
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock, repr=False)
    _send_timeout: float = SEND_TIMEOUT

    def __post_init__(self) -> None:
        self.nick = self.nick or self.name

    @property
    def is_alive(self) -> bool:
        """Return whether the agent was not yet ended by ``kill``."""
        return self._alive

    async def send(self, text: str, key: str | None = None, place: str | None = None) -> PromptResult:
        """Give the agent a prompt and return the result once the turn is over; one prompt at a time.

        The daemon accepts each ``key`` once: a prompt that is sent again, also by another process or while the daemon
        restarts, is not repeated, and its result is returned. The closing text is posted to the channel ``place``.
        Raises ``NoAnswer`` if the turn does not end in time.
        """
        async with self._lock:
            result = await self._wait_for_end(text, key or str(uuid4()), place)
            self._add_usage(result)
            return result

    async def refresh(self) -> dict[str, Any]:
        """Return the daemon's status, and update session id and context fill from it."""
        status = await self.daemons.call(self.nick, "status")
        if active := status.get("last_active"):
            self.last_active = datetime.fromisoformat(active).timestamp()
        self._set_session(status.get("session"))
        self.context_tracker.add(0, status.get("context_pct"))
        return status

    async def kill(self) -> None:
        """End the agent and its daemon; a prompt under way gets no result."""
        self._alive = False
        await self.daemons.stop(self.nick)

    async def _wait_for_end(self, text: str, key: str, place: str | None) -> PromptResult:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._send_timeout
        fields = {"text": text, "key": key, "wait": True, **({"place": place} if place else {})}
        while self._alive and (remaining := deadline - loop.time()) > 0:
            try:
                answer = await self.daemons.call(self.nick, "prompt", remaining + MARGIN, **fields, timeout=remaining)
            except DaemonAway:
                await asyncio.sleep(min(_AGAIN, remaining))
                continue
            if answer["outcome"] not in (WAITING, WORKING):
                return PromptResult(**{name: value for name, value in answer.items() if name != "key"})
        why = "has not finished within {:g} s" if self._alive else "was ended"
        raise NoAnswer(f"{self.name} {why.format(self._send_timeout)}")

    def _add_usage(self, result: PromptResult) -> None:
        self.last_active = time.time()
        self._set_session(result.session)
        self.tokens += result.tokens
        self.cost_usd += result.cost_usd
        self.context_tracker.add(result.tokens, result.context_pct)

    def _set_session(self, session: str | None) -> None:
        if session is None or session == self.session_id:
            return
        if self.session_id is not None:
            self.context_tracker.reset()
        self.session_id = session


@dataclass
class ManagedAgent:
    """A member while the orchestrator runs: its session, the task it works on, and its role."""

    session: AgentSession
    task_id: str | None
    role: str


_LARGE, _USUAL = 1_000_000, 200_000
_LARGE_VARIANT = "[1m]"
"""Suffix of the name of a model used with the large window."""


class ModelTier(StrEnum):
    """Model families, which differ in the size of their context window."""

    OPUS = "opus"
    SONNET = "sonnet"
    HAIKU = "haiku"
    OTHER = "other"

    @classmethod
    def of(cls, model: str | None) -> "ModelTier":
        """Return the family of a model, recognised in its name; ``OTHER`` for an unknown one."""
        name = (model or "").lower()
        return next((tier for tier in (cls.OPUS, cls.SONNET, cls.HAIKU) if tier.value in name), cls.OTHER)

    @staticmethod
    def context_window(model: str | None) -> int:
        """Return the context window of a model in tokens; the usual size for an unknown model."""
        large = ModelTier.of(model) is ModelTier.OPUS or (model or "").lower().endswith(_LARGE_VARIANT)
        return _LARGE if large else _USUAL
