"""Summary of what happened in some time, from ledger facts and messages, without a model.

Used by ``culture digest`` and the web page. ``digest`` is a pure function; :mod:`culture.ledger_views.digest_query`
fetches its input. An agent is *stuck* for one of nine reasons (see ``_stuck``); a message is *unanswered* if it
addresses the reader and the reader has written nothing since, in that channel or to its sender.
"""

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
from culture.ledger_views.tasks import TurnPurpose, turn_purposes
from culture.protocol.mentions import mentions
from culture.protocol.names import fold, is_channel
from culture.protocol.vocabulary import AgentState, ClientTag, FactKind
from culture.transport import Message

LONG = timedelta(hours=1)
"""A question that is open for longer counts as a reason for being stuck."""
_LONG_TASK = timedelta(hours=2)
_WHOLE_BUDGET = 100.0
NOTHING = SpendTotal()


@dataclass(frozen=True, slots=True)
class Stuck:
    """One reason why an agent makes no progress: a keyword, a sentence, and when it began."""

    reason: str
    """One word: paused, spiralling, parked, crashed, endless, gone, question, budget or errors."""
    text: str
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class AgentDigest:
    """Turns, questions, cost and alerts of one agent in a digest's period, and why it is stuck."""

    nick: str
    server: str
    state: str
    purposes: tuple[TurnPurpose, ...] = ()
    """The purposes of its turns, newest first."""
    questions: tuple[QuestionView, ...] = ()
    """Its questions, the open ones first."""
    spent: SpendTotal = NOTHING
    alerts: tuple[AlertView, ...] = ()
    """Its alerts, newest first."""
    stuck: tuple[Stuck, ...] = ()

    @property
    def outcomes(self) -> dict[str, int]:
        """Number of the agent's turns by outcome, the most frequent outcome first.

        A turn that has not ended has the outcome ``at work``.
        """
        return dict(Counter(each.outcome or "at work" for each in self.purposes).most_common())

    @property
    def is_quiet(self) -> bool:
        """Whether the digest has no turn, question, cost, alert or problem of the agent."""
        return not (self.purposes or self.questions or self.spent.turns or self.alerts or self.stuck)


@dataclass(frozen=True, slots=True)
class ChannelActivity:
    """Number of messages in a channel, in total and of each sender, the most active first."""

    name: str
    messages: int
    senders: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class LinkOutage:
    """A link that is down now, or was down within the period of the digest."""

    ends: tuple[str, str]
    state: str
    since: datetime | None
    """When the current state began."""
    outages: tuple[tuple[datetime, datetime], ...] = ()
    """Start and end of outages that ended within the time of the digest."""

    @property
    def is_down(self) -> bool:
        """Whether the link is down now."""
        return self.state == DOWN


@dataclass(frozen=True, slots=True)
class DigestView:
    """Activity of agents, people and links between two times, as ``culture digest`` shows it."""

    since: datetime
    until: datetime
    agents: tuple[AgentDigest, ...]
    """Agents that did something: those that are stuck first, then by cost."""
    quiet: tuple[str, ...]
    """Nicks of the agents that did nothing."""
    waiting: tuple[QuestionView, ...]
    """All open questions, oldest first, including those asked before ``since``."""
    rooms: tuple[ChannelActivity, ...]
    unanswered: tuple[Message, ...]
    """Messages to the reader without an answer, oldest first."""
    broken: tuple[LinkOutage, ...]
    spent: SpendTotal

    @property
    def stuck(self) -> tuple[AgentDigest, ...]:
        """The agents in the digest that make no progress."""
        return tuple(each for each in self.agents if each.stuck)


def digest(
    facts: Iterable[LedgerFact],
    messages: Iterable[Message],
    since: datetime,
    until: datetime,
    reader: str = "",
    online: Collection[str] | None = None,
    agent: str = "",
) -> DigestView:
    """Return the digest of what happened between two times, for ``reader``.

    ``facts``: of any kind. ``reader``: nick of the person whose unanswered messages are listed. ``online``: the
    connected nicks, in lower case by IRC's rules, None if unknown. ``agent``: nick of the only agent to include, empty
    for all.
    """
    relevant = [fact for fact in facts if not agent or fold(fact.nick) == fold(agent) or fact.kind == FactKind.LINK]
    recent = [each for each in messages if since <= each.timestamp <= until]
    everyone = [_agent_digest(each, relevant, since, until) for each in agents(relevant, online)]
    active = [each for each in everyone if not each.is_quiet]
    return DigestView(
        since=since,
        until=until,
        agents=tuple(sorted(active, key=_order)),
        quiet=tuple(each.nick for each in everyone if each.is_quiet),
        waiting=tuple(each for each in questions(relevant) if each.is_open),
        rooms=() if agent else _rooms(recent),
        unanswered=tuple(each for each in unanswered(recent, reader) if not agent or fold(each.sender) == fold(agent)),
        broken=() if agent else tuple(_broken(mesh(relevant).links, since)),
        spent=total(each.spent for each in everyone),
    )


