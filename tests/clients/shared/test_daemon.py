"""A daemon with an agent: who calls it gets an answer, once, and nothing is passed over."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from culture.protocol.vocabulary import AgentState, UserKey
from culture.server.ircd import IRCd
from tests.support.agents import agents_yaml, playbook, prompts, running
from tests.support.client import Client, registered
from tests.support.waiting import PATIENCE, until

NICK = "spark-claude"


def held(folder: Path, name: str = "go") -> list[dict[str, Any]]:
    """A turn that goes on until the test makes a file, however much it waits for before."""
    return [{"wait": {"until": str(folder / name), "timeout": 3 * PATIENCE}}, {"say": "done"}]


async def answered(client: Client, where: str) -> str:
    """The next thing the agent says there."""
    said = await client.expect("PRIVMSG", where, where=lambda message: message.source.startswith(f"{NICK}!"))
    return said.params[1]


@pytest.mark.requirement("F14", "F15", "F17", "L06", "L11")
async def test_a_mention_is_answered_where_it_came_from(ircd: IRCd, home: Path) -> None:
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, [])})
    async with registered(ircd.port, "spark-ori") as ori:
        await ori.join("#general")
        async with running(config, NICK) as daemon:
            ori.send(f"PRIVMSG #general :@{NICK} hello there")
            assert await answered(ori, "#general") == "heard: hello there"
            session = daemon.notes.session
            ori.send(f"PRIVMSG #general :@{NICK} and again")
            assert await answered(ori, "#general") == "heard: and again"
            assert daemon.notes.session == session is not None
        assert (await ori.expect("QUIT")).source.startswith(f"{NICK}!")


@pytest.mark.requirement("F15")
async def test_a_private_message_is_answered_in_private(ircd: IRCd, home: Path) -> None:
    config = agents_yaml(
        home, ircd.port, {"nick": NICK, "playbook": playbook(home, [{"when": "go", "steps": held(home)}])}
    )
    async with registered(ircd.port, "spark-ori") as ori, running(config, NICK) as daemon:
        ori.send(f"PRIVMSG {NICK} :psst")
        assert await answered(ori, "spark-ori") == "heard: psst"
        ori.send(f"PRIVMSG {NICK} :psst, go")
        await until(lambda: daemon.work.busy)
        await until(lambda: daemon.presence._told.get(UserKey.TASK) == "(private)")
        found = await ori.ask(f"METADATA {NICK} LIST")
        assert found
        assert not [each for each in found if "psst" in each.params[-1]]


@pytest.mark.requirement("F16")
async def test_a_prompt_begins_with_the_documented_line(ircd: IRCd, home: Path) -> None:
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, [])})
    async with registered(ircd.port, "spark-ori", "message-tags echo-message") as ori, running(config, NICK):
        await ori.join("#general")
        ori.send(f"PRIVMSG #general :@{NICK} build it")
        msgid = (await ori.expect("PRIVMSG", "#general")).tags["msgid"]
        assert await answered(ori, "#general") == "heard: build it"
    (prompt,) = prompts(home / "work")
    first, facts = prompt.splitlines()
    assert first == f"[IRC @mention in #general] <spark-ori> @{NICK} build it"
    assert facts.startswith(f"  (class: human; account: none; msgid: {msgid}; time: ")


@pytest.mark.fault("E9", "E11")
@pytest.mark.requirement("F18", "F19", "H28")
async def test_what_comes_while_it_is_busy_becomes_one_prompt(ircd: IRCd, home: Path) -> None:
    rules = [{"when": "first", "steps": held(home)}]
    agent = {"nick": NICK, "playbook": playbook(home, rules, [{"say": "{count}: {text}"}])}
    async with registered(ircd.port, "spark-ori") as ori, running(agents_yaml(home, ircd.port, agent), NICK) as daemon:
        await ori.join("#general")
        ori.send(f"PRIVMSG #general :@{NICK} first")
        await until(lambda: daemon.work.busy)
        for name in ("one", "two", "three"):
            ori.send(f"PRIVMSG #general :@{NICK} {name}")
        await until(lambda: daemon.inbox.counts()[0] == 3)
        (home / "go").touch()
        assert await answered(ori, "#general") == "done"
        assert await answered(ori, "#general") == "2: three"
        lines = [line for line in prompts(home / "work")[1].splitlines() if line.startswith("[IRC")]
        assert lines == [f"[IRC @mention in #general] <spark-ori> @{NICK} {name}" for name in ("one", "two", "three")]
        await until(lambda: not daemon.work.busy)
        assert daemon.inbox.counts() == (0, 0)
        assert [message for message in await ori.sync() if message.verb == "PRIVMSG"] == []


@pytest.mark.fault("E10")
async def test_who_calls_a_paused_agent_is_told_at_once_and_answered_later(ircd: IRCd, home: Path) -> None:
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, [])})
    async with registered(ircd.port, "spark-ori") as ori, running(config, NICK) as daemon:
        await ori.join("#general")
        ori.send(f"PRIVMSG #general :@{NICK} pause")
        assert "paused" in (await ori.expect("NOTICE", "spark-ori")).params[1]
        ori.send(f"PRIVMSG #general :@{NICK} are you there")
        notice = await ori.expect("NOTICE", "spark-ori")
        assert notice.params[1] == "I am paused; your message is kept and answered later."
        assert daemon.presence.state is AgentState.PAUSED
        ori.send(f"PRIVMSG #general :@{NICK} resume")
        assert await answered(ori, "#general") == "heard: are you there"


@pytest.mark.fault("E19")
async def test_status_is_told_to_who_asks_alone(ircd: IRCd, home: Path) -> None:
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, [])})
    async with registered(ircd.port, "spark-ori") as ori, registered(ircd.port, "spark-bob") as bob:
        await ori.join("#general")
        await bob.join("#general")
        async with running(config, NICK):
            ori.send(f"PRIVMSG #general :@{NICK} status")
            said = await ori.expect("NOTICE", "spark-ori", where=lambda each: each.source.startswith(NICK))
            assert said.params[1].startswith("idle since ")
            assert not [each for each in await bob.sync() if each.source.startswith(NICK) and each.verb == "PRIVMSG"]


async def test_an_agent_s_control_word_is_a_prompt(ircd: IRCd, home: Path) -> None:
    agents = ({"nick": NICK, "playbook": playbook(home, [])}, {"nick": "spark-bot"})
    config = agents_yaml(home, ircd.port, *agents)
    async with registered(ircd.port, "spark-bot") as bot, running(config, NICK) as daemon:
        await bot.ask("MODE spark-bot +B")
        await bot.join("#general")
        bot.send(f"PRIVMSG #general :@{NICK} pause")
        assert await answered(bot, "#general") == "heard: pause"
        assert not daemon.notes.paused


async def test_one_that_is_paused_at_work_says_that_it_will_pause(ircd: IRCd, home: Path) -> None:
    agent = {"nick": NICK, "playbook": playbook(home, [{"when": "work", "steps": held(home)}])}
    async with registered(ircd.port, "spark-ori") as ori, running(agents_yaml(home, ircd.port, agent), NICK) as daemon:
        await ori.join("#general")
        ori.send(f"PRIVMSG #general :@{NICK} work")
        await until(lambda: daemon.presence.state is AgentState.WORKING)
        assert (await daemon.service.status())["next"] is None
        ori.send(f"PRIVMSG #general :@{NICK} pause")
        await ori.expect("NOTICE", "spark-ori", where=lambda each: "paused" in each.params[1])
        ori.send(f"PRIVMSG #general :@{NICK} status")
        said = await ori.expect("NOTICE", "spark-ori", where=lambda each: "unread" in each.params[1])
        assert said.params[1].startswith('working on "work"') and "; pauses after this turn." in said.params[1]
        assert (await daemon.service.status())["next"] == "paused"
        await until(lambda: daemon.presence._told.get(UserKey.NEXT) == "paused")
        (home / "go").touch()
        await until(lambda: daemon.presence.state is AgentState.PAUSED)
        assert (await daemon.service.status())["next"] is None
        await until(lambda: daemon.presence._told.get(UserKey.NEXT) == "")


@pytest.mark.fault("E29")
async def test_quiet_hours_hold_messages_back_and_a_pause_outlives_them(ircd: IRCd, home: Path) -> None:
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, []), "quiet_hours": "00:00-23:59"})
    async with registered(ircd.port, "spark-ori") as ori, running(config, NICK) as daemon:
        await ori.join("#general")
        late = daemon.work._now().replace(hour=12, minute=0)
        daemon.work._now = lambda: late
        ori.send(f"PRIVMSG #general :@{NICK} good night")
        notice = await ori.expect("NOTICE", "spark-ori", where=lambda each: each.source.startswith(NICK))
        assert notice.params[1] == "I am quiet until 23:59; your message is kept and answered later."
        ori.send(f"PRIVMSG #general :@{NICK} pause")
        await ori.expect("NOTICE", "spark-ori", where=lambda each: "paused" in each.params[1])
        over = late.replace(hour=23, minute=59)
        daemon.work._now = lambda: over
        daemon.work.wake()
        ori.send(f"PRIVMSG #general :@{NICK} status")
        assert "1 unread" in (await ori.expect("NOTICE", "spark-ori")).params[1]
        ori.send(f"PRIVMSG #general :@{NICK} resume")
        assert await answered(ori, "#general") == "heard: good night"


@pytest.mark.requirement("F29")
@pytest.mark.parametrize("choice, expected", [("auto", ["sent"]), ("always", ["sent", "said"]), ("never", ["sent"])])
async def test_what_the_agent_said_itself_is_not_said_again(
    ircd: IRCd, home: Path, choice: str, expected: list[str]
) -> None:
    rules = [{"when": "go", "steps": [{"send": {"to": "#general", "text": "sent"}}, {"say": "said"}]}]
    agent = {"nick": NICK, "playbook": playbook(home, rules), "post_output": choice}
    async with registered(ircd.port, "spark-ori") as ori, running(agents_yaml(home, ircd.port, agent), NICK) as daemon:
        await ori.join("#general")
        ori.send(f"PRIVMSG #general :@{NICK} go")
        assert [await answered(ori, "#general") for _ in expected] == expected
        await until(lambda: not daemon.work.busy)
        assert [each.params[1] for each in await ori.sync() if each.verb == "PRIVMSG"] == []


async def test_what_arrives_after_its_turn_is_no_answer_of_the_next(
    ircd: IRCd, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is said after an outage, or by a command that the agent has left behind."""
    rules = [{"when": name, "steps": held(home, name)} for name in ("first", "second")]
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, rules)})
    async with registered(ircd.port, "spark-ori") as ori, running(config, NICK) as daemon:
        await ori.join("#general")
        surely, goes = daemon.once.say_surely, asyncio.Event()

        async def late(*given: Any) -> list[str]:
            await goes.wait()
            return await surely(*given)

        monkeypatch.setattr(daemon.once, "say_surely", late)
        ori.send(f"PRIVMSG #general :@{NICK} first")
        await until(lambda: daemon.work.busy)
        sending = asyncio.create_task(daemon.service.send("#general", "on its way"))
        (home / "first").touch()
        assert await answered(ori, "#general") == "done"
        ori.send(f"PRIVMSG #general :@{NICK} second")
        await until(lambda: daemon.work.busy)
        goes.set()
        await sending
        assert await answered(ori, "#general") == "on its way"
        (home / "second").touch()
        assert await answered(ori, "#general") == "done"


