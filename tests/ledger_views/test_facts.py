"""What the ledger says as values: right for what our daemons say, and never failing for what anybody says."""

import json
import time
from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings

from culture.ledger_views.agents import agents
from culture.ledger_views.alerts import alerts
from culture.ledger_views.ledger import LedgerFact
from culture.ledger_views.links import mesh
from culture.ledger_views.questions import find, questions
from culture.ledger_views.spend import SpendTotal, TurnCost, by_agent, by_day, midnight, total, turns
from culture.ledger_views.tasks import STAGES, by_stage, tasks, turn_purposes
from tests.ledger_views.made import NONSENSE, NOW, fact, moment


@settings(max_examples=60)
@given(NONSENSE)
def test_whatever_agents_say_there_is_a_picture(said: list[LedgerFact]) -> None:
    for agent in agents(said):
        json.dumps(agent.as_data(), allow_nan=False)
        assert agent.tokens >= 0 and agent.cost_usd >= 0 and agent.state and agent.backend
        assert agent.budget_pct is None or agent.budget_pct >= 0
        agent.task.encode()
    for question in questions(said):
        assert question.age(NOW) >= 0 and (question.left(NOW) is None or (question.left(NOW) or 0) >= 0)
        assert all(question.options) and "\n" not in question.text
    for alert in alerts(said):
        assert alert.gravity in ("error", "warning", "info") and alert.event
    assert sum(map(len, by_stage(tasks(said)).values())) == len(tasks(said))
    turn_purposes(said)
    drawn = mesh(said)
    assert {end for link in drawn.links for end in link.ends} <= set(drawn.servers)
    assert all(link.state and link.behind >= 0 for link in drawn.links)


@settings(max_examples=60)
@given(NONSENSE)
def test_no_turn_is_lost_when_days_are_added_up(said: list[LedgerFact]) -> None:
    taken = turns(said)
    days = by_day(taken, UTC)
    assert total(part for day in days.values() for part in day.values()).turns == len(taken)
    assert total(by_agent(taken).values()).tokens == sum(turn.tokens for turn in taken)


def test_an_agent_is_as_it_said_last() -> None:
    working = {"state": "working", "backend": "claude", "task": "build", "since": "2026-03-19T10:00:00Z"}
    used = {"tokens": "12000", "cost-usd": "1.50", "budget-usd": 2, "context-pct": "41.6", "unread": 3, "stale": 1}
    said = [
        fact("spark-claude", "state", "now", working | used),
        fact("spark-claude", "question", "q1", {"open": False}),
        fact("spark-claude", "question", "q2", {"open": True}),
        fact("thor-codex", "state", "now", {"state": "stopped", "since": "2026-03-19T10:00:00Z"}),
    ]
    claude, codex = agents(said, {"spark-claude"})
    assert (claude.state, claude.task, claude.tokens, claude.cost_usd) == ("working", "build", 12000, 1.5)
    assert (claude.budget_pct, claude.context_pct, claude.unread, claude.stale) == (75, 41.6, 3, 1)
    assert (claude.questions, claude.runs, claude.needs_attention) == (1, True, True)
    assert (codex.runs, codex.since, codex.budget_pct, codex.server) == (False, None, None, "thor")


def test_questions_that_wait_come_first_and_the_oldest_of_them() -> None:
    said = [
        fact("spark-a", "question", "q1", {"open": False, "outcome": "TIMED_OUT"}, ago=10),
        fact("spark-a", "question", "q2", {"open": True, "asked": moment(60), "deadline": moment(-60)}),
        fact("spark-b", "question", "q1", {"open": True, "asked": moment(600), "deadline": moment(5), "who": "people"}),
        fact("spark-b", "question", "q0", {"open": False, "outcome": "ANSWERED", "choice": "yes"}, ago=5),
    ]
    found = questions(said)
    assert [(each.nick, each.id) for each in found] == [
        ("spark-b", "q1"),
        ("spark-a", "q2"),
        ("spark-b", "q0"),
        ("spark-a", "q1"),
    ]
    assert (found[0].age(NOW), found[0].left(NOW), found[1].left(NOW)) == (600, 0, 60)
    assert found[3].outcome == "timed out"
    assert find(found, "Spark-B", "Q1") is found[0] and find(found, "spark-b", "q9") is None