def unanswered(messages: Sequence[Message], reader: str) -> list[Message]:
    """Return the messages to the nick ``reader`` that are without an answer, oldest first.

    Of each sender in each channel only the last one is returned. A message counts as answered if the reader wrote later
    in that channel or to its sender. A reply to one of the reader's own messages needs no answer.
    """
    if not reader:
        return []
    ordered = sorted(messages, key=lambda each: each.timestamp)
    own = [each for each in ordered if _is_own(each, reader)]
    last_written = {fold(each.channel): each.timestamp for each in own}
    own_ids = {each.msgid for each in own}
    pending: dict[tuple[str, str], Message] = {}
    for each in ordered:
        places = fold(each.channel), fold(each.sender)
        is_answered = any(place in last_written and last_written[place] >= each.timestamp for place in places)
        is_answer = any(each.tags.get(tag.value) in own_ids for tag in (ClientTag.REPLY, ClientTag.CAUSE))
        if _addresses(each, reader) and not is_answered and not is_answer:
            pending[places] = each
    return sorted(pending.values(), key=lambda each: each.timestamp)


def _is_own(message: Message, reader: str) -> bool:
    return message.own or fold(message.sender) == fold(reader)


def _addresses(message: Message, reader: str) -> bool:
    if message.notice or _is_own(message, reader):
        return False
    return message.private or fold(reader) in map(fold, message.mentions) or bool(mentions(message.text, [reader]))


def _rooms(messages: Iterable[Message]) -> tuple[ChannelActivity, ...]:
    by_room: dict[str, list[Message]] = {}
    for each in messages:
        if is_channel(each.channel) and not each.private:
            by_room.setdefault(fold(each.channel), []).append(each)
    rooms = [
        ChannelActivity(in_room[0].channel, len(in_room), tuple(Counter(each.sender for each in in_room).most_common()))
        for in_room in by_room.values()
    ]
    return tuple(sorted(rooms, key=lambda room: (-room.messages, fold(room.name))))


def _agent_digest(agent: AgentView, facts: Sequence[LedgerFact], since: datetime, until: datetime) -> AgentDigest:
    own = [fact for fact in facts if fold(fact.nick) == fold(agent.nick)]
    recent_alerts = tuple(each for each in alerts(own, since) if each.at <= until)
    recent_questions = tuple(each for each in questions(own) if each.is_open or since <= each.updated <= until)
    purposes = tuple(each for each in turn_purposes(own) if _is_within(each, agent, since, until))
    spent = total(by_agent([each for each in turns(own) if each.at <= until], since).values())
    stuck = tuple(_stuck(agent, recent_questions, recent_alerts, until))
    return AgentDigest(agent.nick, agent.server, agent.state, purposes, recent_questions, spent, recent_alerts, stuck)


def _is_within(turn: TurnPurpose, agent: AgentView, since: datetime, until: datetime) -> bool:
    """Whether a turn of ``agent`` overlaps the time from ``since`` to ``until``.

    A turn without an end that began before ``since`` counts only if the agent still works.
    """
    if turn.ended is not None:
        return since <= turn.ended and turn.began <= until
    return since <= turn.began <= until or (
        agent.state in (AgentState.WORKING, AgentState.ASKING) and turn.began < since
    )


def _stuck(
    agent: AgentView, questions: Iterable[QuestionView], alerts: Sequence[AlertView], now: datetime
) -> Iterable[Stuck]:
    spiral = next((each for each in alerts if each.event == "agent_spiraling"), None)
    match agent.state:
        case AgentState.PAUSED if spiral is not None:
            yield Stuck("spiralling", spiral.text or "got nowhere, and waits for a person", agent.since)
        case AgentState.PAUSED:
            yield Stuck("paused", "is paused", agent.since)
        case AgentState.PARKED:
            yield Stuck("parked", "crashed too often, or cannot start", agent.since)
        case AgentState.CRASHED:
            yield Stuck("crashed", "has crashed", agent.since)
        case AgentState.WORKING if agent.since is not None and now - agent.since > _LONG_TASK:
            yield Stuck("endless", f"is at the same task: {agent.task or 'in private'}", agent.since)
    if agent.state != STOPPED and not agent.is_online:
        yield Stuck("gone", "is not on the mesh", agent.updated)
    for each in questions:
        if each.is_open and now - each.asked > LONG:
            yield Stuck("question", f"waits for an answer to {each.id}: {each.text or 'asked in private'}", each.asked)
    if agent.budget_pct is not None and agent.budget_pct >= _WHOLE_BUDGET:
        yield Stuck("budget", "has used up the budget of the day")
    errors = [each for each in alerts if each.gravity == "error"]
    if errors:
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        yield Stuck("errors", f"{errors[0].text or errors[0].event}{more}", errors[0].at)


def _broken(links: Iterable[LinkView], since: datetime) -> Iterable[LinkOutage]:
    for link in links:
        began = max((side.since for side in link.sides if side.since is not None), default=None)
        recent = tuple(outage for outage in link.outages if outage[1] >= since)
        if link.state == DOWN or recent or (began is not None and began >= since):
            yield LinkOutage(link.ends, link.state, began, recent)


def _order(agent: AgentDigest) -> tuple[bool, float, int, int, str]:
    return not agent.stuck, -agent.spent.cost_usd, -agent.spent.tokens, -agent.spent.turns, fold(agent.nick)