async def test_an_error_of_the_model_is_told_as_an_error_and_tried_once_more(ircd: IRCd, home: Path) -> None:
    rules = [{"when": "go", "steps": [{"error": "API Error: 529 overloaded"}]}]
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, rules)})
    async with registered(ircd.port, "spark-ori") as ori, running(config, NICK) as daemon:
        await ori.join("#general")
        ori.send(f"PRIVMSG #general :@{NICK} go")
        first = await ori.expect("NOTICE", "#general")
        assert first.params[1] == "[ERROR] API Error: 529 overloaded; I try once more."
        second = await ori.expect("NOTICE", "#general")
        assert second.params[1].startswith("[ERROR] I gave up on spark-ori's message ")
        assert daemon.inbox.counts() == (0, 0)
        assert not [each for each in ori.seen if each.verb == "PRIVMSG" and "API Error" in each.params[1]]


@pytest.mark.requirement("H08", "L07")
async def test_a_question_waits_for_an_answer_to_it(ircd: IRCd, home: Path) -> None:
    rules = [
        {
            "when": "deploy",
            "steps": [{"ask": {"to": "#general", "question": "really?", "timeout": PATIENCE}}, {"say": "so: {output}"}],
        }
    ]
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, rules), "post_output": "always"})
    async with registered(ircd.port, "spark-ori") as ori, running(config, NICK) as daemon:
        await ori.join("#general")
        ori.send(f"PRIVMSG #general :@{NICK} deploy")
        assert await answered(ori, "#general") == "[QUESTION] really?"
        ori.send("PRIVMSG #general :just chatting")
        await until(lambda: daemon.presence.state is AgentState.ASKING)
        ori.send(f"PRIVMSG #general :@{NICK} yes, go ahead")
        assert await answered(ori, "#general") == "so: yes, go ahead"


