"""The mesh as the pages show it: the values of the ledger, who is there, and what was said last."""

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
from culture.ledger_views.tasks import TaskView, TurnPurpose, errands, tasks
from culture.protocol.names import fold, short_name
from culture.protocol.vocabulary import ExtensionVerb, FactKind, WellKnownChannel
from culture.transport import Message, NotSent
from culture.transport.history import parse_results
from culture.web.ledger_client import LedgerClient
from culture.web.page import PageRequest

EVERY = 5.0
"""Who is there, and what was said last, is asked at most so often."""
_MOST, _MOST_WORDS = 100, 5_000
_NO_TALK = (WellKnownChannel.ALERTS.value, WellKnownChannel.ERRORS.value)
Value = TypeVar("Value")


class MeshModel:
    """What one page knows of the mesh, for all who look at it."""

    def __init__(self, ledger: LedgerClient, every: float = EVERY) -> None:
        self._ledger = ledger
        self._every = every
        self._here: frozenset[str] | None = None
        self._sought: frozenset[str] = frozenset()
        """Those of whom it was asked whether they are there."""
        self._words: dict[str, Message] = {}
        self._read: dict[str, str] = {}
        """The id of the last message that is known of each channel."""
        self._values: dict[str, tuple[object, list[Any]]] = {}
        self._looked: float | None = None
        self._turn = asyncio.Lock()

    @property
    def server(self) -> str:
        """The server that is asked, by the first label of its name."""
        return fold(short_name(self._ledger.irc.view.server))

    def agents(self) -> list[AgentView]:
        """All agents, by nick."""
        here = self._here
        return self._known("agents", lambda facts: agents(facts, here), FactKind.STATE, FactKind.QUESTION)

    def questions(self) -> list[QuestionView]:
        """Those that wait, then those that are closed."""
        return self._known("questions", questions, FactKind.QUESTION)

    def alerts(self) -> list[AlertView]:
        """All alerts, the latest first."""
        return self._known("alerts", alerts, FactKind.ALERT)

    def turns(self) -> list[TurnCost]:
        """What was spent, the oldest first."""
        return self._known("turns", turns, FactKind.SPEND)

    def tasks(self) -> list[TaskView]:
        """The tasks of teams."""
        return self._known("tasks", tasks, FactKind.TASK)

    def errands(self, nick: str) -> list[TurnPurpose]:
        """What the turns of an agent were for, the latest first."""
        return errands(self._ledger.facts(FactKind.TASK, nick))

    def mesh(self) -> MeshView:
        """The servers and their links."""
        return mesh(self._ledger.facts(FactKind.LINK), self.server, datetime.now(UTC))

    @property
    def here(self) -> frozenset[str] | None:
        """The folded nicks of the agents that are there; None while nobody knows."""
        return self._here

    def last_words(self, nick: str) -> Message | None:
        """What somebody parse_results last where everybody may read it."""
        return self._words.get(fold(nick))

    async def look(self) -> None:
        """See who is there and what was said, unless that was just done; without a connection nothing changes."""
        async with self._turn:
            now, nicks = asyncio.get_running_loop().time(), {fold(agent.nick): agent.nick for agent in self.agents()}
            is_recent = self._looked is not None and now - self._looked < self._every
            if is_recent and nicks.keys() <= self._sought:
                return
            self._looked, self._sought = now, frozenset(nicks)
            try:
                self._here = frozenset(await online(self._ledger.irc, list(nicks.values())))
                for channel in await self._ledger.irc.list_channels():
                    if fold(channel) not in _NO_TALK:
                        await self._read_on(channel)
            except NotSent:
                self._here = None

    def _known(self, name: str, made: Callable[[Sequence[LedgerFact]], list[Value]], *kinds: str) -> list[Value]:
        """The values, which are made anew only when there is something new of these kinds."""
        state = (tuple(self._ledger.news[kind] for kind in kinds), self._here)
        known = self._values.get(name)
        if known is None or known[0] != state:
            facts = [fact for kind in kinds for fact in self._ledger.facts(kind)]
            known = self._values[name] = (state, made(facts))
        values: list[Value] = known[1]
        return values

    async def _read_on(self, channel: str) -> None:
        last = self._read.get(fold(channel))
        words = ("SINCE", channel, last) if last else ("RECENT", channel, str(_MOST))
        lines = await self._ledger.irc.request(ExtensionVerb.HISTORY, *words)
        if any(line.verb == "FAIL" for line in lines):
            self._read.pop(fold(channel), None)
        if len(self._words) > _MOST_WORDS:
            self._words.clear()
        for message in parse_results(lines):
            self._read[fold(channel)] = message.msgid
            known = self._words.get(fold(message.sender))
            if known is None or known.timestamp <= message.timestamp:
                self._words[fold(message.sender)] = message


def board_of(page: PageRequest) -> MeshModel:
    """The one that all pages of the site share."""
    state = page.request.app.state
    if not hasattr(state, "board"):
        state.board = MeshModel(page.web.ledger)
    board: MeshModel = state.board
    return board
