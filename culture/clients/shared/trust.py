"""Who may answer an agent's question, and when their answers decide it: plain decisions about votes."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from culture.clients.shared.answers import ABORT
from culture.config.agents import TrustConfig
from culture.protocol.names import fold
from culture.protocol.vocabulary import UserClass


@dataclass(frozen=True, slots=True)
class Vote:
    """One answer by one who may give it; of several by the same the last counts."""

    nick: str
    kind: UserClass
    choice: str
    account: str | None = None
    operator: bool = False
    msgid: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The question is decided, by this vote in the end."""

    choice: str
    by: Vote


PEOPLE = TrustConfig(agents="never")
_LOG_IN = (
    "only people who have logged in may answer, and you came in without a password or token. Answer on the web page, "
    "log in with your client (SASL), or have `culture answer` log in: a token (`culture account token`)"
)


def rules(trust: TrustConfig | None, tool: str) -> TrustConfig | None:
    """The rules for a question: whoever gives leave for a tool runs code as the agent, so without any people decide."""
    return PEOPLE if trust is None and tool else trust


def is_confirmed(kind: UserClass, account: str | None) -> bool:
    """Whether a person has proven a login; a message has an account only where the server vouches for that."""
    return kind is UserClass.HUMAN and account is not None


def why_not(
    trust: TrustConfig | None, kind: UserClass, nick: str, electorate: Collection[str], account: str | None = None
) -> str | None:
    """Why somebody's answer does not count; None when it does."""
    if trust is None:
        return None
    if kind is UserClass.HUMAN:
        is_enough = trust.humans == "always" or is_confirmed(kind, account)
        return None if is_enough else f"{_LOG_IN} in ~/.culture/secrets/{nick}"
    if kind is not UserClass.AGENT and kind is not UserClass.BOT:
        return "only people who are logged in may answer, and nobody here knows that you are one"
    if trust.agents == "never":
        return "only people may answer"
    if kind is UserClass.BOT:
        return "only people may answer, and agents with an account of class agent: you are a bot"
    if fold(nick) not in map(fold, electorate):
        return "only the agents that were in the channel when it was asked may answer"
    return None


def who_may(trust: TrustConfig | None, electorate: Collection[str]) -> str:
    """Who may answer, in a few words for people."""
    if trust is None:
        return "anyone"
    people = "people" if trust.humans == "always" else "people who have logged in"
    if trust.agents == "never":
        return people
    among = f" of {len(electorate)}"
    how = {
        "first": f"the first{among} agents",
        "vote": f"{_quorum(trust, electorate)}{among} agents",
        "consensus": f"all{among} agents",
    }
    return f"{people}, or {how[trust.agents]}"


def needed(trust: TrustConfig | None, electorate: Collection[str]) -> str:
    """How many agents it takes to decide, as they are told."""
    if trust is None or trust.agents in ("never", "first"):
        return "1"
    return str(len(electorate) if trust.agents == "consensus" else _quorum(trust, electorate))


def decide(trust: TrustConfig | None, votes: Sequence[Vote], electorate: Collection[str]) -> Verdict | None:
    """What the votes, in the order in which they came, decide; None as long as it is open.

    A person's word decides alone, an operator's above another's, and agents' votes count as the policy says.
    """
    if trust is None:
        return _first(votes)
    people = [vote for vote in votes if vote.kind is UserClass.HUMAN]
    if people:
        return _first([vote for vote in people if vote.operator]) or _first(people)
    agents = [vote for vote in votes if vote.kind is UserClass.AGENT]
    if trust.agents == "first":
        return _first(agents)
    latest = {fold(vote.nick): vote for vote in agents}
    if trust.agents == "vote":
        return _majority(list(latest.values()), _quorum(trust, electorate))
    if trust.agents == "consensus":
        return _consensus(list(latest.values()), len(electorate))
    return None


def _quorum(trust: TrustConfig, electorate: Collection[str]) -> int:
    """A strict majority, unless the rules name a number."""
    return trust.quorum or len(electorate) // 2 + 1


def _first(votes: Sequence[Vote]) -> Verdict | None:
    return Verdict(votes[0].choice, votes[0]) if votes else None


def _majority(votes: Sequence[Vote], needed: int) -> Verdict | None:
    for vote in votes:
        alike = [other for other in votes if other.choice == vote.choice]
        if len(alike) >= needed:
            return Verdict(vote.choice, alike[-1])
    return None


def _consensus(votes: Sequence[Vote], electorate: int) -> Verdict | None:
    """All of one mind; one who wants to abort is reason enough to do so."""
    for vote in votes:
        if vote.choice == ABORT:
            return Verdict(ABORT, vote)
    if votes and len(votes) >= electorate and len({vote.choice for vote in votes}) == 1:
        return Verdict(votes[-1].choice, votes[-1])
    return None
