"""Work that was cut off or paused is not abandoned: the agent is told of it, and it is not announced as complete."""

from pathlib import Path
from typing import Any

import pytest

from culture.clients.shared.daemon import AgentDaemon
from culture.clients.shared.queued import QueuedRunner
from culture.server.ircd import IRCd
from tests.clients.shared.test_asking import CLIENT, TRUST, told
from tests.clients.shared.test_daemon import NICK, answered, held
from tests.support.agents import FAST, agents_yaml, playbook, process, prompts, running
from tests.support.client import Client, registered
from tests.support.waiting import until

ASK = f"{CLIENT} ask '#general' --options yes/no 'Delete it?'"
CLEAN = {"when": f"{NICK} clean", "steps": [{"run": {"command": ASK, "timeout": 60}}, {"say": "code {code}"}]}
WORK: dict[str, Any] = {"when": f"{NICK} work"}


def notes(home: Path, number: int = -1) -> list[str]:
    """The daemon's notes in a prompt, without their times."""
    lines = [line for line in prompts(home / "work")[number].splitlines() if line.startswith("(")]
    return [f"({line.partition('UTC: ')[2]}" if "UTC: " in line else line for line in lines]


def completed(alerts: Client) -> list[str]:
    """The tasks that were announced as complete so far."""
    said = [each.params[1] for each in alerts.seen if each.verb == "PRIVMSG" and each.params[0] == "#alerts"]
    return [text.split('"')[1] for text in said if text.startswith("[COMPLETE]")]


async def complete(alerts: Client) -> str:
    """The task that is announced as complete next."""
    said = await alerts.expect("PRIVMSG", "#alerts", where=lambda each: each.params[1].startswith("[COMPLETE]"))
    return said.params[1].split('"')[1]


def in_background(daemon: AgentDaemon, *tasks: str) -> None:
    """What the program tells of its background work, as a backend passes it on."""
    runner = daemon.keeper.runner
    assert isinstance(runner, QueuedRunner)
    runner.background.called("call")
    for task in tasks:
        runner.background.started(task, "call")
    runner.background.runs(tasks)


@pytest.mark.requirement("J06")
async def test_task_is_complete_with_the_answer_to_its_question(ircd: IRCd, home: Path) -> None:
    """The call that asked has returned, the closing text is posted: "I wait" completes nothing."""
    file = playbook(home, [CLEAN], [{"say": "so it is"}])
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": file, "ask_bound": 0.2}, rules=TRUST)
    async with registered(ircd.port, "spark-ori") as ori, running(config, NICK) as daemon:
        for channel in ("#general", "#alerts"):
            await ori.join(channel)
        ori.send(f"PRIVMSG #general :@{NICK} clean")
        await ori.expect("PRIVMSG", "#general", "code 6")
        ori.send(f"PRIVMSG #general :@{NICK} how are you?")
        assert await complete(ori) == "how are you?"
        await until(lambda: not daemon.work.busy)
        ori.send(f"PRIVMSG #general :@{NICK} yes q1")
        assert await complete(ori) == "clean"
        assert completed(ori) == ["how are you?", "clean"]


async def test_task_is_complete_when_nothing_of_its_place_is_unread_or_in_the_background(
    ircd: IRCd, home: Path
) -> None:
    rules = [{**WORK, "steps": held(home)}, {"when": f"{NICK} more", "steps": held(home, "more")}]
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, rules)})
    async with registered(ircd.port, "spark-ori") as ori, running(config, NICK) as daemon:
        for channel in ("#general", "#alerts"):
            await ori.join(channel)
        ori.send(f"PRIVMSG #general :@{NICK} work")
        await until(lambda: daemon.work.busy)
        ori.send(f"PRIVMSG #general :@{NICK} more")
        ori.send(f"PRIVMSG {NICK} :psst")
        await until(lambda: daemon.inbox.counts()[0] == 2)
        (home / "go").touch()
        await until(lambda: daemon.work.turn == 2)
        in_background(daemon, "long test")
        (home / "more").touch()
        assert await complete(ori) == "(private)", "what waits in other places is no part of it"
        await until(lambda: not daemon.work.busy)
        in_background(daemon)
        daemon.inbox.news("n1", "#general", "your command long test has ended")
        daemon.work.wake()
        assert await complete(ori) == "work"
        # A wake-up of something that is complete completes nothing once more.
        daemon.inbox.news("n2", "#general", "you wanted to be woken")
        daemon.work.wake()
        await ori.expect("PRIVMSG", "#general", where=lambda each: "to be woken" in each.params[1])
        await until(lambda: daemon.inbox.counts() == (0, 0) and not daemon.work.busy)
        ori.send(f"PRIVMSG #general :@{NICK} end")
        assert await complete(ori) == "end"


