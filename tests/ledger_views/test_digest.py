"""The digest: what happened, from whatever the ledger and the history have."""

from dataclasses import replace
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from culture.cli.digest import render
from culture.ledger_views.digest import digest, unanswered
from culture.ledger_views.ledger import LedgerFact
from culture.ledger_views.spend import SpendTotal
from culture.protocol.vocabulary import ClientTag
from culture.transport import Message
from tests.ledger_views.made import NONSENSE, NOW, fact, moment

HOUR = 3600.0
SINCE = NOW - timedelta(hours=8)
YOU = "spark-ori"


def said(sender: str, text: str, ago: float, place: str = "#general", **more: object) -> Message:
    at = NOW - timedelta(seconds=ago)
    return replace(Message(place, sender, text, at, msgid=f"{sender}.{ago}"), **more)  # type: ignore[arg-type]


def idle(nick: str, **more: object) -> LedgerFact:
    return fact(nick, "state", "now", {"state": "idle", **more})


SAID = st.lists(
    st.builds(
        said,
        st.sampled_from([YOU, "spark-bee", "thor-mia"]),
        st.sampled_from(["hello", f"@{YOU} look", "@thor-mia yes", "@all"]),
        st.floats(0, 20 * HOUR),
        st.sampled_from(["#general", "#work", "spark-bee"]),
        private=st.booleans(),
    ),
    max_size=12,
)


@given(NONSENSE, SAID)
def test_whatever_is_said_there_is_a_digest_of_it(facts: list[LedgerFact], talk: list[Message]) -> None:
    found = digest(facts, talk, SINCE, NOW, YOU)
    assert all(not each.is_quiet for each in found.agents)
    assert {each.nick for each in found.agents}.isdisjoint(found.quiet)
    assert found.spent.turns == sum(each.spent.turns for each in found.agents)
    assert sum(room.messages for room in found.rooms) == sum(
        each.timestamp >= SINCE and each.channel.startswith("#") and not each.private for each in talk
    )
    assert all(sum(number for _, number in room.senders) == room.messages for room in found.rooms)
    assert [each.is_open for each in found.waiting] == [True] * len(found.waiting)
    stuck = [bool(each.stuck) for each in found.agents]
    assert stuck == sorted(stuck, reverse=True)


@given(SAID)
def test_after_a_word_of_yours_nothing_there_waits_for_you(talk: list[Message]) -> None:
    calls = unanswered(talk, YOU)
    assert all(each.sender != YOU and not each.own for each in calls)
    answers = [said(YOU, "yes", -1, each.channel) for each in calls]
    assert unanswered([*talk, *answers], YOU) == []
    assert unanswered(talk, "") == []


def test_each_agent_has_what_it_did_asked_and_spent() -> None:
    facts = [
        idle("spark-bee"),
        idle("spark-idle"),
        fact("spark-bee", "task", "turn-1", {"began": moment(HOUR), "ended": moment(3000), "outcome": "done"}),
        fact("spark-bee", "task", "turn-2", {"began": moment(900), "ended": moment(800), "outcome": "done"}),
        fact("spark-bee", "task", "turn-3", {"began": moment(100), "ended": moment(90), "outcome": "aborted"}),
        fact(
            "spark-bee", "task", "turn-0", {"began": moment(30 * HOUR), "ended": moment(29 * HOUR), "outcome": "done"}
        ),
        fact("spark-bee", "spend", "turn-2", {"ended": moment(800), "tokens": 5, "cost_usd": 0.5}),
        fact("spark-bee", "spend", "turn-0", {"ended": moment(29 * HOUR), "tokens": 50, "cost_usd": 5}),
        fact("spark-bee", "question", "q1", {"open": False, "asked": moment(900), "by": YOU, "outcome": "ANSWERED"}),
    ]
    found = digest(facts, [], SINCE, NOW, YOU)
    (bee,) = found.agents
    assert bee.outcomes == {"done": 2, "aborted": 1} and bee.spent == SpendTotal(5, 0.5, 1) == found.spent
    assert [each.by for each in bee.questions] == [YOU] and not bee.stuck and found.quiet == ("spark-idle",)


