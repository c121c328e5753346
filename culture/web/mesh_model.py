"""The mesh as pages show it: ledger views, presence and last message of each agent.

One ``MeshModel`` serves all requests of the site. Ledger views are computed from the facts that ``LedgerClient`` holds
in memory, and cached until there are new facts of their kinds. Presence (ISON) and last messages (HISTORY) are
requested from the server when a page needs them, at most once in five seconds, however many people look.
"""

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from culture.ledger_views.agents import AgentView, agents
from culture.ledger_views.alerts import AlertView, alerts
from culture.ledger_views.ledger import LedgerFact, online
from culture.ledger_views.links import MeshView, mesh
from culture.ledger_views.questions import QuestionView, questions
from culture.ledger_views.spend import TurnCost, turns
from culture.ledger_views.tasks import TaskView, TurnPurpose, tasks, turn_purposes
from culture.protocol.names import fold, short_name
from culture.protocol.vocabulary import ExtensionVerb, FactKind, WellKnownChannel
from culture.transport import Message, NotSent
from culture.transport.history import parse_results
from culture.web.ledger_client import LedgerClient
from culture.web.page import PageRequest

EVERY = 5.0
"""Seconds between two requests for presence and last messages, at least."""
_RECENT, _MOST_SENDERS = 100, 5_000
_EXCLUDED = (WellKnownChannel.ALERTS.value, WellKnownChannel.ERRORS.value)
Value = TypeVar("Value")


class MeshModel:
    """Agents, questions, alerts, spend, tasks and links, shared by all requests of the web page."""

    def __init__(self, ledger: LedgerClient, every: float = EVERY) -> None:
        self._ledger = ledger
        self._every = every
        self._online: frozenset[str] | None = None
        self._queried: frozenset[str] = frozenset()
        """Folded nicks whose presence was requested last."""
        self._last_messages: dict[str, Message] = {}
        """By folded nick of the sender."""
        self._cursors: dict[str, str] = {}
        """Msgid of the last message read, by folded channel name."""
        self._cache: dict[str, tuple[object, list[Any]]] = {}
        self._refreshed_at: float | None = None
        self._refresh_lock = asyncio.Lock()

    @property
    def server(self) -> str:
        """Short name, in lower case, of the server that the web page is connected to."""
        return fold(short_name(self._ledger.irc.view.server))

    def agents(self) -> list[AgentView]:
        """Return the state of every agent in the ledger, sorted by nick."""
        online = self._online
        return self._cached("agents", lambda facts: agents(facts, online), FactKind.STATE, FactKind.QUESTION)

    def questions(self) -> list[QuestionView]:
        """Return all questions of agents in the ledger, the open ones first."""
        return self._cached("questions", questions, FactKind.QUESTION)

    def alerts(self) -> list[AlertView]:
        """Return all alerts in the ledger, newest first."""
        return self._cached("alerts", alerts, FactKind.ALERT)

    def turns(self) -> list[TurnCost]:
        """Return the cost of every finished turn of all agents, oldest first."""
        return self._cached("turns", turns, FactKind.SPEND)

    def tasks(self) -> list[TaskView]:
        """Return the tasks of all teams in the ledger, the last updated first."""
        return self._cached("tasks", tasks, FactKind.TASK)

    def turn_purposes(self, nick: str) -> list[TurnPurpose]:
        """Return who asked the agent for what in each of its turns, newest turn first."""
        return turn_purposes(self._ledger.facts(FactKind.TASK, nick))

    def mesh(self) -> MeshView:
        """Return the servers of the mesh and their links."""
        return mesh(self._ledger.facts(FactKind.LINK), self.server, datetime.now(UTC))

    @property
    def online(self) -> frozenset[str] | None:
        """Nicks of the agents that are online, in lower case by IRC's rules; None if unknown."""
        return self._online

    def last_message(self, nick: str) -> Message | None:
        """Return the last message that a nick wrote in a public channel, or None."""
        return self._last_messages.get(fold(nick))

    async def refresh(self) -> None:
        """Request presence and last messages of all agents from the server.

        Nothing is requested if that was done a few seconds ago. Without a connection, presence becomes unknown and the
        last messages stay.
        """
        async with self._refresh_lock:
            now, nicks = asyncio.get_running_loop().time(), {fold(agent.nick): agent.nick for agent in self.agents()}
            is_recent = self._refreshed_at is not None and now - self._refreshed_at < self._every
            if is_recent and nicks.keys() <= self._queried:
                return
            self._refreshed_at, self._queried = now, frozenset(nicks)
            try:
                self._online = frozenset(await online(self._ledger.irc, list(nicks.values())))
                for channel in await self._ledger.irc.list_channels():
                    if fold(channel) not in _EXCLUDED:
                        await self._read_new_messages(channel)
            except NotSent:
                self._online = None

    def _cached(self, name: str, build: Callable[[Sequence[LedgerFact]], list[Value]], *kinds: str) -> list[Value]:
        """Return the cached value with the key ``name``, computed anew if it is outdated.

        It is outdated if there are new facts of ``kinds``, or if presence has changed. ``build`` computes the value
        from the facts of these kinds.
        """
        version = (tuple(self._ledger.changes[kind] for kind in kinds), self._online)
        entry = self._cache.get(name)
        if entry is None or entry[0] != version:
            facts = [fact for kind in kinds for fact in self._ledger.facts(kind)]
            entry = self._cache[name] = (version, build(facts))
        views: list[Value] = entry[1]
        return views

    async def _read_new_messages(self, channel: str) -> None:
        cursor = self._cursors.get(fold(channel))
        query = ("SINCE", channel, cursor) if cursor else ("RECENT", channel, str(_RECENT))
        lines = await self._ledger.irc.request(ExtensionVerb.HISTORY, *query)
        if any(line.verb == "FAIL" for line in lines):
            self._cursors.pop(fold(channel), None)
        if len(self._last_messages) > _MOST_SENDERS:
            self._last_messages.clear()
        for message in parse_results(lines):
            self._cursors[fold(channel)] = message.msgid
            last = self._last_messages.get(fold(message.sender))
            if last is None or last.timestamp <= message.timestamp:
                self._last_messages[fold(message.sender)] = message


def mesh_model(page: PageRequest) -> MeshModel:
    """Return the ``MeshModel`` that all requests of the web page share; create it on first use."""
    state = page.request.app.state
    if not hasattr(state, "mesh_model"):
        state.mesh_model = MeshModel(page.web.ledger)
    model: MeshModel = state.mesh_model
    return model
