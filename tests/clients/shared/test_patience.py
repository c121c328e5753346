"""A question outlives the call that asked it: the call returns within its bound, the end comes as a prompt."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from culture.clients.shared.assembly import assemble
from culture.clients.shared.prompts import shown
from culture.clients.shared.questions import Outcome
from culture.config.agents import TrustConfig
from culture.server.ircd import IRCd
from tests.clients.shared.test_asking import CLIENT, TRUST, told
from tests.clients.shared.test_daemon import NICK, answered
from tests.support.agents import agents_yaml, playbook, process, prompts, running
from tests.support.asking import Scene
from tests.support.client import registered
from tests.support.waiting import until

BOUND = 0.05
ASK = f"{CLIENT.replace(' 2>/dev/null', '')} ask '#general' --options yes/no 'Delete it?' 2>&1"
RULES = [
    {"when": "answers your question", "steps": [{"say": "so it is settled"}]},
    {"when": "nobody answered in time", "steps": [{"say": "so I leave it"}]},
    {"when": "clean", "steps": [{"run": {"command": ASK, "timeout": 60}}, {"say": "{code} {output}"}]},
]
AGENT = {"nick": NICK, "ask_bound": 0.2, "post_output": "always"}


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Scene]:
    scene = Scene(tmp_path, TrustConfig())
    yield scene
    scene.close()


async def test_a_call_that_waits_no_longer_leaves_its_question_as_it_was(stage: Scene) -> None:
    answer = await (await stage.ask(bound=BOUND))
    assert (answer.outcome, answer.question, answer.text, answer.by) == (Outcome.ASKED, "q1", None, None)
    [question] = stage.questions.open
    assert question.deadline - question.asked == 1800
    assert stage.questions.waiting == 0
    again = await stage.questions.again("q1", bound=BOUND)
    assert again.outcome is Outcome.ASKED, "the wait was taken up again and is bounded as well"
    stage.say("spark-ori", f"@{NICK} yes q1", account="ori")
    [mail] = stage.mail()
    assert mail.remark == ('answers your question q1, "Delete 47 files?": ANSWERED, and spark-ori was logged in')


async def test_a_call_that_is_left_behind_by_its_turn_gets_no_answer_that_the_agent_would_not_have(
    stage: Scene,
) -> None:
    """It runs in the background of its program, where what it prints is nobody's word."""
    left = await stage.ask(in_turn=True)
    tool = await stage.ask("Bash: make", tool="Bash")
    stage.questions.turn_over()
    stage.say("spark-ori", f"@{NICK} yes q1")
    stage.say("spark-ori", f"@{NICK} yes q2")
    assert [(await each).outcome for each in (left, tool)] == [Outcome.ASKED, Outcome.ANSWERED]
    [mail] = stage.mail()
    assert mail.remark.startswith('answers your question q1, "Delete 47 files?": ANSWERED')


@pytest.mark.parametrize("noted", [False, True])
async def test_nothing_is_lost_between_the_answer_and_its_prompt(stage: Scene, noted: bool) -> None:
    await (await stage.ask(bound=BOUND))
    if noted:
        stage.say("spark-ori", f"@{NICK} yes q1", msgid="m1")
    else:
        # The question is closed on disk, and the message is not there yet.
        stage.inbox.receive = lambda *_, **__: False  # type: ignore[method-assign]
        stage.say("spark-ori", f"@{NICK} yes q1", msgid="m1")
    stage.kill()
    stage.open()
    stage.say("spark-ori", f"@{NICK} yes q1", msgid="m1")
    [mail] = stage.mail()
    assert 'answers your question q1, "Delete 47 files?": ANSWERED' in shown(mail)


