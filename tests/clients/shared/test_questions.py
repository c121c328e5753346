"""The life of a question: asked, answered by whom it may, timed out, taken up again; without a server."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from culture.clients.shared.questions import MOST_OPEN, Answer, NoSuchQuestion, Outcome, TooManyQuestions
from culture.clients.shared.questions.model import Question
from culture.clients.shared.questions.store import KEPT_SECONDS
from culture.config.agents import TrustConfig
from culture.protocol.vocabulary import ClientTag, UserClass
from culture.transport import Message, NotSent
from tests.support.asking import NICK, Scene
from tests.support.waiting import until

HUMAN, AGENT, UNKNOWN = UserClass.HUMAN, UserClass.AGENT, UserClass.UNKNOWN
RULES = TrustConfig()
Open = Callable[..., Scene]


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Open]:
    made: list[Scene] = []

    def opened(trust: TrustConfig | None = RULES) -> Scene:
        made.append(Scene(tmp_path, trust))
        return made[-1]

    yield opened
    for each in made:
        each.close()


async def ended(asking: "asyncio.Task[Answer]") -> Answer:
    async with asyncio.timeout(30):
        return await asking


@pytest.mark.requirement("J13")
async def test_an_answer_has_all_that_is_known_of_it(scene: Open) -> None:
    stage = scene()
    asking = await stage.ask()
    assert stage.room.lines == [
        ("#general", f"[QUESTION] Delete 47 files?\nWaiting for response. Reply with: @{NICK} yes/no/abort")
    ]
    assert stage.alerts == [("agent_question", f'[QUESTION] {NICK} needs input: "Delete 47 files?"')]
    stage.say("spark-ori", f"@{NICK} yes, go ahead", account="ori", msgid="m1")
    assert (await ended(asking)).as_data() == {
        "outcome": "ANSWERED",
        "text": "yes, go ahead",
        "by": "spark-ori",
        "account": "ori",
        "class": "human",
        "human_confirmed": True,
        "msgid": "m1",
        "question": "q1",
        "action": None,
    }
    assert stage.told("spark-ori") == 'q1 is answered: "yes".'
    assert stage.mail() == []


async def test_only_a_login_confirms_a_person(scene: Open) -> None:
    stage = scene()
    asking = await stage.ask()
    stage.say("spark-ori", "yes", private=True)
    answer = await ended(asking)
    assert answer.outcome is Outcome.ANSWERED
    assert not answer.human_confirmed


@pytest.mark.requirement("J11")
async def test_a_decision_point_of_the_harness_is_three_lines(scene: Open) -> None:
    stage = scene()
    stage.task = "cleanup stale branches"
    await stage.ask('"This will delete 47 files. Proceed? [y/N]"', tool="Bash")
    assert stage.room.lines[0][1].splitlines() == [
        '[QUESTION] Task "cleanup stale branches" needs input:',
        '"This will delete 47 files. Proceed? [y/N]"',
        f"Waiting for response. Reply with: @{NICK} yes/no/abort",
    ]


@pytest.mark.fault("F1")
@pytest.mark.requirement("J16", "L15")
@pytest.mark.parametrize("action", ["pause", "deny", "abort"])
async def test_silence_is_never_a_yes(scene: Open, action: str) -> None:
    stage = scene(TrustConfig.model_validate({"timeout_action": action, "timeout": 0.02}))
    asking = await stage.ask()
    stage.now += 1
    answer = await ended(asking)
    assert (answer.outcome, answer.text, answer.action) == (Outcome.TIMED_OUT, None, action)
    assert stage.acts == [action]
    assert stage.alerts[-1][0] == "agent_timeout"
    stage.say("spark-ori", f"@{NICK} yes")
    assert stage.told("spark-ori").startswith("too late for q1")
    # It may be meant for something else: the agent reads it, and that it is no answer.
    assert [mail.remark for mail in stage.mail()] == [
        "your question q1 had an end before, and this changes nothing of it"
    ]


@pytest.mark.requirement("J17", "J04")
async def test_without_a_block_the_first_word_of_anyone_answers_and_silence_lets_it_go_on(scene: Open) -> None:
    stage = scene(None)
    asking = await stage.ask("which flags?", ())
    stage.say("spark-a", f"@{NICK} is it yes, but not?", AGENT)
    answer = await ended(asking)
    assert (answer.outcome, answer.text, answer.kind) == (Outcome.ANSWERED, "is it yes, but not?", "agent")
    silent = await stage.ask("anyone?", (), timeout=0.02)
    stage.now += 1
    late = await ended(silent)
    assert (late.outcome, late.action, stage.acts) == (Outcome.TIMED_OUT, None, [])
    assert stage.alerts[-1] == ("agent_timeout", f'[TIMEOUT] {NICK} got no answer: "anyone?"')
    assert stage.notices == []


async def test_an_explicit_timeout_goes_above_the_rules(scene: Open) -> None:
    stage = scene(TrustConfig(timeout=900.0))
    await stage.ask("one?", ())
    await stage.ask("two?", (), timeout=60)
    waits = [question.deadline - question.asked for question in stage.questions.open]
    assert waits == [900.0, 60.0]


@pytest.mark.requirement("J12", "J18", "J20", "L13")
async def test_a_question_back_reaches_the_waiting_agent_and_its_answer_the_room(scene: Open) -> None:
    stage = scene()
    asking = await stage.ask()
    stage.say("spark-a", f"@{NICK} which files? Any in active branches?", AGENT, msgid="m1")
    back = await ended(asking)
    assert (back.outcome, back.by, back.kind, back.msgid, back.question) == (
        Outcome.INTERROGATED,
        "spark-a",
        "agent",
        "m1",
        "q1",
    )
    assert back.text == "which files? Any in active branches?"
    assert len(stage.questions.open) == 1
    # While the agent writes its answer, the next comes; it is not lost.
    stage.say("spark-b", f"@{NICK} how old are they?", AGENT)
    again = await stage.again("q1", "12 are merged, 35 are temporary.")
    assert stage.room.lines[-1] == ("#general", "[ANSWER] 12 are merged, 35 are temporary.")
    assert stage.room.tags[-1][ClientTag.REPLY.value] == "m1"
    assert (await ended(again)).by == "spark-b"
    waiting = await stage.again("q1", "a month")
    stage.say("spark-ori", f"@{NICK} yes, go ahead")
    assert (await ended(waiting)).outcome is Outcome.ANSWERED
    assert [text for event, text in stage.alerts if "back" in text] == [
        f'[QUESTION] spark-a asks {NICK} back about q1: "Delete 47 files?"'
    ]
    assert stage.mail() == []


async def test_a_reply_to_what_the_agent_answered_about_its_question_answers_the_question(scene: Open) -> None:
    stage = scene()
    asking = await stage.ask()
    stage.say("spark-a", f"@{NICK} which files?", AGENT)
    await ended(asking)
    again = await stage.again("q1", "12 are merged.")
    stage.say("spark-ori", f"@{NICK} yes, delete these", reply="posted.2")
    assert (await ended(again)).text == "yes, delete these"


@pytest.mark.requirement("J12")
async def test_what_is_said_in_private_reaches_no_call_of_another_place_unless_it_names_the_question(
    scene: Open,
) -> None:
    stage = scene()
    asking = await stage.ask()
    stage.say("spark-ori", "what is my salary?", private=True)
    assert not asking.done()
    assert [(mail.text, mail.remark) for mail in stage.mail()] == [("what is my salary?", "")]
    stage.say("spark-ori", "which files? q1", private=True)
    assert (await ended(asking)).text == "which files? q1"
    stage.say("spark-ori", "q1: and my salary?", private=True)
    again = await stage.again("q1", "all of them")
    assert not again.done()
    assert [mail.text for mail in stage.mail()] == ["what is my salary?", "q1: and my salary?"]


@pytest.mark.parametrize("cut", [False, True])
async def test_an_answer_that_comes_before_the_reply_is_known_to_be_stored_is_told_once(scene: Open, cut: bool) -> None:
    stage = scene()
    asking = await stage.ask()
    stage.say("spark-a", f"@{NICK} which files?", AGENT)
    assert (await ended(asking)).outcome is Outcome.INTERROGATED
    stage.room.on_line = lambda text: stage.say("spark-ori", f"@{NICK} yes") and None
    stage.room.cut = cut
    again = await stage.again("q1", "12 are merged.")
    assert (await ended(again)).outcome is Outcome.ANSWERED
    assert stage.mail() == []


async def test_an_answer_that_came_while_no_call_waited_is_told_once(scene: Open) -> None:
    stage = scene()
    asking = await stage.ask()
    stage.say("spark-a", f"@{NICK} which files?", AGENT)
    assert (await ended(asking)).outcome is Outcome.INTERROGATED
    stage.say("spark-b", f"@{NICK} how old are they?", AGENT)
    stage.say("spark-ori", f"@{NICK} yes")
    assert [mail.sender for mail in stage.mail()] == ["spark-b", "spark-ori"], "should the agent never ask again"
    again = await stage.again("q1", "12 are merged.")
    assert (await ended(again)).outcome is Outcome.ANSWERED
    assert [mail.sender for mail in stage.mail()] == ["spark-b"]


async def test_an_answer_that_comes_as_its_call_is_cut_off_is_not_lost(scene: Open) -> None:
    stage = scene()
    asking = await stage.ask()
    stage.say("spark-ori", f"@{NICK} yes")
    asking.cancel()
    await stage.settled()
    assert [(mail.sender, mail.remark.partition(",")[0]) for mail in stage.mail()] == [
        ("spark-ori", "answers your question q1")
    ]
    assert (await ended(await stage.ask())).outcome is Outcome.ANSWERED
    assert stage.mail() == []
    assert len(stage.room.lines) == 1


async def test_a_question_back_that_comes_as_its_call_is_cut_off_is_not_lost(scene: Open) -> None:
    stage = scene()
    asking = await stage.ask()
    stage.say("spark-a", f"@{NICK} which files?", AGENT)
    asking.cancel()
    await stage.settled()
    assert [mail.remark for mail in stage.mail()] == ['about your question q1: "Delete 47 files?"']
    assert (await ended(await stage.again("q1"))).by == "spark-a"
    assert stage.mail() == []


async def test_an_answer_that_another_call_has_passed_on_is_told_once(scene: Open) -> None:
    stage = scene()
    first, second = await stage.ask(), await stage.ask()
    stage.say("spark-ori", f"@{NICK} yes")
    first.cancel()
    assert (await ended(second)).outcome is Outcome.ANSWERED
    await stage.settled()
    assert stage.mail() == []


async def test_an_answer_that_comes_while_the_call_that_is_cut_off_posts_its_question_is_not_lost(scene: Open) -> None:
    stage = scene()
    stage.room.arrives = asyncio.Event()
    asking = await stage.ask()
    stage.say("spark-ori", f"@{NICK} yes")
    asking.cancel()
    await stage.settled()
    assert [mail.sender for mail in stage.mail()] == ["spark-ori"]


async def test_questions_back_have_an_end(scene: Open) -> None:
    stage = scene()
    waiting = await stage.ask()
    for _ in range(20):
        stage.say("spark-a", f"@{NICK} why?", AGENT)
        assert (await ended(waiting)).outcome is Outcome.INTERROGATED
        waiting = await stage.again("q1", "because")
    stage.say("spark-a", f"@{NICK} why, after all?", AGENT)
    await stage.settled()
    assert not waiting.done()
    assert [mail.text for mail in stage.mail()] == [f"@{NICK} why, after all?"]


@pytest.mark.fault("F8")
@pytest.mark.parametrize("options", [("yes", "no", "abort"), ()])
async def test_killed_while_it_waits_the_question_is_still_open_under_its_id(
    scene: Open, options: tuple[str, ...]
) -> None:
    stage = scene()
    await stage.ask("first?", options)
    await stage.ask("second?", options)
    before = stage.questions.open
    stage.kill()
    stage.open()
    assert stage.questions.open == before
    # Answered while nobody waits: the agent gets it as a message that says what it answers.
    taken = stage.say("spark-ori", f"@{NICK} yes q2", account="ori", msgid="m9")
    assert taken is not None and not taken.handled
    (mail,) = stage.mail()
    assert mail.remark == 'answers your question q2, "second?": ANSWERED, and spark-ori was logged in'
    # Asked once more, it is not posted once more.
    posted = len(stage.room.lines)
    answer = await ended(await stage.ask("second?", options))
    assert (answer.msgid, answer.question) == ("m9", "q2")
    waiting = await stage.ask("first?", options)
    stage.say("spark-ori", f"@{NICK} no")
    assert (await ended(waiting)).question == "q1"
    assert len(stage.room.lines) == posted
    third = await stage.ask("third?", options)
    assert not third.done()
    assert stage.questions.open[0].id == "q3"


@pytest.mark.fault("F1")
async def test_what_was_said_about_an_open_question_for_which_nobody_waits_is_no_silence(scene: Open) -> None:
    stage = scene(TrustConfig(timeout=60.0))
    for text in ("which flags?", "which branch?"):
        await stage.ask(text, (), place="#general" if "flags" in text else "#build")
    stage.kill()
    stage.open()
    stage.say("spark-ori", f"@{NICK} -O2, as always")
    assert [mail.remark for mail in stage.mail()] == ['it names no question; your question q1 is open: "which flags?"']
    assert [question.id for question in stage.questions.open] == ["q1", "q2"]
    stage.now += 61
    stage.questions.begin()
    await until(lambda: not stage.questions.open)
    assert stage.acts == ["pause"]
    assert [text for event, text in stage.alerts if event == "agent_timeout"] == [
        f'[TIMEOUT] {NICK} got no answer: "which branch?"; it is paused'
    ]


@pytest.mark.fault("F8")
async def test_an_answer_that_was_given_in_time_counts_after_the_deadline(scene: Open) -> None:
    stage = scene(TrustConfig(timeout=60.0))
    await stage.ask()
    asked = stage.now
    stage.kill()
    stage.now += 3600
    stage.open()
    stage.say("spark-bob", f"@{NICK} no", missed=True, at=asked + 61)
    assert stage.told("spark-bob").startswith("too late for q1")
    stage.say("spark-ori", f"@{NICK} yes", missed=True, at=asked + 59)
    stage.questions.begin()
    await stage.settled()
    assert stage.questions.recent[0].answer is not None
    assert stage.questions.recent[0].answer.outcome is Outcome.ANSWERED


async def test_what_was_said_in_time_counts_when_the_connection_is_back(scene: Open) -> None:
    stage = scene(TrustConfig(timeout=0.02))
    asking = await stage.ask()
    asked = stage.now
    stage.room.away = True
    stage.now += 1
    await until(lambda: stage.room.looks > 0)
    assert len(stage.questions.open) == 1
    stage.room.away = False
    stage.say("spark-ori", f"@{NICK} yes", missed=True, at=asked)
    stage.questions.begin()
    assert (await ended(asking)).outcome is Outcome.ANSWERED


async def test_what_nobody_answered_meanwhile_times_out_at_the_next_start(scene: Open) -> None:
    stage = scene(TrustConfig(timeout=60.0))
    await stage.ask()
    stage.kill()
    stage.now += 61
    stage.open()
    stage.questions.begin()
    async with asyncio.timeout(30):
        while stage.questions.open:
            await stage.settled()
    assert stage.acts == ["pause"]
    # The agent that asks again hears of it, once.
    assert (await ended(await stage.ask())).outcome is Outcome.TIMED_OUT
    assert not (await stage.ask()).done()


@pytest.mark.fault("F8")
async def test_a_message_that_was_counted_before_the_end_is_counted_once(scene: Open) -> None:
    stage = scene()
    await stage.ask()
    stage.kill()
    stage.open()
    # Counted and written, but killed before the message itself was.
    stage.say("spark-ori", f"@{NICK} yes", msgid="m1")
    stage.records.execute("DELETE FROM messages")
    stage.kill()
    stage.open()
    other = await stage.ask("something else?")
    taken = stage.say("spark-ori", f"@{NICK} yes", msgid="m1")
    assert taken is not None and taken.question == 1
    assert not other.done()


class Killed(BaseException):
    """The daemon does nothing more."""


def dies(*_: object, **__: object) -> None:
    raise Killed


@pytest.mark.fault("F8")
@pytest.mark.parametrize("after", ["vote", "close"])
async def test_killed_while_it_takes_an_answer_it_takes_it_when_it_comes_again(
    scene: Open, monkeypatch: pytest.MonkeyPatch, after: str
) -> None:
    stage = scene()
    await stage.ask()
    with monkeypatch.context() as killing, pytest.raises(Killed):
        if after == "vote":
            killing.setattr(stage.questions._store, "close", dies)
        else:
            killing.setattr(stage.inbox, "receive", dies)
        stage.say("spark-ori", f"@{NICK} yes", msgid="m1")
    stage.kill()
    stage.open()
    stage.say("spark-ori", f"@{NICK} yes", msgid="m1")
    assert stage.questions.open == []
    assert stage.notices == [("spark-ori", 'q1 is answered: "yes".')]


@pytest.mark.fault("F8")
async def test_killed_while_it_takes_a_no_to_several_it_takes_it_for_all_of_them(
    scene: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = scene()
    for text in ("Delete?", "Deploy?"):
        await stage.ask(text)
    close = stage.questions.close
    with monkeypatch.context() as killing, pytest.raises(Killed):
        killing.setattr(
            stage.questions,
            "close",
            lambda question, *given: close(question, *given) if question.number == 1 else dies(),
        )
        stage.say("spark-ori", "deny q1 q2", private=True, msgid="m1")
    stage.kill()
    stage.open()
    stage.say("spark-ori", "deny q1 q2", private=True, msgid="m1")
    assert stage.questions.open == []


async def test_an_answer_that_cannot_be_noted_at_first_is_told_once(
    scene: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = scene()
    asking = await stage.ask()
    with monkeypatch.context() as full, pytest.raises(Killed):
        full.setattr(stage.questions._store, "close", dies)
        stage.say("spark-ori", f"@{NICK} yes", msgid="m1")
    stage.say("spark-ori", f"@{NICK} yes", msgid="m1")
    assert (await ended(asking)).outcome is Outcome.ANSWERED
    assert (stage.mail(), stage.questions.open) == ([], [])


async def test_an_old_answer_is_not_the_answer_to_a_new_question(scene: Open) -> None:
    stage = scene()
    await stage.ask("deploy?")
    stage.kill()
    stage.open()
    stage.say("spark-ori", f"@{NICK} yes")
    turn = stage.inbox.begin(stage.mail(), "deploy")
    stage.inbox.end(turn, "done")
    stage.questions.turn_over()
    again = await stage.ask("deploy?")
    assert not again.done()
    assert stage.questions.open[0].id == "q2"


async def test_what_cannot_be_posted_was_not_asked(scene: Open) -> None:
    stage = scene()
    stage.room.broken = True
    with pytest.raises(NotSent):
        await ended(await stage.ask())
    assert stage.questions.open == []
    stage.room.broken = False
    await stage.ask()
    # A number is never used twice, not even one that nobody saw.
    assert stage.questions.open[0].id == "q2"


async def test_what_cannot_be_posted_nobody_waits_for(scene: Open) -> None:
    """It is posted by the start of the daemon, or by another call: who asks the same meanwhile waits for that."""
    stage = scene()
    stage.room.arrives = asyncio.Event()
    stage.room.broken = True
    first, second = await stage.ask(), await stage.ask()
    stage.room.arrives.set()
    for asking in (first, second):
        with pytest.raises(NotSent):
            await ended(asking)
    assert stage.questions.waiting == 0


async def test_there_are_so_many_and_no_more(scene: Open) -> None:
    stage = scene()
    for number in range(MOST_OPEN):
        await stage.ask(f"question {number}?")
    with pytest.raises(TooManyQuestions):
        await ended(await stage.ask("one more?"))
    stage.say("spark-ori", "deny " + " ".join(f"q{number}" for number in range(1, 101)), private=True)
    assert len(stage.questions.open) == MOST_OPEN - 100
    assert stage.questions.recent[0].answer is not None
    assert stage.questions.recent[0].answer.outcome is Outcome.DENIED


async def test_an_aborted_task_takes_its_questions_with_it(scene: Open) -> None:
    stage = scene()
    asking = await stage.ask()
    stage.questions.abandon("clean up")
    assert (await ended(asking)).outcome is Outcome.ABORTED
    with pytest.raises(NoSuchQuestion):
        await ended(await stage.again("q9"))


@pytest.mark.parametrize("trust", [None, RULES])
async def test_what_somebody_was_asked_in_private_nobody_else_answers_by_chance(
    scene: Open, trust: TrustConfig | None
) -> None:
    stage = scene(trust)
    asking = await stage.ask("the password of the vault?", (), place="spark-ori")
    stage.say("spark-bob", "lunch at one", private=True)
    assert [mail.text for mail in stage.mail()] == ["lunch at one"]
    assert len(stage.questions.open) == 1
    stage.say("spark-ori", "marmot", private=True)
    assert (await ended(asking)).text == "marmot"
    # Who names it may, and is told no more than that it has an answer.
    stage.say("spark-bob", "badger q1", private=True)
    assert "already answered by spark-ori" in stage.told("spark-bob")
    assert "marmot" not in stage.told("spark-bob")


async def test_what_is_more_than_a_choice_is_read_also_after_the_end_of_its_question(scene: Open) -> None:
    """Item A4: nothing that is said to the agent is lost, also where it names a question that has ended."""
    stage = scene(TrustConfig.model_validate({"timeout_action": "deny", "timeout": 0.02}))
    for text, options in (("which database?", ()), ("Delete it?", ("yes", "no"))):
        asking = await stage.ask(text, options)
        stage.now += 1
        assert (await ended(asking)).outcome is Outcome.TIMED_OUT
    stage.say("spark-ori", f"@{NICK} Postgres 16", reply="posted.1")
    assert stage.told("spark-ori").endswith("I read your message as one of its own.")
    stage.say("spark-ori", f"@{NICK} q2 yes, and rebuild the documentation")
    stage.say("spark-ori", f"@{NICK} yes, and publish it", reply="posted.2")
    stage.say("spark-ori", f"@{NICK} Yes! q2")
    assert stage.told("spark-ori").endswith("Nothing changes.")
    assert [(mail.text.removeprefix(f"@{NICK} "), mail.remark) for mail in stage.mail()] == [
        ("Postgres 16", 'it came after the end of your question q1, "which database?"'),
        ("q2 yes, and rebuild the documentation", "your question q2 had an end before, and this changes nothing of it"),
        ("yes, and publish it", "your question q2 had an end before, and this changes nothing of it"),
    ]


@pytest.mark.parametrize(
    "trust, place, text, tool, by, ends",
    [
        (None, "#general", "@spark-a which flags?", "", "spark-a", True),
        (None, "spark-a", "which flags?", "", "spark-a", True),
        (RULES.model_copy(update={"agents": "first"}), "#general", "@spark-a which flags?", "", "spark-a", True),
        (RULES, "#general", "@spark-a may I?", "", "spark-a", False),
        (None, "#general", "@spark-a, @spark-b, who knows?", "", "spark-a", False),
        (None, "#general", "anybody?", "", "spark-a", False),
        (None, "#general", "@spark-a which flags?", "", "spark-b", False),
        (None, "#general", "@spark-a may I?", "Bash", "spark-a", False),
    ],
)
async def test_only_who_was_asked_alone_and_could_answer_ends_a_question_by_giving_up(
    scene: Open, trust: TrustConfig | None, place: str, text: str, tool: str, by: str, ends: bool
) -> None:
    stage = scene(trust)
    asking = await stage.ask(text, (), place=place, tool=tool)
    now, tags = datetime.fromtimestamp(stage.now, UTC), {ClientTag.REPLY.value: "posted.1"}
    said = "[ERROR] I gave up on it"
    stage.questions.given_up(Message(place, by, said, now, "m1", kind=AGENT, notice=True, tags=tags))
    await stage.settled()
    assert asking.done() is ends
    if ends:
        answer = await asking
        assert (answer.outcome, answer.text, answer.by) == (Outcome.ABORTED, said, by)


async def test_what_is_asked_in_private_is_told_to_nobody_else(scene: Open) -> None:
    stage = scene()
    await stage.ask("the password of the vault?", (), place="spark-ori", timeout=0.02)
    stage.now += 1
    await until(lambda: len(stage.alerts) == 2)
    assert not [text for _, text in stage.alerts if "vault" in text]


async def test_what_it_asks_and_replies_carries_how_it_came_about(scene: Open) -> None:
    """Else agents that only ask each other would never come to the end of a chain."""
    stage = scene()
    await stage.ask("@spark-a, shall I?")
    await stage.again("q1", "because, @spark-a")
    assert [tags[ClientTag.HOPS.value] for tags in stage.room.tags] == ["4", "4"]


@pytest.mark.parametrize("was_said", [True, False])
async def test_a_question_that_may_have_been_posted_stays_and_is_posted_once(scene: Open, was_said: bool) -> None:
    """Else people would answer what the agent does not know any more, or be asked twice."""
    stage = scene()
    stage.room.lost = True
    asking = await stage.ask("Delete 47 files?")
    assert [each.id for each in stage.questions.open] == ["q1"]
    stage.room.lost = False
    if was_said:
        now = datetime.fromtimestamp(stage.now, UTC)
        stage.once.heard(Message("#general", NICK, "…", now, "posted.0", tags=stage.room.tags[0], own=True))
    await stage.questions.post_unposted()
    assert len(stage.room.lines) == (0 if was_said else 1)
    assert stage.questions.open[0].msgids == (("posted.0",) if was_said else ("posted.1",))
    await stage.questions.post_unposted()
    assert len(stage.room.lines) == (0 if was_said else 1)
    stage.say("spark-ori", f"@{NICK} yes")
    assert (await ended(asking)).outcome is Outcome.ANSWERED


async def test_where_lines_have_no_ids_every_message_is_about_what_it_says(scene: Open) -> None:
    stage = scene()
    stage.room.names_lines = False
    asking = await stage.ask("what is it called?", ())
    stage.say("spark-ori", f"@{NICK} marmot")
    assert (await ended(asking)).text == "marmot"
    assert stage.say("spark-ori", f"@{NICK} now build it") is None
    assert stage.say("spark-ori", f"@{NICK} and this", reply="-") is None


async def test_killed_before_it_was_posted_the_question_is_posted_at_the_next_start(scene: Open) -> None:
    stage = scene()
    stage.questions._store.add(replace(_asked("Delete?"), deadline=stage.now + 60))
    stage.kill()
    stage.open()
    stage.questions.begin()
    await stage.questions.post_unposted()
    assert [text for _, text in stage.room.lines] == [f"[QUESTION] Delete?\n{_reply(NICK)}"]
    # Asked again meanwhile, it is not posted once more.
    await stage.ask("Delete?")
    await stage.questions.post_unposted()
    assert len(stage.room.lines) == 1


async def test_what_is_posted_or_answered_while_another_is_being_posted_is_posted_once(scene: Open) -> None:
    stage = scene()
    for text in ("Delete?", "Deploy?", "Rename?"):
        stage.questions._store.add(replace(_asked(text), asked=stage.now, deadline=stage.now + 60))
    stage.room.arrives = first = asyncio.Event()
    posting = asyncio.create_task(stage.questions.post_unposted())
    await stage.settled()
    stage.room.arrives = None
    await stage.ask("Deploy?")
    stage.say("spark-ori", f"@{NICK} yes q3")
    first.set()
    await posting
    asked = [text.partition("\n")[0] for _, text in stage.room.lines]
    assert asked == ["[QUESTION] Deploy?", "[QUESTION] Delete?"]


async def test_what_becomes_of_a_question_while_it_is_being_posted_is_kept(scene: Open) -> None:
    stage = scene()
    stage.room.arrives = asyncio.Event()
    await stage.ask(timeout=60)
    await stage.ask(timeout=10)
    stage.say("spark-a", f"@{NICK} which files?", AGENT)
    stage.room.arrives.set()
    await stage.settled()
    [question] = stage.questions.open
    assert (question.msgids, question.deadline, question.discussed) == (("posted.1",), stage.now + 10, True)


def _asked(text: str) -> Question:
    return Question(0, "#general", text, ("yes", "no", "abort"), "", (), "clean up", 0.0, 0.0, "pause")


def _reply(nick: str) -> str:
    return f"Waiting for response. Reply with: @{nick} yes/no/abort"


async def test_votes_are_counted_by_the_last_word_of_each(scene: Open) -> None:
    stage = scene(TrustConfig(agents="vote"))
    await stage.ask()
    stage.say("spark-a", f"@{NICK} yes", UserClass.AGENT)
    stage.say("spark-a", f"@{NICK} no", UserClass.AGENT)
    stage.say("spark-b", f"@{NICK} yes", UserClass.AGENT)
    assert "1 of 2 so far" in stage.told("spark-b")


async def test_an_agent_that_is_logged_in_is_not_outvoted_by_who_is_not(scene: Open) -> None:
    """Anybody on the machine can connect as often as they like; an account is somebody."""
    stage = scene(TrustConfig(agents="vote"))
    stage.room.own_account, stage.room.accounts = NICK, {"spark-c": "spark-c"}
    asking = await stage.ask()
    for puppet in ("spark-a", "spark-b"):
        stage.say(puppet, f"@{NICK} yes", UserClass.BOT)
        assert "does not count" in stage.told(puppet)
    stage.say("spark-c", f"@{NICK} no", UserClass.AGENT, account="spark-c")
    assert (await ended(asking)).outcome is Outcome.DENIED


async def test_old_questions_are_forgotten_also_by_a_daemon_that_never_ends(scene: Open) -> None:
    stage = scene()
    for number in range(3):
        await stage.ask(f"{number}?")
        stage.say("spark-ori", f"@{NICK} yes")
    stage.now += KEPT_SECONDS + 1
    await stage.ask("new?")
    assert [question.text for question in stage.questions.recent] == []
