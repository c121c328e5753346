"""Supervision of one agent: what its supervisor says becomes whispers, and a call for people when these do not help."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from culture.clients.shared.base import SupervisorBase
from culture.clients.shared.ipc import Whisper
from culture.clients.shared.prompts import PRIVATE
from culture.clients.shared.supervisor import RETRIED, Supervisor
from culture.clients.shared.turn import Turn
from culture.clients.shared.verdicts import Action
from culture.clients.shared.webhook import texts
from culture.clients.shared.whispering import Advice, shown
from culture.config.agents import AlertEvent, SupervisorConfig
from culture.protocol.names import is_channel
from culture.protocol.text import Profile, one_line
from culture.runtime import REAL, Runtime

log = logging.getLogger(__name__)

FINAL = "Still no progress. Escalating to IRC and webhook."


class Ear(Protocol):
    """How a whisper reaches the agent's tools."""

    def whisper(self, whisper_type: str, message: str) -> None:
        """Tell the agent at once or with its next call."""

    def take_whispers(self) -> list[Whisper]:
        """What no call has carried yet; who takes it delivers it."""


class Fire(Protocol):
    """How people are alerted."""

    def __call__(self, event: AlertEvent, text: str, *, place: str | None = None) -> None:
        """Something happened."""


@dataclass(frozen=True, slots=True)
class Given:
    """What an agent works on: its short name, the text that began it, and where that was said."""

    task: str = ""
    text: str = ""
    place: str = ""
    id: str = ""
    """The msgid of the message that began it."""


@dataclass(frozen=True, slots=True)
class Around:
    """What supervision needs of a daemon."""

    ear: Ear
    fire: Fire
    say: Callable[[str, str], None]
    """Says a line somewhere."""
    channel: str
    """The channel for alerts."""
    hold: Callable[[str], None]
    """Gives the agent nothing more until a person says so; why."""
    think_deeper: Callable[[], None]
    """Has the agent's next turn thought over at length."""
    given: Callable[[], Given]
    """The present work, or the last."""
    has_unread: Callable[[], bool]
    """Whether something is unread in the agent's channels."""
    spent: Callable[[int, float], None]
    """Counts what the supervisor's model used."""
    may_spend: Callable[[], bool] = lambda: True
    """Whether anything is left of the agent's budget, which is the supervisor's too."""


class Supervision:
    """One supervisor and its agent. It never ends the agent, touches no file and never speaks as the agent."""

    def __init__(
        self,
        nick: str,
        config: SupervisorConfig,
        supervisor: SupervisorBase | None,
        around: Around,
        *,
        missing: str = "",
        runtime: Runtime = REAL,
    ) -> None:
        self._nick = nick
        self._supervisor = supervisor
        self._around = around
        self._missing = missing
        self._advice = Advice(config.check_in, config.compact_at, runtime.monotonic)
        if supervisor is not None:
            supervisor.on_whisper = self._on_whisper
            supervisor.on_escalation = self._on_escalation
        if isinstance(supervisor, Supervisor):
            supervisor.on_trouble = self._on_trouble
            supervisor.on_spent = around.spent
            supervisor.task = lambda: around.given().text
            supervisor.task_id = lambda: around.given().id

    async def start(self) -> None:
        """Begin to watch; a supervisor that cannot be had is told of, and the agent works without."""
        if self._missing:
            self._on_trouble(self._missing)
        if self._supervisor is not None:
            try:
                await self._supervisor.start()
            except Exception as error:
                log.exception("%s: the supervisor did not start", self._nick)
                self._on_trouble(str(error))

    async def stop(self) -> None:
        """Watch no more."""
        if self._supervisor is not None:
            try:
                await self._supervisor.stop()
            except Exception:
                log.exception("%s: the supervisor failed to stop", self._nick)

    async def again(self) -> None:
        """A person has looked at the agent: it is watched as from the beginning."""
        await self.stop()
        if self._supervisor is not None:
            await self._supervisor.start()

    async def observe(self, turn: dict[str, Any]) -> None:
        """The agent said or did something."""
        if self._supervisor is None:
            return
        self._advise(self._advice.on_channels(self._around.has_unread))
        if self._around.may_spend():
            await self._supervisor.observe(turn)

    def begin(self) -> list[str]:
        """The agent is given something new, which counts as having looked; what it must be told with it."""
        self._advice.read()
        return self.take()

    def read(self) -> None:
        """The agent has read a channel."""
        self._advice.read()

    def ended(self, turn: Turn) -> None:
        """A turn of the agent is over."""
        if self._supervisor is not None and turn.context_pct is not None:
            self._advise(self._advice.on_context(turn.context_pct))

    def take(self) -> list[str]:
        """What the agent has not been told yet, which is delivered then."""
        return shown(self._around.ear.take_whispers())

    def _advise(self, whisper: Whisper | None) -> None:
        if whisper is not None:
            self._around.ear.whisper(*whisper)

    async def _on_whisper(self, message: str, action: str) -> None:
        log.info("%s: the supervisor whispers %s: %s", self._nick, action, message)
        self._around.ear.whisper(action, message)
        if action == Action.THINK_DEEPER:
            self._around.think_deeper()

    async def _on_escalation(self, message: str) -> None:
        log.warning("%s: the supervisor calls people: %s", self._nick, message)
        given, reason = self._around.given(), one_line(message, Profile.WEB)
        task, public = (given.task, reason) if is_channel(given.place) else (PRIVATE, _counted(reason))
        self._around.hold(task)
        self._around.ear.whisper(Action.ESCALATION.value, FINAL)
        self._around.fire("agent_spiraling", texts.spiraling(self._nick, task, public), place=given.place or None)
        self._around.say(self._around.channel, stuck(self._nick, task, public))
        if given.place and not is_channel(given.place):
            self._around.say(given.place, stuck(self._nick, given.task, reason))

    def _on_trouble(self, why: str) -> None:
        log.error("%s has no supervisor: %s", self._nick, why)
        told = one_line(why, Profile.WEB).rstrip(".")
        self._around.fire("agent_error", f"[ERROR] {self._nick} has no supervisor: {told}. The agent goes on.")


def _counted(reason: str) -> str:
    """What may be told in the open of something private."""
    counted = RETRIED.match(reason)
    return counted[0] if counted else "Two whispers have not helped."


def stuck(nick: str, task: str, reason: str) -> str:
    """What people are told, and how they answer."""
    return (
        f'[ESCALATION] Agent {nick} appears stuck on task "{task}". {reason.rstrip().rstrip(".")}. '
        f"Awaiting human guidance. Reply @{nick} resume/abort"
    )
