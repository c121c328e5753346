"""The view of `culture up`: readable, however much happens."""

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import pytest

from culture.cli.up.live_view import EVERY, Screen
from culture.ledger_views.agents import AgentView
from culture.ledger_views.alerts import AlertView
from culture.ledger_views.questions import QuestionView
from culture.protocol.vocabulary import ClientTag, UserClass
from culture.transport import Message

US = "spark-ori"
BEGUN = datetime(2026, 3, 19, 10, 0, tzinfo=UTC)
AGENTS = [f"spark-agent{number:02}" for number in range(30)]


class Watch:
    """A screen with a clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 0.0
        self.screen = Screen(lambda: self.now)
        self.lines: list[str] = []

    def says(self, sender: str, text: str, kind: UserClass = UserClass.AGENT, **more: object) -> None:
        at = BEGUN + timedelta(seconds=self.now)
        message = Message("#general", sender, text, at, f"s.{sender}.{self.now}", kind=kind, **more)  # type: ignore[arg-type]
        self.show(self.screen.said(message, US))

    def does(self, nick: str, state: str, task: str = "") -> None:
        told = BEGUN + timedelta(seconds=self.now)
        self.show(self.screen.facts([AgentView(nick, "spark", "claude", state, told, task)], [], []))

    def show(self, lines: Iterable[str]) -> None:
        self.lines += lines

    def until(self, seconds: float) -> None:
        while self.now < seconds:
            self.now += 1
            self.show(self.screen.due())


@pytest.mark.fault("J6")
def test_thirty_busy_agents_are_a_line_each_in_ten_seconds() -> None:
    """J6: whatever they do and say among themselves; and the latest of it is what is shown."""
    watch = Watch()
    for second in range(60):
        for nick in AGENTS:
            watch.does(nick, "working", f"step {second}")
            watch.says(nick, f"line {second}")
        watch.until(second + 1)
    watch.until(80)
    of_each = Counter(nick for line in watch.lines for nick in AGENTS if nick in line)
    assert set(of_each) == set(AGENTS)
    assert max(of_each.values()) <= 1 + 70 / EVERY
    assert all(any(nick in line and "line 59" in line for line in watch.lines) for nick in AGENTS)
    assert any("and 19 more)" in line for line in watch.lines)
    times = [line[:8] for line in watch.lines]
    assert times == sorted(times)


def test_what_is_shown_late_says_when_it_was_and_no_time_goes_back() -> None:
    watch = Watch()
    watch.says("spark-a", "first")
    watch.until(2)
    watch.says("spark-a", "kept back")
    watch.until(8)
    watch.says(US, "hello", UserClass.HUMAN, own=True)
    watch.until(12)
    moments = [(BEGUN + timedelta(seconds=number)).astimezone().strftime("%H:%M:%S") for number in (0, 2, 8)]
    assert watch.lines == [
        f"{moments[0]} #general <spark-a> first",
        f"{moments[2]} #general <spark-ori> hello",
        f"{moments[2]} #general <spark-a> kept back  (at {moments[1]})",
    ]


def test_what_concerns_people_is_shown_at_once() -> None:
    watch = Watch()
    for number in range(5):
        watch.says(US, f"hello {number}", UserClass.HUMAN, own=True)
        watch.says("spark-a", f"answer {number}", tags={ClientTag.CAUSE.value: f"s.{US}.0.0"})
        watch.says("spark-a", f"for {US}: {number}")
        watch.says("spark-a", f"in private {number}", private=True)
    assert len(watch.lines) == 20
    watch.says("spark-a", "among us")
    watch.says("spark-a", "and on")
    assert len(watch.lines) == 21


def test_a_question_is_shown_once_with_what_to_type() -> None:
    watch = Watch()
    asked = QuestionView("spark-a", "q7", "spark", True, BEGUN, BEGUN, text="Deploy?", options=("yes", "no"))
    closed = QuestionView("spark-a", "q7", "spark", False, BEGUN, BEGUN, outcome="answered", by=US)
    old = QuestionView("spark-a", "q1", "spark", False, BEGUN, BEGUN, outcome="answered", by=US)
    for question in (asked, asked, closed, closed, old):
        watch.show(watch.screen.facts([], [question], []))
    assert [line[9:] for line in watch.lines] == [
        "spark-a asks: Deploy?",
        "answer it there, or type: culture answer spark-a q7 yes  (or no)",
        "spark-a's q7 is answered by spark-ori",
    ]


ASKED = QuestionView(
    "spark-a", "q7", "spark", True, BEGUN, BEGUN, place="#general", text="Ship  it?", options=("yes", "no")
)
POSTED = "[QUESTION] Ship\nit?\nWaiting for response. Reply with: @spark-a yes/no"
AS_LEDGER = [
    "spark-a asks in #general: Ship  it?",
    "answer it there, or type: culture answer spark-a q7 yes  (or no)",
]


@pytest.mark.parametrize("ledger_first", [True, False])
def test_a_question_of_a_room_and_of_the_ledger_is_one(ledger_first: bool) -> None:
    watch = Watch()
    if ledger_first:
        watch.show(watch.screen.facts([], [ASKED], []))
    watch.says("spark-a", POSTED)
    watch.show(watch.screen.facts([], [ASKED], []))
    watch.until(30)
    assert [line[9:] for line in watch.lines] == AS_LEDGER


def test_a_question_in_private_has_its_words_and_what_to_type() -> None:
    watch = Watch()
    watch.says("spark-a", "[QUESTION] Between us?", private=True)
    watch.show(watch.screen.facts([], [QuestionView("spark-a", "q8", "spark", True, BEGUN, BEGUN)], []))
    watch.until(30)
    assert [line[9:] for line in watch.lines] == [
        "spark-a asks: Between us?",
        "answer it there, or type: culture answer spark-a q8 YOUR ANSWER",
    ]


def test_a_question_that_no_ledger_tells_of_is_shown_all_the_same() -> None:
    watch = Watch()
    watch.show(watch.screen.facts([], [ASKED], []))
    watch.says("spark-a", "[QUESTION] Something else?")
    watch.says("spark-b", POSTED)
    watch.until(10)
    shown = [line[9:] for line in watch.lines[2:]]
    assert len(shown) == 2 and "<spark-a> [QUESTION] Something else?" in shown[0] and "<spark-b>" in shown[1]


def test_an_alert_is_shown_once_and_does_nothing_to_the_terminal() -> None:
    watch = Watch()
    alert = AlertView("spark-a", "agent_error-1", "agent_error", "it broke\x1b[2J\nbadly", BEGUN, "spark")
    done = AlertView("spark-a", "agent_complete-2", "agent_complete", "done", BEGUN, "spark")
    for _ in range(2):
        watch.show(watch.screen.facts([], [], [alert, done]))
    assert [line[9:] for line in watch.lines] == ["spark-a calls people: it broke  badly"]


def test_that_agents_which_came_are_idle_is_no_news() -> None:
    watch = Watch()
    for nick in AGENTS:
        watch.does(nick, "idle")
    assert not watch.lines
    watch.does("spark-agent01", "working", "the build")
    watch.until(20)
    watch.does("spark-agent01", "idle")
    assert [line[9:] for line in watch.lines] == ["spark-agent01 is working: the build", "spark-agent01 is idle"]
