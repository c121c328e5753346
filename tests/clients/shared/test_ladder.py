"""Verdicts are read exactly, and people are called only after two whispers have failed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culture.clients.shared.ladder import Escalate, Ladder, Whisper
from culture.clients.shared.verdicts import OK, Action, Verdict, parse

FINDINGS = st.builds(
    Verdict, st.sampled_from([Action.CORRECTION, Action.THINK_DEEPER, Action.ESCALATION]), st.text(min_size=1)
)
VERDICTS = st.one_of(st.just(OK), FINDINGS)


@pytest.mark.requirement("I06")
@pytest.mark.parametrize(
    "answer, verdict",
    [
        ("OK", OK),
        ("OK\n", OK),
        ("OK.", OK),
        ("OK — agent is productive, no action needed", OK),
        ("- OK", OK),
        ("**OK**", OK),
        ("CORRECTION You retried this 3 times.", Verdict(Action.CORRECTION, "You retried this 3 times.")),
        ("CORRECTION: ask #llama-cpp", Verdict(Action.CORRECTION, "ask #llama-cpp")),
        ("**CORRECTION** — stop\nand look", Verdict(Action.CORRECTION, "stop and look")),
        ("[THINK_DEEPER] plan first", Verdict(Action.THINK_DEEPER, "plan first")),
        ("THINK_DEEPER `plan first`", Verdict(Action.THINK_DEEPER, "plan first")),
        ("ESCALATION it deletes things", Verdict(Action.ESCALATION, "it deletes things")),
        ("CORRECTION it is not OK to do that", Verdict(Action.CORRECTION, "it is not OK to do that")),
    ],
)
def test_a_verdict_is_read(answer: str, verdict: Verdict) -> None:
    assert parse(answer) == verdict


@pytest.mark.fault("E26")
@pytest.mark.requirement("I06")
@pytest.mark.parametrize(
    "answer",
    [
        "",
        "   \n",
        "OKAY",
        "ok",
        "The agent is doing fine.",
        "I think: OK",
        "CORRECTION",
        "CORRECTION —",
        "THINK_DEEPER_NOW please",
        "OK\nCORRECTION retry",
        "CORRECTION a\nESCALATION b",
        "OK\nOK",
        '{"verdict": "OK"}',
        "\x00",
    ],
)
def test_everything_else_is_no_verdict(answer: str) -> None:
    assert parse(answer) is None


@given(st.text())
def test_no_answer_is_too_strange(answer: str) -> None:
    verdict = parse(answer)
    assert verdict is None or verdict.action is Action.OK or verdict.message


@pytest.mark.requirement("I03", "I10", "I11", "I24")
def test_whisper_stronger_whisper_people() -> None:
    ladder = Ladder(3)
    first, second, third = (ladder.climb(Verdict(Action.CORRECTION, "you repeat yourself")) for _ in range(3))
    assert first == Whisper(Action.CORRECTION, "you repeat yourself")
    assert isinstance(second, Whisper)
    assert second.message.startswith("STILL NO PROGRESS") and second.message.endswith("you repeat yourself")
    assert third == Escalate("you repeat yourself")


@pytest.mark.requirement("I11")
@pytest.mark.parametrize("threshold", [1, 2, 3])
def test_nobody_is_called_at_first_whatever_the_verdict(threshold: int) -> None:
    ladder = Ladder(threshold)
    steps = [ladder.climb(Verdict(Action.ESCALATION, "help")) for _ in range(3)]
    assert [type(step) for step in steps] == [Whisper, Whisper, Escalate]
    assert isinstance(steps[0], Whisper) and steps[0].action is Action.ESCALATION


@pytest.mark.requirement("I25")
@given(st.lists(VERDICTS), st.integers(1, 6))
def test_people_are_called_at_so_many_findings_in_a_row_and_once(verdicts: list[Verdict], threshold: int) -> None:
    ladder, row, called = Ladder(threshold), 0, False
    for verdict in verdicts:
        step = ladder.climb(verdict)
        row = row + 1 if verdict != OK else 0
        if called or verdict == OK:
            assert step is None
        elif row >= max(threshold, 3):
            assert step == Escalate(verdict.message)
            called = True
        else:
            assert isinstance(step, Whisper) and step.action is verdict.action and verdict.message in step.message
    assert ladder.escalated is called


@pytest.mark.requirement("I15")
def test_after_a_person_has_looked_it_begins_at_the_bottom() -> None:
    ladder, finding = Ladder(3), Verdict(Action.CORRECTION, "again")
    assert [type(ladder.climb(finding)) for _ in range(4)] == [Whisper, Whisper, Escalate, type(None)]
    ladder.again()
    assert ladder.climb(finding) == Whisper(Action.CORRECTION, "again")