async def test_task_of_an_agent_that_the_supervisor_holds_is_not_complete(ircd: IRCd, home: Path) -> None:
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, [{**WORK, "steps": held(home)}])})
    async with registered(ircd.port, "spark-ori") as ori, running(config, NICK) as daemon:
        for channel in ("#general", "#alerts"):
            await ori.join(channel)
        ori.send(f"PRIVMSG #general :@{NICK} work")
        await until(lambda: daemon.work.busy)
        daemon.notes.held = "work"
        (home / "go").touch()
        assert await answered(ori, "#general") == "done"
        await until(lambda: not daemon.work.busy)
        daemon.notes.held = None
        ori.send(f"PRIVMSG #general :@{NICK} end")
        assert await complete(ori) == "end"
        assert completed(ori) == ["end"]


async def test_silence_pauses_a_task_and_resume_takes_it_up_again(ircd: IRCd, home: Path) -> None:
    rules = {"trust": {"timeout": 0.5, "timeout_action": "pause"}}
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, [CLEAN])}, rules=rules)
    async with (
        registered(ircd.port, "spark-ori") as ori,
        registered(ircd.port, "spark-ann") as ann,
        running(config, NICK) as daemon,
    ):
        for channel in ("#general", "#alerts"):
            await ori.join(channel)
        await ann.join("#general")
        ori.send(f"PRIVMSG #general :@{NICK} clean")
        await ori.expect("PRIVMSG", "#general", "code 3")
        await until(lambda: not daemon.work.busy)
        assert (daemon.notes.paused, daemon.inbox.counts()) == (True, (1, 0))
        ann.send(f"PRIVMSG #general :@{NICK} resume because the disk is free (again)")
        await told(ann, "going on.")
        await ori.expect("PRIVMSG", "#general", "code 3")
        await until(lambda: not daemon.work.busy)
        await ori.sync()
        assert completed(ori) == []
    again = prompts(home / "work")[1].splitlines()
    assert again[0] == f"[IRC @mention in #general] <spark-ori> @{NICK} clean"
    assert again[2] == f"[IRC @mention in #general] <spark-ann> @{NICK} resume because the disk is free (again)"
    assert again[3].endswith("; with this message its sender let you go on)")
    assert notes(home) == [
        "(your turn was cut off: nobody answered your question q1 in time, and you were paused. Its messages come"
        ' again; it was about "clean", asked by spark-ori in #general)',
        '(spark-ann let you go on: "the disk is free ⦅again⦆")',
    ]


async def test_question_that_outlived_its_call_pauses_and_tells_of_its_task(ircd: IRCd, home: Path) -> None:
    rules = {"trust": {"timeout": 1.5, "timeout_action": "pause"}}
    agent = {"nick": NICK, "playbook": playbook(home, [CLEAN]), "ask_bound": 0.2}
    async with registered(ircd.port, "spark-ori") as ori:
        async with running(agents_yaml(home, ircd.port, agent, rules=rules), NICK) as daemon:
            for channel in ("#general", "#alerts"):
                await ori.join(channel)
            ori.send(f"PRIVMSG #general :@{NICK} clean")
            await ori.expect("PRIVMSG", "#general", "code 6")
            await until(lambda: daemon.notes.paused)
            assert completed(ori) == []
        async with running(agents_yaml(home, ircd.port, agent, rules=rules), NICK) as daemon:
            ori.send(f"PRIVMSG {NICK} :@{NICK} resume")
            assert await complete(ori) == "clean"
    prompt = prompts(home / "work")[-1]
    assert prompt.startswith('[SELF] your question q1 in #general, "Delete it?": nobody answered in time.')
    assert notes(home) == [
        "(you were paused: nobody answered your question q1 in time;"
        ' it was about "clean", asked by spark-ori in #general)',
        "(spark-ori let you go on)",
    ]


