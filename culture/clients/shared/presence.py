"""What the agent is doing, for all to see: published as metadata and as AWAY, so that every view reads one truth."""

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress

from culture.protocol.vocabulary import AgentState, UserKey
from culture.runtime import REAL, Runtime
from culture.transport import IRCTransport, NotSent

log = logging.getLogger(__name__)

AGAIN = 5.0
"""What a server that is there has not taken is told again after so many seconds."""
_FOR_NOW = frozenset({"RATE_LIMITED", "UNAVAILABLE", "263"})
_UNAVAILABLE = {
    AgentState.PAUSED: "paused",
    AgentState.PARKED: "parked",
    AgentState.CRASHED: "crashed",
}


class Presence:
    """The present facts, sent when they change and again after every reconnect, by one task."""

    def __init__(self, transport: IRCTransport, again: float = AGAIN, *, runtime: Runtime = REAL) -> None:
        self._transport = transport
        self._clock = runtime.utc
        self._again = again
        self._facts: dict[UserKey, str] = {}
        self._away = ""
        self._told: dict[UserKey, str] = {}
        self._told_away = ""
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.state = AgentState.IDLE
        self.then: AgentState | None = None
        """What follows when the present turn is over, where that is decided."""
        self.since = self._clock()

    def start(self) -> None:
        """Begin to publish."""
        self._task = asyncio.create_task(self._publish(), name="presence")

    async def stop(self) -> None:
        """Publish no more."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    def show(self, state: AgentState, task: str = "", why: str = "", then: AgentState | None = None) -> None:
        """The agent is in this state now, and ``then`` in that; ``why`` is for people who call it while it is away."""
        if state is not self.state:
            self.since = self._clock()
        self.state = state
        self._away = f"{_UNAVAILABLE[state]}{f': {why}' if why else ''}" if state in _UNAVAILABLE else ""
        self.then = then
        self.note(
            {
                UserKey.STATE: state.value,
                UserKey.NEXT: then.value if then is not None else "",
                UserKey.TASK: task,
                UserKey.SINCE: f"{self.since:%Y-%m-%dT%H:%M:%SZ}",
            }
        )

    def note(self, facts: Mapping[UserKey, str]) -> None:
        """Further facts; an empty one is taken away."""
        self._facts.update(facts)
        self._changed.set()

    @property
    def facts(self) -> dict[str, str]:
        """All that there is to know, by the words behind the keys' vendor."""
        return {key.word: value for key, value in self._facts.items() if value}

    def again(self) -> None:
        """The server may have forgotten everything."""
        self._told, self._told_away = {}, ""
        self._changed.set()

    async def _publish(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                await self._tell()
            except NotSent as refusal:
                # Without a connection it is told again after the next; a server without metadata never hears it.
                log.debug("not published: %s", refusal)
                if self._transport.connected and _is_passing(refusal):
                    self._tell_later()
            except Exception:
                log.exception("not published")
                self._tell_later()

    def _tell_later(self) -> None:
        asyncio.get_running_loop().call_later(self._again, self._changed.set)

    async def _tell(self) -> None:
        # What is told is what it was before the wait: it may be another by now.
        if (away := self._away) != self._told_away:
            await self._transport.set_away(away)
            self._told_away = away
        for key, value in list(self._facts.items()):
            if self._told.get(key, "") != value:
                await self._set(key, value)
                self._told[key] = value

    async def _set(self, key: UserKey, value: str) -> None:
        """One fact; when the server refuses this very one, others are told all the same."""
        try:
            await self._transport.set_metadata(key.value, value)
        except NotSent as refusal:
            if _is_passing(refusal):
                raise
            log.debug("%s not published: %s", key.value, refusal)


def _is_passing(refusal: NotSent) -> bool:
    """Whether the server may take later what it has not taken now."""
    return not refusal.code or refusal.code in _FOR_NOW
