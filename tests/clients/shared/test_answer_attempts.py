"""Forty attempts to answer a question, and what comes of each: the outcome, and what the sender is told."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from culture.clients.shared.questions import Question
from culture.config.agents import TrustConfig
from culture.protocol.vocabulary import UserClass
from tests.support.asking import NICK, Scene

HUMAN, AGENT, BOT, UNKNOWN = UserClass.HUMAN, UserClass.AGENT, UserClass.BOT, UserClass.UNKNOWN
PEOPLE = TrustConfig()
FIRST, VOTE, ALL = (TrustConfig.model_validate({"agents": how}) for how in ("first", "vote", "consensus"))
QUORUM = TrustConfig(agents="vote", quorum=3)


@dataclass
class Attempt:
    """What was asked under which rules, what is said then, and the end: outcome and chosen text, None while open."""

    name: str
    say: Callable[[Scene], object]
    outcome: str | None = None
    told: str = ""
    """In the notice to the last who spoke."""
    to: str = "spark-ori"
    trust: TrustConfig | None = PEOPLE
    open_text: bool = False
    others: int = 0
    mail: int = 0
    """How many messages the agent still reads as messages."""
    faults: tuple[str, ...] = ()


def ori(text: str, **how: object) -> Callable[[Scene], object]:
    return lambda stage: stage.say("spark-ori", text, **how)  # type: ignore[arg-type]


def by(nick: str, text: str, kind: UserClass, **how: object) -> Callable[[Scene], object]:
    return lambda stage: stage.say(nick, text, kind, **how)  # type: ignore[arg-type]


def each(*sayings: Callable[[Scene], object]) -> Callable[[Scene], object]:
    return lambda stage: [say(stage) for say in sayings]


def later(seconds: float, *sayings: Callable[[Scene], object]) -> Callable[[Scene], object]:
    def after(stage: Scene) -> None:
        stage.now += seconds
        stage.questions._expire(1)
        each(*sayings)(stage)

    return after


def killed(*sayings: Callable[[Scene], object]) -> Callable[[Scene], object]:
    def after(stage: Scene) -> None:
        stage.kill()
        stage.open()
        each(*sayings)(stage)

    return after


A, B, C = "spark-a", "spark-b", "spark-c"
README = f"@{NICK} yes the README looks great now"
UNRELATED = [
    Attempt("an unrelated yes", ori(README), None, "cannot tell what that means for q1", mail=1),
    Attempt("an unrelated yes with a comma", ori(f"@{NICK} yes, the README looks great now"), None, mail=1),
    Attempt("an unrelated yes in private", ori("yes the README looks great now", private=True), None, mail=1),
    Attempt("an unrelated yes as a reply to something else", ori(f"@{NICK} yes", reply="other.1"), None, mail=1),
    Attempt("the same as a reply to the question", ori(README, reply="posted.1"), f"ANSWERED {README[14:]}"),
    Attempt("the same with the id", ori(f"@{NICK} q1 {README[14:]}"), f"ANSWERED {README[14:]}"),
    Attempt("an unrelated yes of an agent", by(A, README, AGENT), None, "only people may answer", A, mail=1),
    Attempt("an unrelated yes without rules", by(A, README, AGENT), None, "cannot tell", A, trust=None, mail=1),
    Attempt("no with its reason", ori(f"@{NICK} no, keep the old ones"), "DENIED no, keep the old ones"),
    Attempt("a remark that begins with no", ori(f"@{NICK} no idea what CI does"), None, "cannot tell", mail=1),
    Attempt("nobody waits: the bare word", killed(ori(f"@{NICK} Yes!")), "ANSWERED Yes!", mail=1),
    Attempt("nobody waits: the id", killed(ori(f"@{NICK} looks safe, yes q1")), "ANSWERED looks safe, yes", mail=1),
    Attempt("nobody waits: a reply", killed(ori(README, reply="posted.1")), f"ANSWERED {README[14:]}", mail=1),
    Attempt("nobody waits: words beside it", killed(ori(f"@{NICK} looks safe, yes")), None, "cannot tell", mail=1),
    Attempt("nobody waits: no with its reason", killed(ori(f"@{NICK} no, keep them")), None, "cannot tell", mail=1),
    Attempt(
        "nobody waits: a new task", killed(ori(f"@{NICK} rebuild the documentation")), None, open_text=True, mail=1
    ),
    Attempt(
        "in private while a channel was asked", ori("my salary is 5000", private=True), None, open_text=True, mail=1
    ),
    Attempt("the same with the id", ori("q1 cmake", private=True), "ANSWERED cmake", open_text=True),
    Attempt(
        "an operator's unrelated yes after a no",
        each(by("spark-bob", f"@{NICK} no", HUMAN), ori(f"@{NICK} yes")),
        "DENIED no",
        "already answered by spark-bob",
        mail=1,
    ),
    Attempt(
        "an operator's yes with the id after a no",
        each(by("spark-bob", f"@{NICK} no", HUMAN), ori(f"@{NICK} yes q1")),
        "DENIED no",
        "Your word goes above it",
        mail=1,
    ),
    Attempt(
        "said while it was away, too late, and no answer",
        killed(ori(f"@{NICK} rebuild the documentation", missed=True, at=4e9)),
        mail=1,
    ),
]
ATTEMPTS = [
    *UNRELATED,
    Attempt("a mention", ori(f"@{NICK} yes"), "ANSWERED yes", "is answered"),
    Attempt("the documented yes", ori(f"@{NICK} looks safe, yes"), "ANSWERED looks safe, yes"),
    Attempt("with an id", ori(f"@{NICK} yes q1"), "ANSWERED yes"),
    Attempt("in private", ori("yes", private=True), "ANSWERED yes"),
    Attempt("in private with an id", ori("q1: no", private=True), "DENIED no"),
    Attempt("as a reply to it", ori(f"@{NICK} yes", reply="posted.1", place="#other"), "ANSWERED yes"),
    Attempt("no", ori(f"@{NICK} no"), "DENIED no"),
    Attempt("abort", ori(f"@{NICK} abort"), "ABORTED abort"),
    Attempt(
        "yes but", ori(f"@{NICK} yes but only temp files"), None, "cannot tell what that means", mail=1, faults=("F10",)
    ),
    Attempt("yes or no", ori(f"@{NICK} yes, or no"), None, "cannot tell", mail=1, faults=("F10",)),
    Attempt("yes with a question mark", ori(f"@{NICK} yes?"), None, "cannot tell", mail=1, faults=("F10",)),
    Attempt("a question back", ori(f"@{NICK} which files?"), "INTERROGATED which files?"),
    Attempt("in another channel", ori(f"@{NICK} yes", place="#other"), None, mail=1),
    Attempt("in another channel with the id", ori(f"@{NICK} yes q1", place="#other"), "ANSWERED yes"),
    Attempt("a forged id", ori(f"@{NICK} yes q99"), None, "I have asked no question q99"),
    Attempt("an id that is none", ori(f"@{NICK} look at q99 in the sheet"), "INTERROGATED look at q99 in the sheet"),
    Attempt("a reply to something else", ori(f"@{NICK} yes", reply="other.1", place="#other"), None, mail=1),
    Attempt("an agent", by(A, f"@{NICK} yes", AGENT), None, "only people may answer", A, faults=("F2",)),
    Attempt("a bot", by(A, f"@{NICK} yes", BOT), None, "only people may answer", A, faults=("F2",)),
    Attempt("an agent in private", by(A, "yes q1", AGENT, private=True), None, "only people", A, faults=("F2",)),
    Attempt(
        "an agent that runs the channel",
        each(lambda stage: setattr(stage.room, "chiefs", (A,)), by(A, f"@{NICK} yes", AGENT)),
        None,
        "only people may answer",
        A,
        faults=("F2",),
    ),
    Attempt(
        "an agent named like a person", by("spark-ori", f"@{NICK} yes", AGENT), None, "only people", faults=("F3",)
    ),
    Attempt(
        "the agent's own shell under its owner's nick, not logged in",
        by("spark-ori", f"@{NICK} yes", UNKNOWN),
        None,
        "only people who are logged in may answer",
        faults=("F3",),
    ),
    Attempt("late", later(1801, ori(f"@{NICK} yes")), "TIMED_OUT None", "too late for q1", mail=1, faults=("F6",)),
    Attempt("late with the id", later(1801, ori("yes q1", private=True)), "TIMED_OUT None", "too late", faults=("F6",)),
    Attempt(
        "a day late, and a message of its own",
        later(90000, ori(f"@{NICK} yes, and rebuild the documentation too")),
        "TIMED_OUT None",
        mail=1,
    ),
    Attempt(
        "twice from two devices",
        each(ori(f"@{NICK} yes"), ori(f"@{NICK} yes")),
        "ANSWERED yes",
        "it counts once",
        mail=1,
        faults=("F7",),
    ),
    Attempt(
        "the same message twice",
        each(ori(f"@{NICK} yes", msgid="m1"), ori(f"@{NICK} yes", msgid="m1")),
        "ANSWERED yes",
        "is answered",
        faults=("F7",),
    ),
    Attempt(
        "one more person who agrees",
        each(ori(f"@{NICK} yes"), by("spark-bob", f"@{NICK} yes", HUMAN)),
        "ANSWERED yes",
        "already answered by spark-ori",
        "spark-bob",
        mail=1,
        faults=("F6",),
    ),
    Attempt(
        "a person against an operator",
        each(ori(f"@{NICK} yes"), by("spark-bob", f"@{NICK} no", HUMAN)),
        "ANSWERED yes",
        "already answered by spark-ori",
        "spark-bob",
        mail=1,
    ),
    Attempt(
        "an agent against an agent",
        each(by(A, f"@{NICK} yes", AGENT), by(B, f"@{NICK} no q1", AGENT)),
        "ANSWERED yes",
        "already answered by spark-a",
        B,
        trust=FIRST,
    ),
    Attempt(
        "an operator against a person",
        each(by("spark-bob", f"@{NICK} yes", HUMAN), ori(f"@{NICK} no")),
        "ANSWERED yes",
        "Your word goes above it",
        mail=1,
    ),
    Attempt(
        "an operator against a person, twice",
        each(by("spark-bob", f"@{NICK} yes", HUMAN), ori(f"@{NICK} no"), ori(f"@{NICK} no q1")),
        "ANSWERED yes",
        "already answered by spark-bob",
        mail=1,
    ),
    Attempt("after kill -9", killed(ori(f"@{NICK} yes")), "ANSWERED yes", "is answered", mail=1, faults=("F8",)),
    Attempt("several are open", ori(f"@{NICK} yes"), None, "which question do you mean", others=2, mail=1),
    Attempt("several are open, one is named", ori(f"@{NICK} yes q1"), "ANSWERED yes", others=2),
    Attempt("several at once", ori(f"@{NICK} yes q1 q2"), None, "one by one", others=2),
    Attempt("several denied", ori(f"@{NICK} deny q1 q2"), "DENIED deny", "denied: q1, q2.", others=1),
    Attempt("the first agent", by(A, f"@{NICK} yes", AGENT), "ANSWERED yes", trust=FIRST),
    Attempt(
        "an agent that came later",
        by("spark-late", f"@{NICK} yes", AGENT),
        None,
        "in the channel when it was asked",
        "spark-late",
        trust=FIRST,
    ),
    Attempt("one vote of three", by(A, f"@{NICK} yes", AGENT), None, "1 of 2 so far", A, trust=VOTE),
    Attempt(
        "one agent votes twice",
        each(by(A, f"@{NICK} yes", AGENT), by(A, f"@{NICK} yes", AGENT)),
        None,
        "1 of 2 so far",
        A,
        trust=VOTE,
    ),
    Attempt(
        "a vote is changed",
        each(by(A, f"@{NICK} yes", AGENT), by(A, f"@{NICK} no", AGENT), by(B, f"@{NICK} no", AGENT)),
        "DENIED no",
        trust=VOTE,
        faults=("F4",),
    ),
    Attempt(
        "votes before and after kill -9",
        each(by(A, f"@{NICK} yes", AGENT), killed(by(B, f"@{NICK} yes", AGENT))),
        "ANSWERED yes",
        trust=VOTE,
        mail=1,
        faults=("F8",),
    ),
    Attempt(
        "a quorum of three",
        each(by(A, f"@{NICK} yes", AGENT), by(B, f"@{NICK} yes", AGENT)),
        None,
        "2 of 3",
        B,
        trust=QUORUM,
    ),
    Attempt(
        "all but one",
        each(by(A, f"@{NICK} yes", AGENT), by(B, f"@{NICK} yes", AGENT), by(C, f"@{NICK} no", AGENT)),
        None,
        "1 of 3",
        C,
        trust=ALL,
    ),
    Attempt(
        "a person against agents who vote",
        each(by(A, f"@{NICK} yes", AGENT), ori(f"@{NICK} no")),
        "DENIED no",
        trust=VOTE,
    ),
    Attempt(
        "a person against agents who have decided",
        each(by(A, f"@{NICK} yes", AGENT), by("spark-bob", f"@{NICK} no", HUMAN)),
        "ANSWERED yes",
        "Your word goes above it",
        "spark-bob",
        trust=FIRST,
        mail=1,
    ),
    Attempt("an open question", ori(f"@{NICK} cmake 3.28"), "ANSWERED cmake 3.28", open_text=True),
    Attempt(
        "an agent to an open question of people",
        by(A, f"@{NICK} the build is done", AGENT),
        None,
        "only people may answer",
        A,
        open_text=True,
        mail=1,
    ),
    Attempt("an open question is denied", ori(f"@{NICK} deny q1"), "DENIED deny", open_text=True),
    Attempt(
        "the same words twice to an open question",
        each(ori(f"@{NICK} cmake 3.28"), ori(f"@{NICK} cmake 3.28")),
        "ANSWERED cmake 3.28",
        "it counts once",
        open_text=True,
        faults=("F7",),
    ),
    Attempt("no rules: anyone", by(A, f"@{NICK} yes", AGENT), "ANSWERED yes", trust=None),
    Attempt("no rules: a choice stays a choice", by(A, f"@{NICK} hm", AGENT), None, trust=None, mail=1),
    Attempt(
        "no rules: the oldest is answered",
        by(A, f"@{NICK} whatever?", UNKNOWN),
        "ANSWERED whatever?",
        trust=None,
        open_text=True,
        others=2,
    ),
]


@pytest.mark.requirement("J14", "J15", "J19", "L14")
@pytest.mark.parametrize(
    "attempt",
    [
        pytest.param(each, id=each.name, marks=[pytest.mark.fault(*each.faults)] if each.faults else [])
        for each in ATTEMPTS
    ],
)
async def test_an_attempt_has_the_right_outcome(attempt: Attempt, tmp_path: Path) -> None:
    stage = Scene(tmp_path, attempt.trust)
    try:
        options = () if attempt.open_text else ("yes", "no", "abort")
        asking = await stage.ask(options=options)
        for number in range(attempt.others):
            await stage.ask(f"other {number}", options)
        attempt.say(stage)
        await stage.settled()
        if asking.done() and not asking.cancelled():
            end = asking.result()
            found = f"{end.outcome} {end.text}"
        else:
            found = end_of(stage.questions.recent)
        assert (found or None) == attempt.outcome
        assert attempt.told in stage.told(attempt.to)
        assert len(stage.mail()) == attempt.mail
        # Whatever was said, the other questions are as they were, unless they were named.
        assert len([each for each in stage.questions.open if each.number != 1]) == (
            0 if "denied: q1, q2" in attempt.told else attempt.others
        )
    finally:
        stage.close()


def end_of(closed: list[Question]) -> str:
    ends = [question.answer for question in closed if question.number == 1]
    return f"{ends[0].outcome} {ends[0].text}" if ends and ends[0] is not None else ""


def test_there_are_forty_and_more() -> None:
    assert len({attempt.name for attempt in ATTEMPTS}) >= 40
