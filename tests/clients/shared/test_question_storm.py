"""Whatever is said in whatever order, and however often the daemon is killed: a question has one end, the right one."""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from culture.config.agents import TrustConfig
from culture.protocol.vocabulary import UserClass
from tests.support.asking import NICK, Scene

WHO = [
    ("spark-ori", UserClass.HUMAN),
    ("spark-bob", UserClass.HUMAN),
    ("spark-a", UserClass.AGENT),
    ("spark-b", UserClass.AGENT),
    ("spark-late", UserClass.AGENT),
    ("spark-ori2", UserClass.UNKNOWN),
]
TEXTS = [
    "yes",
    "no",
    "abort",
    "yes but",
    "why?",
    "deny",
    "yes q1",
    "no q2",
    "q9 yes",
    "deny q1 q2",
    "hello there",
    "yes q2",
]
SAYING = st.tuples(st.just("say"), st.sampled_from(WHO), st.sampled_from(TEXTS), st.booleans())
STEPS = st.lists(
    st.one_of(
        SAYING,
        SAYING,
        st.tuples(st.just("ask"), st.sampled_from(["one?", "two?", "three?"]), st.booleans()),
        st.tuples(st.just("kill")),
        st.tuples(st.just("wait"), st.sampled_from([1.0, 400.0, 2000.0])),
        st.tuples(st.just("turn over")),
    ),
    max_size=14,
)


@pytest.mark.fault("F1", "F2", "F6", "F7", "F8")
@settings(max_examples=60, deadline=None)
@given(st.sampled_from(["never", "first", "vote", "consensus"]), STEPS)
def test_a_question_has_one_end_and_the_right_one(agents: str, steps: list[tuple[object, ...]]) -> None:
    with TemporaryDirectory() as folder:
        asyncio.run(play(Path(folder), TrustConfig.model_validate({"agents": agents}), steps))


async def play(folder: Path, trust: TrustConfig, steps: list[tuple[object, ...]]) -> None:
    stage = Scene(folder, trust)
    ends: dict[str, object] = {}
    try:
        for step in steps:
            await act(stage, step)
            await stage.settled()
            check(stage, trust, ends)
    finally:
        stage.close()


async def act(stage: Scene, step: tuple[object, ...]) -> None:
    match step:
        case ("say", (str(nick), UserClass() as kind), str(text), bool(private)):
            stage.say(nick, text if private else f"@{NICK} {text}", kind, private=private)
        case ("ask", str(text), bool(choice)):
            await stage.ask(text, ("yes", "no", "abort") if choice else ())
        case ("kill",):
            stage.kill()
            stage.open()
            stage.questions.begin()
        case ("wait", float(seconds)):
            stage.now += seconds
            stage.questions.begin()
            await asyncio.sleep(0)
        case ("turn over",):
            stage.questions.turn_over()


def check(stage: Scene, trust: TrustConfig, ends: dict[str, object]) -> None:
    everything = [*stage.questions.open, *stage.questions.recent]
    assert len({question.id for question in everything}) == len(everything)
    for question in stage.questions.recent:
        # Once it has an end, the end stays.
        assert ends.setdefault(question.id, question.answer) == question.answer
        answer = question.answer
        assert answer is not None and answer.question == question.id
        if answer.by is None:
            assert (answer.outcome.value, answer.action) == ("TIMED_OUT", "pause")
        elif answer.kind == "agent":
            assert trust.agents != "never" and answer.by in ("spark-a", "spark-b")
        else:
            assert answer.kind == "human"
    # Nothing that has an end waits.
    assert not {question.id for question in stage.questions.open} & ends.keys()
