"""What happened while somebody was away, from the ledger and the history: facts without a model, for every view."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from culture.ledger_views.agents import STOPPED, AgentView, agents
from culture.ledger_views.alerts import AlertView, alerts
from culture.ledger_views.ledger import LedgerFact
from culture.ledger_views.links import DOWN, LinkView, mesh
from culture.ledger_views.questions import QuestionView, questions
from culture.ledger_views.spend import SpendTotal, by_agent, total, turns
from culture.ledger_views.tasks import TurnPurpose, errands
from culture.protocol.mentions import mentions
from culture.protocol.names import fold, is_channel
from culture.protocol.vocabulary import AgentState, ClientTag, FactKind
from culture.transport import Message

LONG = timedelta(hours=1)
"""A question that is open for longer keeps its agent from working."""
_ENDLESS = timedelta(hours=2)
_ALL = 100.0
NOTHING = SpendTotal()


@dataclass(frozen=True, slots=True)
class Stuck:
    """Why an agent does not get on, and since when."""

    why: str
    """One word: paused, spiralling, parked, crashed, endless, gone, question, budget or errors."""
    text: str
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Deeds:
    """What one agent did, asked, spent, and where it is stuck."""

    nick: str
    server: str
    state: str
    errands: tuple[TurnPurpose, ...] = ()
    """What its turns were for, the latest first."""
    asked: tuple[QuestionView, ...] = ()
    """The open ones first."""
    spent: SpendTotal = NOTHING
    alerts: tuple[AlertView, ...] = ()
    """The latest first."""
    stuck: tuple[Stuck, ...] = ()

    @property
    def outcomes(self) -> dict[str, int]:
        """How its turns ended, the most frequent first; ``at work`` for one that has not."""
        return dict(Counter(each.outcome or "at work" for each in self.errands).most_common())

    @property
    def is_quiet(self) -> bool:
        """There is nothing to tell of it."""
        return not (self.errands or self.asked or self.spent.turns or self.alerts or self.stuck)


@dataclass(frozen=True, slots=True)
class Room:
    """How much was said in a channel, and by whom, the most talkative first."""

    name: str
    said: int
    by: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class LinkOutage:
    """A link that is not there, or was made again: it was down until then."""

    ends: tuple[str, str]
    state: str
    since: datetime | None
    """Since when it is as it is."""
    outages: tuple[tuple[datetime, datetime], ...] = ()
    """From when to when it was down before, as far as it ended within the time of the digest."""

    @property
    def is_down(self) -> bool:
        """Whether it is down now."""
        return self.state == DOWN


@dataclass(frozen=True, slots=True)
class DigestView:
    """What happened between two moments."""

    since: datetime
    until: datetime
    deeds: tuple[Deeds, ...]
    """Who is stuck first, then who spent most; those of whom there is nothing to tell are left out."""
    quiet: tuple[str, ...]
    """The nicks of these."""
    waiting: tuple[QuestionView, ...]
    """All questions that are open, the oldest first, also those from before."""
    rooms: tuple[Room, ...]
    calls: tuple[Message, ...]
    """What was said to you, and you have not answered; the oldest first."""
    broken: tuple[LinkOutage, ...]
    spent: SpendTotal

    @property
    def stuck(self) -> tuple[Deeds, ...]:
        """Those who do not get on."""
        return tuple(each for each in self.deeds if each.stuck)


def digest(
    facts: Iterable[LedgerFact],
    said: Iterable[Message],
    since: datetime,
    until: datetime,
    you: str = "",
    here: Collection[str] | None = None,
    agent: str = "",
) -> DigestView:
    """Put it together; ``here`` are the folded nicks on the mesh, and with ``agent`` it is about that one alone."""
    kept = [fact for fact in facts if not agent or fold(fact.nick) == fold(agent) or fact.kind == FactKind.LINK]
    talk = [each for each in said if since <= each.timestamp <= until]
    everyone = [_deeds(each, kept, since, until) for each in agents(kept, here)]
    told = [each for each in everyone if not each.is_quiet]
    return DigestView(
        since=since,
        until=until,
        deeds=tuple(sorted(told, key=_order)),
        quiet=tuple(each.nick for each in everyone if each.is_quiet),
        waiting=tuple(each for each in questions(kept) if each.is_open),
        rooms=() if agent else _rooms(talk),
        calls=tuple(each for each in unanswered(talk, you) if not agent or fold(each.sender) == fold(agent)),
        broken=() if agent else tuple(_broken(mesh(kept).links, since)),
        spent=total(each.spent for each in everyone),
    )


def unanswered(said: Sequence[Message], you: str) -> list[Message]:
    """What calls you without being an answer to you, and was followed by no word of yours there or to who said it.

    Of each who called you in a place it is the last call, the oldest first.
    """
    if not you:
        return []
    ordered = sorted(said, key=lambda each: each.timestamp)
    yours = [each for each in ordered if _is_yours(each, you)]
    spoken = {fold(each.channel): each.timestamp for each in yours}
    known = {each.msgid for each in yours}
    calls: dict[tuple[str, str], Message] = {}
    for each in ordered:
        places = fold(each.channel), fold(each.sender)
        is_answered = any(place in spoken and spoken[place] >= each.timestamp for place in places)
        is_answer = any(each.tags.get(tag.value) in known for tag in (ClientTag.REPLY, ClientTag.CAUSE))
        if _calls(each, you) and not is_answered and not is_answer:
            calls[places] = each
    return sorted(calls.values(), key=lambda each: each.timestamp)


def _is_yours(message: Message, you: str) -> bool:
    return message.own or fold(message.sender) == fold(you)


def _calls(message: Message, you: str) -> bool:
    if message.notice or _is_yours(message, you):
        return False
    return message.private or fold(you) in map(fold, message.mentions) or bool(mentions(message.text, [you]))


def _rooms(said: Iterable[Message]) -> tuple[Room, ...]:
    rooms: dict[str, list[Message]] = {}
    for each in said:
        if is_channel(each.channel) and not each.private:
            rooms.setdefault(fold(each.channel), []).append(each)
    found = [
        Room(talk[0].channel, len(talk), tuple(Counter(each.sender for each in talk).most_common()))
        for talk in rooms.values()
    ]
    return tuple(sorted(found, key=lambda room: (-room.said, fold(room.name))))


def _deeds(agent: AgentView, facts: Sequence[LedgerFact], since: datetime, until: datetime) -> Deeds:
    own = [fact for fact in facts if fold(fact.nick) == fold(agent.nick)]
    calls = tuple(each for each in alerts(own, since) if each.at <= until)
    asked = tuple(each for each in questions(own) if each.is_open or since <= each.told <= until)
    done = tuple(each for each in errands(own) if _is_within(each, agent, since, until))
    spent = total(by_agent([each for each in turns(own) if each.at <= until], since).values())
    stuck = tuple(_stuck(agent, asked, calls, until))
    return Deeds(agent.nick, agent.server, agent.state, done, asked, spent, calls, stuck)


def _is_within(errand: TurnPurpose, agent: AgentView, since: datetime, until: datetime) -> bool:
    """A turn that was cut off by a crash has no end, and is none that goes on."""
    if errand.ended is not None:
        return since <= errand.ended and errand.began <= until
    return since <= errand.began <= until or (
        agent.state in (AgentState.WORKING, AgentState.ASKING) and errand.began < since
    )


def _stuck(
    agent: AgentView, asked: Iterable[QuestionView], calls: Sequence[AlertView], now: datetime
) -> Iterable[Stuck]:
    spiral = next((each for each in calls if each.event == "agent_spiraling"), None)
    match agent.state:
        case AgentState.PAUSED if spiral is not None:
            yield Stuck("spiralling", spiral.text or "got nowhere, and waits for a person", agent.since)
        case AgentState.PAUSED:
            yield Stuck("paused", "is paused", agent.since)
        case AgentState.PARKED:
            yield Stuck("parked", "crashed too often, or cannot start", agent.since)
        case AgentState.CRASHED:
            yield Stuck("crashed", "has crashed", agent.since)
        case AgentState.WORKING if agent.since is not None and now - agent.since > _ENDLESS:
            yield Stuck("endless", f"is at the same task: {agent.task or 'in private'}", agent.since)
    if agent.state != STOPPED and not agent.is_here:
        yield Stuck("gone", "is not on the mesh", agent.told)
    for each in asked:
        if each.is_open and now - each.asked > LONG:
            yield Stuck("question", f"waits for an answer to {each.id}: {each.text or 'asked in private'}", each.asked)
    if agent.budget_pct is not None and agent.budget_pct >= _ALL:
        yield Stuck("budget", "has used up the budget of the day")
    errors = [each for each in calls if each.gravity == "error"]
    if errors:
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        yield Stuck("errors", f"{errors[0].text or errors[0].event}{more}", errors[0].at)


def _broken(links: Iterable[LinkView], since: datetime) -> Iterable[LinkOutage]:
    for link in links:
        began = max((side.since for side in link.sides if side.since is not None), default=None)
        over = tuple(outage for outage in link.outages if outage[1] >= since)
        if link.state == DOWN or over or (began is not None and began >= since):
            yield LinkOutage(link.ends, link.state, began, over)


def _order(deeds: Deeds) -> tuple[bool, float, int, int, str]:
    return not deeds.stuck, -deeds.spent.cost_usd, -deeds.spent.tokens, -deeds.spent.turns, fold(deeds.nick)
