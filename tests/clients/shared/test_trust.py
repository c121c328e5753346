"""Who may answer, and when answers decide."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culture.clients.shared.trust import Vote, decide, needed, who_may, why_not
from culture.config.agents import TrustConfig
from culture.protocol.vocabulary import UserClass

AGENTS = ("spark-a", "spark-b", "spark-c")
HUMAN, AGENT, BOT, UNKNOWN = UserClass.HUMAN, UserClass.AGENT, UserClass.BOT, UserClass.UNKNOWN


def vote(nick: str, choice: str, kind: UserClass = AGENT, *, operator: bool = False) -> Vote:
    return Vote(nick, kind, choice, operator=operator)


@pytest.mark.fault("F2", "F3")
@pytest.mark.requirement("J15", "K15", "L14")
@pytest.mark.parametrize(
    ("agents", "kind", "nick", "may"),
    [
        ("never", HUMAN, "spark-ori", True),
        ("never", AGENT, "spark-a", False),
        ("never", AGENT, "spark-ori", False),
        ("never", BOT, "spark-a", False),
        ("never", UNKNOWN, "spark-ori", False),
        ("first", AGENT, "spark-a", True),
        ("first", AGENT, "spark-late", False),
        ("first", UNKNOWN, "spark-a", False),
        ("vote", AGENT, "SPARK-B", True),
        ("vote", BOT, "spark-b", False),
        ("consensus", HUMAN, "spark-late", True),
    ],
)
def test_who_may_answer(agents: str, kind: UserClass, nick: str, may: bool) -> None:
    trust = TrustConfig.model_validate({"agents": agents})
    assert (why_not(trust, kind, nick, AGENTS) is None) is may


@pytest.mark.parametrize(
    ("kind", "account", "may"),
    [(HUMAN, "ori", True), (HUMAN, None, False), (AGENT, "a", False), (UNKNOWN, None, False)],
)
def test_a_rule_may_want_people_who_have_proven_a_login(kind: UserClass, account: str | None, may: bool) -> None:
    refusal = why_not(TrustConfig(humans="confirmed"), kind, "spark-ori", AGENTS, account)
    assert (refusal is None) is may
    if kind is HUMAN and refusal is not None:
        assert "`culture account token`) in ~/.culture/secrets/spark-ori" in refusal
    assert who_may(TrustConfig(humans="confirmed"), AGENTS) == "people who have logged in"


def test_without_a_block_anybody_may() -> None:
    assert all(why_not(None, kind, "spark-x", ()) is None for kind in UserClass)
    verdict = decide(None, [vote("spark-x", "yes", UNKNOWN), vote("spark-ori", "no", HUMAN)], ())
    assert verdict is not None and verdict.choice == "yes"


@pytest.mark.fault("F4")
@pytest.mark.parametrize(
    ("votes", "choice"),
    [
        ([("spark-a", "yes")], None),
        ([("spark-a", "yes"), ("spark-b", "no")], None),
        ([("spark-a", "yes"), ("spark-a", "yes")], None),
        ([("spark-a", "yes"), ("spark-b", "no"), ("spark-c", "yes")], "yes"),
        ([("spark-a", "yes"), ("spark-a", "no"), ("spark-b", "yes")], None),
        ([("spark-a", "yes"), ("spark-a", "no"), ("spark-b", "no")], "no"),
        ([("spark-a", "yes"), ("SPARK-A", "no"), ("spark-b", "no")], "no"),
    ],
)
def test_two_of_three_decide_and_the_last_word_of_each_counts(votes: list[tuple[str, str]], choice: str | None) -> None:
    verdict = decide(TrustConfig(agents="vote"), [vote(*each) for each in votes], AGENTS)
    assert (verdict.choice if verdict else None) == choice


def test_a_quorum_goes_above_the_majority() -> None:
    two = [vote("spark-a", "yes"), vote("spark-b", "yes")]
    assert decide(TrustConfig(agents="vote", quorum=3), two, AGENTS) is None
    assert decide(TrustConfig(agents="vote", quorum=1), two[:1], AGENTS) is not None
    assert needed(TrustConfig(agents="vote"), AGENTS) == "2"


def test_consensus_is_all_and_none_against() -> None:
    trust = TrustConfig(agents="consensus")
    yes = [vote(nick, "yes") for nick in AGENTS]
    assert decide(trust, yes[:2], AGENTS) is None
    verdict = decide(trust, yes, AGENTS)
    assert verdict is not None and verdict.choice == "yes"
    assert decide(trust, [*yes[:2], vote("spark-c", "no")], AGENTS) is None
    stopped = decide(trust, [vote("spark-c", "abort")], AGENTS)
    assert stopped is not None and stopped.choice == "abort"
    assert decide(trust, [], ()) is None


@pytest.mark.requirement("J14")
def test_an_operator_goes_above_a_person_and_a_person_above_agents() -> None:
    trust = TrustConfig(agents="consensus")
    agents = [vote(nick, "yes") for nick in AGENTS]
    person, operator = vote("spark-bob", "yes", HUMAN), vote("spark-ori", "no", HUMAN, operator=True)
    for votes, by in (([*agents, person], "spark-bob"), ([*agents, person, operator], "spark-ori")):
        verdict = decide(trust, votes, AGENTS)
        assert verdict is not None and verdict.by.nick == by
    # An agent that runs the channel is an agent.
    chief = vote("spark-a", "yes", operator=True)
    assert decide(TrustConfig(agents="never"), [chief], AGENTS) is None


@given(
    st.sampled_from(["never", "first", "vote", "consensus"]),
    st.none() | st.integers(1, 5),
    st.lists(st.builds(vote, st.sampled_from(AGENTS), st.sampled_from(["yes", "no", "abort"])), max_size=8),
)
def test_agents_decide_only_what_their_last_words_say(agents: str, quorum: int | None, votes: list[Vote]) -> None:
    trust = TrustConfig.model_validate({"agents": agents, "quorum": quorum})
    verdict = decide(trust, votes, AGENTS)
    latest = {each.nick: each.choice for each in votes}
    if agents == "never":
        assert verdict is None
    elif verdict is not None and agents == "vote":
        assert list(latest.values()).count(verdict.choice) >= (quorum or 2)
    elif verdict is not None and agents == "consensus" and verdict.choice != "abort":
        assert list(latest.values()) == [verdict.choice] * 3
    # Whatever agents said, a person's word is the one.
    decided = decide(trust, [*votes, vote("spark-ori", "no", HUMAN)], AGENTS)
    assert decided is not None and decided.by.nick == "spark-ori"


def test_who_may_is_told_in_a_few_words() -> None:
    assert who_may(None, ()) == "anyone"
    assert who_may(TrustConfig(), AGENTS) == "people"
    assert who_may(TrustConfig(agents="vote"), AGENTS) == "people, or 2 of 3 agents"
