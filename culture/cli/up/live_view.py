"""The live view of `culture up`: prints messages, questions, alerts and activity of agents.

It joins the rooms as the person, and reads the ledger every second. Messages of people, messages to the person,
questions and alerts are printed at once. The activity of agents is limited to one line per agent in EVERY seconds.
"""

import asyncio
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import typer

from culture.cli.agents.irc_session import IrcPerson, connected
from culture.cli.agents.questions import format_span
from culture.cli.output import is_coloured, one_line
from culture.clients.shared.questions.posting import PREFIX
from culture.ledger_views.agents import AgentView, agents
from culture.ledger_views.alerts import AlertView, alerts
from culture.ledger_views.ledger import facts
from culture.ledger_views.questions import QuestionView, questions
from culture.protocol.names import fold
from culture.protocol.vocabulary import AgentState, ClientTag, FactKind, UserClass
from culture.transport import IRCTransport, Message, NotSent

EVERY = 10.0
"""Seconds between two lines of activity of one agent; events in between are combined into one line."""
_UNTOLD = timedelta(seconds=2)
"""Delay of the ledger behind the rooms that is not worth mentioning."""
_LEDGER = 4.0
"""Seconds that a question in a room waits for its entry in the ledger, which tells how to answer it."""
_COMPARED = 80
_BEGIN = datetime.min.replace(tzinfo=UTC)
_REMEMBERED = 500
_TOLD_BETTER = ("agent_complete", "agent_question")
"""Alerts that states and questions show better."""
_LONGEST = 300
_AGENTS = (UserClass.AGENT, UserClass.BOT)

Paint = Callable[[str, str], str]
"""Function that colours a text, if there are colours."""


@dataclass
class _Lane:
    """One agent's activity lines: when the last was printed, which waits, how many are left out."""

    shown_at: float = float("-inf")
    waiting: "tuple[datetime, str] | None" = None
    more: int = 0


@dataclass
class Screen:
    """Turns messages and ledger facts into the lines that `culture up` prints.

    ``clock`` returns seconds. The times at the beginning of lines never go back: a line that is printed late also has
    the time of its event.
    """

    clock: Callable[[], float]
    paint: Paint = lambda text, colour: text
    _lanes: dict[str, _Lane] = field(default_factory=dict)
    _states: dict[str, tuple[str, str]] = field(default_factory=dict)
    _questions: dict[tuple[str, str], QuestionView] = field(default_factory=dict)
    _asking: list[tuple[float, Message]] = field(default_factory=list)
    _alerts: "deque[tuple[str, str]]" = field(default_factory=lambda: deque(maxlen=_REMEMBERED))
    _latest: datetime = _BEGIN
    _by_people: "deque[str]" = field(default_factory=lambda: deque(maxlen=_REMEMBERED))

    def said(self, message: Message, us: str) -> Iterator[str]:
        """Yield the lines to print for a received message; ``us``: the nick of this connection."""
        if message.kind is UserClass.HUMAN or message.own:
            self._by_people.append(message.msgid)
        if message.kind in _AGENTS and message.text.startswith(PREFIX):
            if not any(each.is_open and _is_of(message, each) for each in self._questions.values()):
                self._asking.append((self.clock(), message))
            return
        text = self._words(message)
        if message.kind in _AGENTS and not self._is_for_a_person(message, us):
            yield from self._activity(message.sender, message.timestamp, text)
        else:
            yield self._line(message.timestamp, text)

    def facts(
        self, agents: Iterable[AgentView], questions: Iterable[QuestionView], alerts: Iterable[AlertView]
    ) -> Iterator[str]:
        """Yield the lines for states, questions and alerts that were not printed before."""
        for question in questions:
            yield from self._asked(question)
        for alert in sorted(alerts, key=lambda each: each.at):
            if alert.event not in _TOLD_BETTER and (alert.nick, alert.key) not in self._alerts:
                self._alerts.append((alert.nick, alert.key))
                text = f"{alert.nick} calls people: {alert.text or alert.event}"
                yield self._line(alert.at, self.paint(_short(text), "red"))
        for agent in agents:
            yield from self._did(agent)

    def due(self) -> Iterator[str]:
        """Yield the lines that have waited long enough since the last line of the same agent."""
        now = self.clock()
        late = [message for since, message in self._asking if now - since >= _LEDGER]
        self._asking = [each for each in self._asking if each[1] not in late]
        for message in late:  # from an agent without a ledger
            yield self._line(message.timestamp, self._words(message))
        ready = [lane for lane in self._lanes.values() if lane.waiting and now - lane.shown_at >= EVERY]
        for lane in sorted(ready, key=lambda each: each.waiting or ()):
            if lane.waiting is not None:
                yield self._line(*lane.waiting, lane.more)
                lane.waiting, lane.more, lane.shown_at = None, 0, now

    def _activity(self, nick: str, at: datetime, text: str) -> Iterator[str]:
        lane, now = self._lanes.setdefault(fold(nick), _Lane()), self.clock()
        if now - lane.shown_at >= EVERY and not lane.waiting:
            lane.shown_at = now
            yield self._line(at, text)
        else:
            lane.more += lane.waiting is not None
            lane.waiting = at, text

    def _line(self, at: datetime, text: str, more: int = 0) -> str:
        """Return a line with the time; if it is late, also with the time ``at`` of its event.

        ``more``: number of further events that are left out, which the line mentions.
        """
        late, self._latest = self._latest - at > _UNTOLD, max(self._latest, at)
        notes = [f"at {_clock(at)}"] * late + [f"and {more} more"] * bool(more)
        noted = f"  {self.paint('(' + ', '.join(notes) + ')', 'dim')}" if notes else ""
        return f"{self.paint(_clock(self._latest), 'dim')} {text}{noted}"

    def _did(self, agent: AgentView) -> Iterator[str]:
        before, state = self._states.get(fold(agent.nick)), (agent.state, agent.task)
        if before == state:
            return
        self._states[fold(agent.nick)] = state
        if before is None and agent.state == AgentState.IDLE and not agent.task:
            return  # its arrival is known
        task = f": {_short(agent.task)}" if agent.task else ""
        text = self.paint(f"{one_line(agent.nick)} is {one_line(agent.state)}{task}", "dim")
        yield from self._activity(agent.nick, agent.updated, text)

    def _asked(self, question: QuestionView) -> Iterator[str]:
        key = (question.nick, question.id)
        before, self._questions[key] = self._questions.get(key), question
        if before is not None and before.is_open == question.is_open:
            return
        if question.is_open:
            posted = [message for _, message in self._asking if _is_of(message, question)]
            self._asking = [each for each in self._asking if each[1] not in posted]
            own = next((each.text.removeprefix(PREFIX) for each in posted if each.private), "")
            where = f" in {question.place}" if question.place else ""
            left = question.left(question.updated)
            within = f" (within {format_span(left)})" if left else ""
            text = f"{question.nick} asks{where}{within}: {question.text or own or 'something in a closed room'}"
            yield self._line(question.asked, self.paint(_short(text), "yellow"))
            first, *others = map(one_line, question.options or ("YOUR ANSWER",))
            instead = f"  (or {', '.join(others)})" if others else ""
            command = f"culture answer {one_line(question.nick)} {question.id} {first}"
            yield f"         answer it there, or type: {command}{instead}"
        elif before is not None:
            verdict = f" ({question.verdict})" if question.verdict else ""
            by = f" by {one_line(question.by)}{verdict}" if question.by else ""
            text = f"{one_line(question.nick)}'s {question.id} is {one_line(question.outcome)}{by}"
            yield self._line(question.updated, text)

    def _is_for_a_person(self, message: Message, us: str) -> bool:
        called = message.private or fold(us) in fold(message.text)
        tags = (message.tags.get(tag.value) for tag in (ClientTag.REPLY, ClientTag.CAUSE))
        return called or any(msgid in self._by_people for msgid in tags if msgid)

    def _words(self, message: Message) -> str:
        place = "to you" if message.private and not message.own else message.channel
        return f"{place} <{self._name(message)}> {_short(message.text)}"

    def _name(self, message: Message) -> str:
        return self.paint(one_line(message.sender), "cyan" if message.kind in _AGENTS else "green")