def test_where_agents_are_stuck_comes_first() -> None:
    facts = [
        idle("spark-busy"),
        fact("spark-busy", "spend", "turn-1", {"ended": moment(60), "cost_usd": 9}),
        fact("spark-spiral", "state", "now", {"state": "paused", "since": moment(60)}),
        fact("spark-spiral", "alert", "agent_spiraling-1", {"event": "agent_spiraling", "text": "round and round"}, 60),
        fact("spark-held", "state", "now", {"state": "paused", "since": moment(60)}),
        fact("spark-parked", "state", "now", {"state": "parked"}),
        fact("spark-asks", "state", "now", {"state": "asking"}),
        fact("spark-asks", "question", "q7", {"open": True, "asked": moment(9 * HOUR), "text": "now?"}, 9 * HOUR),
        fact("spark-asks", "question", "q8", {"open": True, "asked": moment(60), "text": "and now?"}, 60),
        idle("spark-poor", **{"cost-usd": 2, "budget-usd": 2}),
        idle("spark-gone"),
        fact("spark-long", "state", "now", {"state": "working", "since": moment(3 * HOUR), "task": "all of it"}),
        idle("spark-broken"),
        fact("spark-broken", "alert", "agent_error-1", {"event": "agent_error", "text": "crashed"}, 60),
        fact("spark-broken", "alert", "agent_error-2", {"event": "agent_error", "text": "crashed again"}, 30),
    ]
    nicks = ("busy", "spiral", "held", "parked", "asks", "poor", "long", "broken")
    here = {f"spark-{name}" for name in nicks}
    found = digest(facts, [], SINCE, NOW, YOU, here)
    stuck = {each.nick.removeprefix("spark-"): [(why.reason, why.text) for why in each.stuck] for each in found.stuck}
    assert stuck == {
        "spiral": [("spiralling", "round and round")],
        "held": [("paused", "is paused")],
        "parked": [("parked", "crashed too often, or cannot start")],
        "asks": [("question", "waits for an answer to q7: now?")],
        "poor": [("budget", "has used up the budget of the day")],
        "gone": [("gone", "is not on the mesh")],
        "long": [("endless", "is at the same task: all of it")],
        "broken": [("errors", "crashed again (and 1 more)")],
    }
    assert found.agents[-1].nick == "spark-busy"
    assert [each.id for each in found.waiting] == ["q7", "q8"]


def test_what_was_said_to_you_waits_until_you_answer() -> None:
    asked = said(YOU, "@spark-bee how far are you?", 500)
    talk = [
        said("thor-mia", f"@{YOU} look", 400),
        said("thor-mia", f"@{YOU} please", 300),
        said("spark-bee", f"{YOU}: nearly there", 450, tags={ClientTag.REPLY.value: asked.msgid}),
        said("thor-mia", "nobody is meant", 200),
        said("spark-bee", "a word alone", 200, "spark-bee", private=True),
        said("spark-dan", f"@{YOU} in the workshop", 400, "#work"),
        said(YOU, "I come", 100, "#work"),
        asked,
    ]
    found = digest([], talk, SINCE, NOW, YOU)
    assert [each.text for each in found.unanswered] == [f"@{YOU} please", "a word alone"]
    assert [each.text for each in digest([], talk, SINCE, NOW, YOU, agent="spark-bee").unanswered] == ["a word alone"]


def test_an_outage_that_is_over_is_told_once_though_both_ends_noticed_it() -> None:
    def up(server: str, peer: str, *outages: object) -> LedgerFact:
        return fact(server, "link", peer, {"state": "linked", "since": moment(30 * HOUR), "outages": list(outages)})

    long_ago = [moment(30 * HOUR), moment(29 * HOUR)]
    facts = [
        up("spark", "thor", long_ago, [moment(900), moment(120)]),
        up("thor", "spark", [moment(840), moment(100)]),
    ]
    [link] = digest(facts, [], SINCE, NOW).broken
    assert link.outages == ((NOW - timedelta(seconds=900), NOW - timedelta(seconds=100)),)
    [line] = [each for each in render(digest(facts, [], SINCE, NOW)).splitlines() if "thor" in each]
    assert "spark – thor: linked since" in line and "; it was down for 13m (" in line
    assert digest([up("spark", "odin", 7, [1, 2], [moment(1), moment(2)], [])], [], SINCE, NOW).broken == ()


def test_links_that_are_down_and_those_that_came_back_are_told() -> None:
    facts = [
        fact("spark", "link", "thor", {"state": "linked", "since": moment(HOUR)}),
        fact("thor", "link", "spark", {"state": "linked", "since": moment(HOUR)}),
        fact("spark", "link", "odin", {"state": "down", "since": moment(30 * HOUR)}),
        fact("spark", "link", "loki", {"state": "linked", "since": moment(30 * HOUR)}),
    ]
    found = digest(facts, [], SINCE, NOW)
    assert [(each.ends, each.is_down) for each in found.broken] == [
        (("odin", "spark"), True),
        (("spark", "thor"), False),
    ]