async def test_messages_of_the_first_seconds_are_not_lost(ircd: IRCd, home: Path) -> None:
    """What is said between a stop and the next start is caught up with."""
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, [])})
    async with registered(ircd.port, "spark-ori") as ori:
        await ori.join("#general")
        async with running(config, NICK):
            ori.send(f"PRIVMSG #general :@{NICK} one")
            assert await answered(ori, "#general") == "heard: one"
        ori.send(f"PRIVMSG #general :@{NICK} two")
        await ori.sync()
        async with running(config, NICK):
            assert await answered(ori, "#general") == "heard: two"
            ori.send(f"PRIVMSG #general :@{NICK} three")
            assert await answered(ori, "#general") == "heard: three"


@pytest.mark.fault("E35")
@pytest.mark.requirement("H13", "L10")
async def test_after_compaction_the_agent_is_told_who_it_is(ircd: IRCd, home: Path) -> None:
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, [])})
    async with registered(ircd.port, "spark-ori") as ori, running(config, NICK) as daemon:
        await ori.join("#general")
        ori.send(f"PRIVMSG #general :@{NICK} build the thing")
        await answered(ori, "#general")
        ori.send(f"PRIVMSG #general :@{NICK} compact")
        await ori.expect("NOTICE", "spark-ori", where=lambda each: "shorten my context" in each.params[1])
        await until(lambda: not daemon.work.busy)
        ori.send(f"PRIVMSG #general :@{NICK} and now?")
        assert await answered(ori, "#general") == "heard: and now?"
        last = prompts(home / "work")[-1]
        assert f"(your context was shortened: you are {NICK} on IRC, and answer where you are asked." in last
        assert 'The last task was "build the thing" from #general.' in last


