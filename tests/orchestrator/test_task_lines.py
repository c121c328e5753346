"""TASK: lines: what they want, and of whom."""

import pytest

from culture.orchestrator.tasks.task_lines import (
    LineAuthor,
    NewTask,
    NewWorker,
    StatusReport,
    TaskLine,
    TaskReport,
    Wake,
    may_request,
    parse,
)
from culture.protocol.vocabulary import UserClass


@pytest.mark.requirement("M14")
@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("TASK: fix the login page", NewTask("fix the login page")),
        ("  TASK:   two\nlines ", NewTask("two\nlines")),
        ("TASK: @spark-Ramona take the review", Wake("spark-Ramona", "take the review")),
        ("TASK: implementer: write the parser", NewWorker("implementer", "write the parser")),
        ("TASK: Groucho: review demo-1", NewWorker("groucho", "review demo-1")),
        ("TASK: demo-1 done: the parser is written", StatusReport("demo-1", TaskReport.DONE, "the parser is written")),
        ("TASK: demo-12 waiting — for an answer", StatusReport("demo-12", TaskReport.WAITING, "for an answer")),
        ("TASK: my-project-3 failed", StatusReport("my-project-3", TaskReport.FAILED, "")),
        ("TASK: somebody: do it", NewTask("somebody: do it")),
        ("TASK:", None),
        ("a TASK: in the middle", None),
        ("task: in small letters", None),
    ],
)
def test_what_a_line_wants(text: str, wanted: TaskLine | None) -> None:
    assert parse(text) == wanted


@pytest.mark.fault("I24")
@pytest.mark.parametrize(
    ("nick", "kind", "wanted", "allowed"),
    [
        ("spark-ori", UserClass.HUMAN, NewTask("x"), True),
        ("spark-harper", UserClass.AGENT, NewTask("x"), True),
        ("spark-Ramona", UserClass.AGENT, NewTask("x"), False),
        ("spark-Ramona", UserClass.AGENT, NewWorker("fixer", "x"), True),
        ("spark-Ramona", UserClass.AGENT, StatusReport("demo-1", TaskReport.DONE, ""), True),
        ("spark-Jules", UserClass.AGENT, StatusReport("demo-1", TaskReport.DONE, ""), False),
        ("spark-Jules", UserClass.AGENT, NewWorker("fixer", "x"), False),
        ("spark-harper", UserClass.UNKNOWN, NewTask("x"), False),
        ("spark-harper", UserClass.BOT, NewTask("x"), False),
        ("spark-Ramona", UserClass.BOT, StatusReport("demo-1", TaskReport.DONE, ""), False),
        ("spark-eve", UserClass.UNKNOWN, NewTask("x"), False),
        ("spark-bot", UserClass.BOT, NewTask("x"), False),
    ],
)
def test_who_may_want_it(nick: str, kind: UserClass, wanted: TaskLine, allowed: bool) -> None:
    assert may_request(LineAuthor(nick, kind), wanted, "spark-Harper", "spark-Ramona") is allowed