def _is_of(message: Message, question: QuestionView) -> bool:
    """Whether a message is the one with which an agent asked a question.

    A question asked in private has no text in the ledger, so any private message of the agent fits.
    """
    if fold(message.sender) != fold(question.nick):
        return False
    text = " ".join(question.text.split())[:_COMPARED]
    return text in " ".join(message.text.split()) if text else message.private


def _clock(at: datetime) -> str:
    return at.astimezone().strftime("%H:%M:%S")


def _short(text: str) -> str:
    first, *further = text.strip().splitlines() or [""]
    return one_line("  ".join([first, *(line.strip() for line in further)]), _LONGEST)


_LOOK = 1.0
_MOST = "limit=1000"
_BEFORE = timedelta(seconds=5)


async def watch(who: IrcPerson, rooms: Iterable[str], is_up: Callable[[], bool], stop: asyncio.Event) -> None:
    """Print activity on the server until ``stop`` is set or the server is gone.

    ``who``: the person as whom to connect. ``rooms``: channels to join. ``is_up`` returns whether the server still
    runs.
    """
    screen = Screen(asyncio.get_running_loop().time, _painted if is_coloured() else lambda text, colour: text)
    begun = datetime.now(UTC)
    us = who.nick

    def heard(message: Message) -> None:
        if not message.missed or message.timestamp >= begun:
            _show(screen.said(message, us))

    async with connected(who, heard) as transport:
        us = transport.nick
        for room in rooms:
            with suppress(NotSent):
                await transport.join_channel(room)
        since = begun - _BEFORE
        while not stop.is_set() and is_up():
            now = datetime.now(UTC)
            if await _look(transport, screen, since):
                since = now - _BEFORE
            _show(screen.due())
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), _LOOK)


async def _look(transport: IRCTransport, screen: Screen, since: datetime) -> bool:
    """Read the ledger facts since a time and print lines for them; return False if that failed."""
    if not transport.connected:
        return False
    window = f"since={since:%Y-%m-%dT%H:%M:%S.%fZ}"
    kinds = (FactKind.STATE, FactKind.QUESTION, FactKind.ALERT)
    try:
        new = [fact for kind in kinds for fact in await facts(transport, kind, "*", window, _MOST)]
    except (NotSent, TimeoutError):
        return False
    _show(screen.facts(agents(new), questions(new), alerts(new)))
    return True


def _show(lines: Iterable[str]) -> None:
    for line in lines:
        typer.echo(line)
    sys.stdout.flush()


def _painted(text: str, colour: str) -> str:
    return typer.style(text, dim=True) if colour == "dim" else typer.style(text, fg=colour)