@pytest.mark.requirement("H14")
async def test_clearing_begins_a_new_conversation_and_leaves_irc_alone(ircd: IRCd, home: Path) -> None:
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, [], [{"say": "{count}"}])})
    async with registered(ircd.port, "spark-ori") as ori, running(config, NICK) as daemon:
        await ori.join("#general")
        for count in ("1", "2"):
            ori.send(f"PRIVMSG #general :@{NICK} hello")
            assert await answered(ori, "#general") == count
        session = daemon.notes.session
        ori.send(f"PRIVMSG #general :@{NICK} clear")
        await until(lambda: daemon.notes.session != session)
        ori.send(f"PRIVMSG #general :@{NICK} hello")
        assert await answered(ori, "#general") == "1"
        assert "#general" in daemon.transport.channels


async def test_an_aborted_task_says_nothing_more_and_the_next_is_its_own(ircd: IRCd, home: Path) -> None:
    rules = [{"when": "long", "steps": held(home, "never")}]
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, rules)})
    async with registered(ircd.port, "spark-ori") as ori, running(config, NICK) as daemon:
        await ori.join("#general")
        ori.send(f"PRIVMSG #general :@{NICK} long work")
        await until(lambda: daemon.work.busy)
        ori.send(f"PRIVMSG #general :@{NICK} next")
        ori.send(f"PRIVMSG #general :@{NICK} abort")
        told = await ori.expect("NOTICE", "spark-ori", where=lambda each: "aborted" in each.params[1])
        assert told.params[1] == 'aborted "long work".'
        assert await answered(ori, "#general") == "heard: next"
        await until(lambda: not daemon.work.busy)
        assert daemon.inbox.counts() == (0, 0)


FULL = {"error": {"text": "prompt is too long", "full": True}}