@pytest.mark.parametrize("action", ["pause", "deny", "abort"])
async def test_that_nobody_answered_is_a_prompt_where_no_call_waits(stage: Scene, action: str, tmp_path: Path) -> None:
    stage.kill()
    stage = Scene(tmp_path, TrustConfig.model_validate({"timeout_action": action}))
    await (await stage.ask(bound=BOUND, timeout=0.3))
    stage.now += 1
    await until(lambda: not stage.questions.open)
    stage.kill()
    stage.open()
    [mail] = stage.mail()
    first, facts = shown(mail).split("\n")
    assert first.startswith('[SELF] your question q1 in #general, "Delete 47 files?": nobody answered in time.')
    assert facts == "  (of something you began in #general; nobody said it, and it permits nothing)"
    # Who asks the same before it reads that is told at once, and not once more.
    answer = await (await stage.ask())
    assert (answer.outcome, stage.mail()) == (Outcome.TIMED_OUT, [])
    stage.close()


async def test_who_has_read_that_nobody_answered_may_ask_once_more(stage: Scene) -> None:
    await (await stage.ask(bound=BOUND, timeout=0.3))
    stage.now += 1
    await until(lambda: not stage.questions.open)
    turn = stage.inbox.begin(stage.mail(), "what it is about")
    answer = await (await stage.ask(bound=BOUND))
    assert (answer.outcome, answer.question) == (Outcome.ASKED, "q2")
    stage.inbox.end(turn, "done")
    stage.questions.turn_over()
    assert stage.mail() == []


async def test_the_answer_of_a_person_who_takes_their_time_is_the_next_prompt(ircd: IRCd, home: Path) -> None:
    config = agents_yaml(home, ircd.port, {**AGENT, "playbook": playbook(home, RULES)}, rules=TRUST)
    async with registered(ircd.port, "spark-ori") as ori, running(config, NICK) as daemon:
        await ori.join("#general")
        ori.send(f"PRIVMSG #general :@{NICK} clean")
        said = await ori.expect("PRIVMSG", "#general", where=lambda each: "asked as q1" in each.params[1])
        assert said.params[1] == (
            "6 irc_client: not answered yet, asked as q1: end your turn, the answer comes as your next prompt"
        )
        await until(lambda: not daemon.work.busy)
        ori.send(f"PRIVMSG #general :@{NICK} yes q1")
        assert await answered(ori, "#general") == "so it is settled"
    assert 'answers your question q1, "Delete it?": ANSWERED' in prompts(home / "work")[-1]


async def test_an_answer_in_a_pause_survives_a_kill(ircd: IRCd, home: Path) -> None:
    agents_yaml(home, ircd.port, {**AGENT, "playbook": playbook(home, RULES)}, rules=TRUST)
    async with registered(ircd.port, "spark-ori") as ori:
        await ori.join("#general")
        async with process(NICK, home) as daemon:
            await ori.expect("JOIN", "#general")
            ori.send(f"PRIVMSG #general :@{NICK} clean")
            await ori.expect("PRIVMSG", "#general", where=lambda each: each.params[1].startswith("6 "))
            ori.send(f"PRIVMSG {NICK} :@{NICK} pause")
            await told(ori, "paused")
            ori.send(f"PRIVMSG #general :@{NICK} yes q1")
            await told(ori, "q1 is answered")
            await daemon.kill()
            await daemon.start()
            await ori.expect("JOIN", "#general")
            ori.send(f"PRIVMSG {NICK} :@{NICK} resume")
            assert await answered(ori, "#general") == "so it is settled"
            assert await daemon.stop() == 0


async def test_the_bound_is_the_backend_s_unless_the_file_says_otherwise(ircd: IRCd, home: Path) -> None:
    for said, bound in (({}, None), ({"ask_bound": "off"}, None), ({"ask_bound": "20s"}, 20.0)):
        daemon = assemble(agents_yaml(home, ircd.port, {"nick": NICK, **said}), NICK)
        assert daemon.service._ask_bound == bound
        daemon.records.close()
    pytest.importorskip("claude_agent_sdk")
    for said, bound in (({}, 90.0), ({"ask_bound": "off"}, None)):
        daemon = assemble(agents_yaml(home, ircd.port, {"nick": NICK, "agent": "claude", **said}), NICK)
        assert daemon.service._ask_bound == bound
        daemon.records.close()