async def test_pause_of_a_private_task_is_told_elsewhere_without_its_words(ircd: IRCd, home: Path) -> None:
    rules = [{"when": "salary", "steps": held(home)}]
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, rules)})
    async with registered(ircd.port, "spark-ori") as ori, running(config, NICK) as daemon:
        await ori.join("#general")
        ori.send(f"PRIVMSG {NICK} :my salary is 5000")
        await until(lambda: daemon.work.busy)
        ori.send(f"PRIVMSG {NICK} :@{NICK} pause")
        await told(ori, "paused")
        (home / "go").touch()
        await until(lambda: not daemon.work.busy)
        ori.send(f"PRIVMSG #general :@{NICK} hello")
        await told(ori, "I am paused")
        ori.send(f"PRIVMSG {NICK} :@{NICK} resume: tell nobody of it")
        assert await answered(ori, "#general") == "heard: hello"
        await until(lambda: not daemon.work.busy)
    general, private = prompts(home / "work")[1:]
    assert "salary" not in general and "nobody" not in general
    assert notes(home, 1) == [
        "(spark-ori paused you; it was about a private task of spark-ori)",
        "(spark-ori let you go on, with a reason in private)",
    ]
    assert private.splitlines()[0] == f"[IRC DM] <spark-ori> @{NICK} resume: tell nobody of it"
    assert notes(home, 2) == [], "it was told once"


NEVER = {"wait": {"until": "/nowhere", "timeout": 60}}


@pytest.mark.parametrize(
    "step, text",
    [
        pytest.param({"crash": 3}, "crashed with code 3. Its messages come again", id="crash"),
        pytest.param(NEVER, "you gave no sign of life for 1 s. Its messages do not come again", id="silence"),
    ],
)
async def test_agent_is_told_of_a_turn_that_was_cut_off(
    ircd: IRCd, home: Path, step: dict[str, Any], text: str
) -> None:
    file = playbook(home, [{"when": r"(?s:\A(?!.*repeated).*> \S+ work)", "steps": [step]}])
    quick = {"recovery": {**FAST, "silence": 1}}
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": file}, rules=quick)
    async with registered(ircd.port, "spark-ori") as ori, running(config, NICK) as daemon:
        for channel in ("#general", "#alerts"):
            await ori.join(channel)
        ori.send(f"PRIVMSG #general :@{NICK} work")
        await ori.expect("NOTICE", "#general", where=lambda each: "[ERROR]" in each.params[1])
        ori.send(f"PRIVMSG #general :@{NICK} go on?")
        await until(lambda: len(prompts(home / "work")) > 1 and daemon.inbox.counts() == (0, 0))
        await until(lambda: not daemon.work.busy)
    first = notes(home, 1)[0]
    assert first == f'(your turn was cut off: {text}; it was about "work", asked by spark-ori in #general)'


async def test_agent_is_told_of_a_turn_in_which_its_daemon_was_killed(ircd: IRCd, home: Path) -> None:
    agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, [{**WORK, "steps": held(home)}])})
    async with registered(ircd.port, "spark-ori") as ori, process(NICK, home) as daemon:
        await ori.join("#general")
        await ori.expect("JOIN", "#general")
        ori.send(f"PRIVMSG #general :@{NICK} work")
        await until(lambda: bool(prompts(home / "work")))
        await daemon.kill()
        (home / "go").touch()
        await daemon.start()
        assert await answered(ori, "#general") == "done"
        assert await daemon.stop() == 0
    assert notes(home) == [
        '(your daemon ended in a turn. Its messages come again; it was about "work", asked by spark-ori in #general)'
    ]


async def test_news_that_is_given_up_is_named_by_its_words(ircd: IRCd, home: Path) -> None:
    file = playbook(home, [{"when": "long test", "steps": [{"error": "API Error: 529 overloaded"}]}])
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": file})
    async with registered(ircd.port, "spark-ori") as ori, running(config, NICK) as daemon:
        await ori.join("#general")
        daemon.inbox.news("n1", "#general", "your command long test has ended")
        daemon.work.wake()
        await ori.expect("NOTICE", "#general", "[ERROR] API Error: 529 overloaded; I try once more.")
        told = await ori.expect("NOTICE", "#general")
        words = "your command long test has ended"
        assert told.params[1] == f'[ERROR] I gave up on news of my own program, "{words}": API Error: 529 overloaded'