@pytest.mark.parametrize("works", [True, False])
async def test_what_begins_while_a_stuck_task_is_being_aborted_is_not_aborted(
    ircd: IRCd, home: Path, works: bool
) -> None:
    rules = [{"when": name, "steps": held(home, name)} for name in ("first", "second")]
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, rules)})
    async with registered(ircd.port, "spark-ori") as ori, running(config, NICK) as daemon:

        async def takes_its_time() -> None:
            (home / "first").touch()
            daemon.work.wake()
            await until(lambda: daemon.work.prompt is not None and "second" in daemon.work.prompt.text)

        await ori.join("#general")
        ori.send(f"PRIVMSG #general :@{NICK} first")
        await until(lambda: daemon.work.busy)
        daemon.notes.held = "first"
        if not works:
            await daemon.keeper._on_exit(daemon.keeper.runner, 3)  # type: ignore[arg-type]
            await until(lambda: daemon.inbox.waiting and daemon.keeper.ready)
        ori.send(f"PRIVMSG #general :@{NICK} second")
        await until(lambda: daemon.inbox.counts()[0] == (1 if works else 2))
        daemon.service.on_release = takes_its_time
        assert (await daemon.service.abort()).startswith('aborted "first"')
        (home / "second").touch()
        assert await answered(ori, "#general") == "done"
        assert "first" not in prompts(home / "work")[-1]


@pytest.mark.fault("E36")
async def test_a_full_session_hands_over_to_a_new_one(ircd: IRCd, home: Path) -> None:
    rules = [{"when": "was full", "steps": [{"say": "{count}: {text}"}]}, {"when": "more", "steps": [FULL]}]
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, rules)})
    async with registered(ircd.port, "spark-ori") as ori, running(config, NICK) as daemon:
        await ori.join("#general")
        ori.send(f"PRIVMSG #general :@{NICK} build the thing")
        await answered(ori, "#general")
        session = daemon.notes.session
        ori.send(f"PRIVMSG #general :@{NICK} more of it")
        assert await answered(ori, "#general") == "1: more of it"
        await until(lambda: not daemon.work.busy)
        assert daemon.notes.session not in (None, session)
        assert daemon.inbox.counts() == (0, 0)
        assert not [each for each in await ori.sync() if each.verb == "NOTICE"]
    before, _, last = prompts(home / "work")
    assert before.splitlines()[0] == f"[IRC @mention in #general] <spark-ori> @{NICK} build the thing"
    assert "repeated: it may have reached you before" in last
    assert "(your last session was full, and this is a new one; what you were last given:" in last
    assert "in #general: build the thing (done)" in last


@pytest.mark.fault("E36")
async def test_what_a_new_session_is_told_outlives_a_crash(ircd: IRCd, home: Path) -> None:
    dies_once = {"run": "mkdir died && kill -9 $PPID"}
    rules = [{"when": "was full", "steps": [dies_once, {"say": "here"}]}, {"when": "more", "steps": [FULL]}]
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, rules)})
    async with registered(ircd.port, "spark-ori") as ori, running(config, NICK):
        await ori.join("#general")
        ori.send(f"PRIVMSG #general :@{NICK} more of it")
        await ori.expect("NOTICE", "#general", where=lambda each: "I gave up" in each.params[1])
        ori.send(f"PRIVMSG #general :@{NICK} and now?")
        assert await answered(ori, "#general") == "here"
    last = prompts(home / "work")[-1]
    assert last.count("(your last session was full, and this is a new one") == 1
    assert last.count("(your process had ended and was started again, in the same session)") == 1


@pytest.mark.fault("E36")
async def test_what_fits_into_no_session_is_given_up_and_its_sender_is_told(ircd: IRCd, home: Path) -> None:
    rules = [{"when": r"> @\S+ enormous", "steps": [FULL]}]
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, rules)})
    async with registered(ircd.port, "spark-ori") as ori, running(config, NICK) as daemon:
        await ori.join("#general")
        ori.send(f"PRIVMSG #general :@{NICK} enormous")
        told = await ori.expect("NOTICE", "#general")
        assert told.params[1].startswith("[ERROR] I gave up on spark-ori's message ")
        assert told.params[1].endswith(": it does not fit into my context")
        ori.send(f"PRIVMSG #general :@{NICK} small")
        assert await answered(ori, "#general") == "heard: small"
        assert daemon.inbox.counts() == (0, 0)