def test_a_turn_belongs_to_the_day_on_which_it_ended_where_people_live() -> None:
    east = timezone(timedelta(hours=13))
    spent = {"tokens": 100, "cost_usd": 0.5, "outcome": "DONE", "ended": moment(3600)}
    said = [
        fact("spark-a", "spend", "turn-1", spent),
        fact("spark-a", "spend", "turn-2", spent | {"ended": moment(7200)}),
        fact("spark-b", "spend", "turn-1", spent | {"cost_usd": 2, "ended": "9999-12-31T23:59:59Z"}),
    ]
    taken = turns(said)
    assert by_day(taken, UTC) == {
        date(2026, 3, 19): {"spark-a": SpendTotal(200, 1.0, 2), "spark-b": SpendTotal(100, 2.0, 1)},
    }
    assert list(by_day(taken, east)) == [date(2026, 3, 19), date(2026, 3, 20)]
    assert list(by_agent(taken)) == ["spark-b", "spark-a"]
    assert by_agent(taken, NOW)["spark-b"].turns == 1 and "spark-a" not in by_agent(taken, NOW)


def test_alerts_are_told_by_how_grave_they_are() -> None:
    said = [
        fact("spark-a", "alert", "agent_error-1", {"event": "agent_error", "text": "it crashed"}, ago=60),
        fact("spark-a", "alert", "agent_complete-2", {"event": "agent_complete"}),
    ]
    last, first = alerts(said)
    assert (last.gravity, last.text, first.gravity, first.text) == ("info", "", "error", "it crashed")
    assert alerts(said, NOW - timedelta(seconds=30)) == [last]


def test_the_tasks_of_a_team_are_apart_from_the_turns_of_agents() -> None:
    said = [
        fact("spark-team", "task", "e2", {"state": "working", "text": "cdn", "manager": "spark-mo", "shifts": 2}),
        fact("spark-a", "task", "turn-4", {"began": moment(60), "ended": None, "place": "#general", "text": "look"}),
    ]
    [task], [turn] = tasks(said), turn_purposes(said)
    assert (task.id, task.stage, task.manager, task.shifts, task.is_over) == ("e2", "working", "spark-mo", 2, False)
    assert (turn.nick, turn.place, turn.ended) == ("spark-a", "#general", None)
    assert list(by_stage([task])) == list(STAGES) and by_stage([task])["working"] == [task]


def test_a_link_is_as_bad_as_the_worse_of_its_ends_says() -> None:
    said = [
        fact("spark", "link", "thor", {"state": "down", "since": moment(5)}),
        fact("thor", "link", "spark", {"state": "linked", "lag_ms": 3}),
        fact("thor", "link", "orin", {"state": "linked", "lag_ms": 12.5, "behind": 2}),
    ]
    drawn = mesh(said, "spark")
    assert drawn.servers == ("orin", "spark", "thor")
    assert [(link.ends, link.state, link.lag_ms, link.behind) for link in drawn.links] == [
        (("orin", "thor"), "linked", 12.5, 2),
        (("spark", "thor"), "down", None, 0),
    ]
    assert mesh([], "spark").servers == ("spark",)


def test_links_that_were_removed_are_not_drawn_and_those_of_a_silent_server_are_down() -> None:
    said = [
        fact("spark", "link", "thor", {"state": "removed"}),
        fact("orin", "link", "spark", {"state": "linked"}, ago=3 * 3600),
    ]
    [link] = mesh(said, "spark", NOW).links
    assert (link.ends, link.state) == (("orin", "spark"), "down")
    assert mesh(said, "spark").links[0].state == "linked"


def test_a_day_is_one_of_this_machine_as_for_budgets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Far in the east it is tomorrow already; and of a day before the clocks were changed midnight is midnight."""
    turn = TurnCost("spark-a", datetime(2026, 3, 19, 20, tzinfo=UTC), 1, 0.5, "")
    try:
        monkeypatch.setenv("TZ", "EAST-14EASTSUMMER")
        time.tzset()
        assert list(by_day([turn])) == [date(2026, 3, 20)]
        assert {midnight(days).strftime("%H:%M") for days in range(0, 400, 20)} == {"00:00"}
        assert {midnight(days).tzname() for days in range(0, 400, 20)} == {"EAST", "EASTSUMMER"}
    finally:
        monkeypatch.undo()
        time.tzset()
