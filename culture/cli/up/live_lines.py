"""What happens as lines that a person can follow, however many agents there are."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from culture.cli.agents.questions import span
from culture.cli.agents.report_table import plain
from culture.clients.shared.questions.posting import PREFIX
from culture.ledger_views.agents import AgentView
from culture.ledger_views.alerts import AlertView
from culture.ledger_views.questions import QuestionView
from culture.protocol.names import fold
from culture.protocol.vocabulary import AgentState, ClientTag, UserClass
from culture.transport import Message

EVERY = 10.0
"""So many seconds lie between two lines of activity of one agent; what comes sooner is one line, later."""
_UNTOLD = timedelta(seconds=2)
"""By so much the ledger is behind the rooms; nobody need be told."""
_LEDGER = 4.0
"""So many seconds what asks in a room waits for the ledger, which says how it is answered."""
_COMPARED = 80
_BEGIN = datetime.min.replace(tzinfo=UTC)
_REMEMBERED = 500
_TOLD_BETTER = ("agent_complete", "agent_question")
"""What states and questions tell as well."""
_LONGEST = 300
_AGENTS = (UserClass.AGENT, UserClass.BOT)

Paint = Callable[[str, str], str]
"""A text in a colour, where there are colours."""


@dataclass
class _Lane:
    """The activity of one agent."""

    shown_at: float = float("-inf")
    waiting: "tuple[datetime, str] | None" = None
    more: int = 0


@dataclass
class Screen:
    """Turns what is heard and what the ledger says into lines; ``clock`` is in seconds.

    A person's words, what is said to a person, questions and alerts are shown at once; what agents do and say among
    themselves is activity. The times on the screen never go back: what is shown late says when it was.
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
        """Somebody has said something."""
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
        """What the ledger says now, each thing once."""
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
        """Lines that have waited for long enough."""
        now = self.clock()
        late = [message for since, message in self._asking if now - since >= _LEDGER]
        self._asking = [each for each in self._asking if each[1] not in late]
        for message in late:  # of an agent without a ledger
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
        """A line with its time; one that comes after later ones has the time of those, and its own in brackets."""
        late, self._latest = self._latest - at > _UNTOLD, max(self._latest, at)
        notes = [f"at {_clock(at)}"] * late + [f"and {more} more"] * bool(more)
        noted = f"  {self.paint('(' + ', '.join(notes) + ')', 'dim')}" if notes else ""
        return f"{self.paint(_clock(self._latest), 'dim')} {text}{noted}"

    def _did(self, agent: AgentView) -> Iterator[str]:
        known, state = self._states.get(fold(agent.nick)), (agent.state, agent.task)
        if known == state:
            return
        self._states[fold(agent.nick)] = state
        if known is None and agent.state == AgentState.IDLE and not agent.task:
            return  # that it is here is known
        task = f": {_short(agent.task)}" if agent.task else ""
        text = self.paint(f"{plain(agent.nick)} is {plain(agent.state)}{task}", "dim")
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
            within = f" (within {span(left)})" if left else ""
            text = f"{question.nick} asks{where}{within}: {question.text or own or 'something in a closed room'}"
            yield self._line(question.asked, self.paint(_short(text), "yellow"))
            first, *others = map(plain, question.options or ("YOUR ANSWER",))
            instead = f"  (or {', '.join(others)})" if others else ""
            command = f"culture answer {plain(question.nick)} {question.id} {first}"
            yield f"         answer it there, or type: {command}{instead}"
        elif before is not None:
            verdict = f" ({question.verdict})" if question.verdict else ""
            by = f" by {plain(question.by)}{verdict}" if question.by else ""
            text = f"{plain(question.nick)}'s {question.id} is {plain(question.outcome)}{by}"
            yield self._line(question.updated, text)

    def _is_for_a_person(self, message: Message, us: str) -> bool:
        called = message.private or fold(us) in fold(message.text)
        tags = (message.tags.get(tag.value) for tag in (ClientTag.REPLY, ClientTag.CAUSE))
        return called or any(msgid in self._by_people for msgid in tags if msgid)

    def _words(self, message: Message) -> str:
        place = "to you" if message.private and not message.own else message.channel
        return f"{place} <{self._name(message)}> {_short(message.text)}"

    def _name(self, message: Message) -> str:
        return self.paint(plain(message.sender), "cyan" if message.kind in _AGENTS else "green")


def _is_of(message: Message, question: QuestionView) -> bool:
    """Whether this is how the question was asked; of one in private the ledger has no words."""
    if fold(message.sender) != fold(question.nick):
        return False
    asked = " ".join(question.text.split())[:_COMPARED]
    return asked in " ".join(message.text.split()) if asked else message.private


def _clock(at: datetime) -> str:
    return at.astimezone().strftime("%H:%M:%S")


def _short(text: str) -> str:
    first, *further = text.strip().splitlines() or [""]
    return plain("  ".join([first, *(line.strip() for line in further)]), _LONGEST)
