"""An agent with a supervisor, among people: what is whispered, who hears it, and what happens when it does not help."""

import json
from pathlib import Path
from typing import Any

import pytest

from culture.clients.shared.daemon import AgentDaemon
from culture.clients.shared.ipc import Whisper
from culture.clients.shared.whispering import Advice
from culture.config.agents import AgentsConfig
from culture.protocol.vocabulary import AgentState
from culture.server.ircd import IRCd
from tests.clients.shared.test_daemon import NICK, answered, held
from tests.support.agents import agents_yaml, playbook, prompts, running
from tests.support.client import Client, registered
from tests.support.clock import sleep
from tests.support.waiting import until

RETRY: dict[str, Any] = {"run": "cmake --build build || true"}
FIVE: dict[str, Any] = {"loop": {"times": 5, "steps": [RETRY]}}
STUCK = {"when": "cmake --build", "verdict": "CORRECTION You have retried cmake. Read the first error."}


def configured(
    home: Path, ircd: IRCd, rules: list[dict[str, Any]], judge: list[dict[str, Any]], **supervisor: Any
) -> AgentsConfig:
    """An agent with these rules, and a supervisor with those."""
    judging = home / "judge.yaml"
    judging.write_text(json.dumps({"judge": judge}), encoding="utf-8")
    settings = {"agent": "scripted", "playbook": str(judging), **supervisor}
    agent = {"nick": NICK, "playbook": playbook(home, rules)}
    return agents_yaml(home, ircd.port, agent, {"nick": "spark-bot"}, rules={"supervisor": settings})


async def said_in(client: Client, where: str, word: str) -> str:
    """The next line of the agent there that has this word."""

    def fits(message: Any) -> bool:
        return message.source.startswith(f"{NICK}!") and word in message.params[1]

    return (await client.expect("PRIVMSG", where, where=fits)).params[1]


async def settled(daemon: AgentDaemon) -> None:
    """Nothing is worked on and nothing is judged."""
    await until(lambda: not daemon.work.busy and not daemon._turns._items)
    await daemon.supervision._supervisor.rest()  # type: ignore[union-attr]


async def ended(daemon: AgentDaemon, turns: int) -> None:
    """So many turns are over."""
    await until(lambda: len(daemon.inbox.journal(turns)) == turns)


@pytest.mark.fault("E28")
@pytest.mark.requirement("I09", "I16", "I18", "K05", "L08")
async def test_a_whisper_reaches_an_agent_that_calls_no_tool_of_irc_with_its_next_prompt(
    ircd: IRCd, home: Path
) -> None:
    config = configured(home, ircd, [{"when": "build", "steps": [FIVE, {"say": "built"}]}], [STUCK])
    async with registered(ircd.port, "spark-ori") as ori, running(config, NICK) as daemon:
        await ori.join("#general")
        ori.send(f"PRIVMSG #general :@{NICK} build it")
        assert await answered(ori, "#general") == "built"
        await settled(daemon)
        ori.send(f"PRIVMSG #general :@{NICK} and now")
        assert await answered(ori, "#general") == "heard: and now"
        ori.send(f"PRIVMSG #general :@{NICK} once more")
        assert await answered(ori, "#general") == "heard: once more"
        everything = [" ".join(message.params) for message in await ori.sync()]
    _, second, third = prompts(home / "work")
    assert second.splitlines()[-1] == "[SUPERVISOR/CORRECTION] You have retried cmake. Read the first error."
    assert "SUPERVISOR" not in third
    assert not any("retried cmake" in line for line in everything)


@pytest.mark.requirement("H18", "H19", "I09", "I21")
async def test_a_whisper_comes_with_the_next_tool_of_irc_and_not_again(ircd: IRCd, home: Path) -> None:
    steps: list[Any] = [FIVE, {"wait": {"until": str(home / "go")}}, {"read": "#general"}, {"say": "built"}]
    config = configured(home, ircd, [{"when": "build", "steps": steps}], [STUCK])
    async with registered(ircd.port, "spark-ori") as ori, running(config, NICK) as daemon:
        await ori.join("#general")
        ori.send(f"PRIVMSG #general :@{NICK} build it")
        await until(lambda: bool(daemon.socket._whispers))
        (home / "go").touch()
        assert await answered(ori, "#general") == "built"
        ori.send(f"PRIVMSG #general :@{NICK} and now")
        assert await answered(ori, "#general") == "heard: and now"
    assert "SUPERVISOR" not in prompts(home / "work")[1]


@pytest.mark.requirement("G13")
async def test_an_agent_told_to_think_deeper_does(ircd: IRCd, home: Path) -> None:
    rules = [{"when": "build", "steps": [FIVE, {"say": "built"}]}, {"when": "now", "steps": [{"say": "{thinking}"}]}]
    config = configured(home, ircd, rules, [{"when": "cmake", "verdict": "THINK_DEEPER This deserves a plan."}])
    async with registered(ircd.port, "spark-ori") as ori, running(config, NICK) as daemon:
        await ori.join("#general")
        ori.send(f"PRIVMSG #general :@{NICK} build it")
        assert await answered(ori, "#general") == "built"
        await settled(daemon)
        for thought in ("deeper", "medium"):
            ori.send(f"PRIVMSG #general :@{NICK} now")
            assert await answered(ori, "#general") == thought


async def get_stuck(ori: Client, daemon: AgentDaemon) -> None:
    """Give the agent three times what it gets stuck on: it is judged at the end of each."""
    for number in range(3):
        ori.send(f"PRIVMSG #general :@{NICK} build it {number}")
        assert await answered(ori, "#general") == "built"
        await settled(daemon)


BUILDING = [{"when": "build it", "steps": [FIVE, {"say": "built"}]}]


@pytest.mark.requirement("I12", "I14", "I15", "I22", "I24", "J03", "J08")
async def test_two_whispers_that_fail_call_people_and_a_person_lets_it_go_on(ircd: IRCd, home: Path) -> None:
    config = configured(home, ircd, BUILDING, [STUCK], eval_interval=6)
    async with (
        registered(ircd.port, "spark-ori") as ori,
        registered(ircd.port, "spark-eve") as eve,
        running(config, NICK) as daemon,
    ):
        await ori.join("#general")
        await eve.join("#alerts")
        await get_stuck(ori, daemon)
        reason = "Retried same approach 5 times. You have retried cmake. Read the first error."
        said = await said_in(eve, "#alerts", "[SPIRALING]")
        assert said == f'[SPIRALING] {NICK} stuck on task "build it 2". {reason} Awaiting guidance.'
        assert await said_in(eve, "#alerts", "[ESCALATION]") == (
            f'[ESCALATION] Agent {NICK} appears stuck on task "build it 2". {reason} '
            f"Awaiting human guidance. Reply @{NICK} resume/abort"
        )
        assert daemon.presence.state is AgentState.PAUSED
        ori.send(f"PRIVMSG #general :@{NICK} are you there")
        notice = await ori.expect("NOTICE", "spark-ori", where=lambda each: "waiting for guidance" in each.params[1])
        assert "build it 2" in notice.params[1]
        ori.send(f"PRIVMSG #general :@{NICK} resume")
        await ori.expect("NOTICE", "spark-ori", where=lambda each: each.params[1].startswith("going on."))
        assert await answered(ori, "#general") == "heard: are you there"
        assert daemon.notes.held is None
    last = prompts(home / "work")[-1]
    assert last.splitlines()[-1] == "[SUPERVISOR/ESCALATION] Still no progress. Escalating to IRC and webhook."


async def test_what_was_asked_in_private_is_told_to_who_asked_alone(ircd: IRCd, home: Path) -> None:
    config = configured(home, ircd, BUILDING, [STUCK], eval_interval=6)
    async with (
        registered(ircd.port, "spark-ori") as ori,
        registered(ircd.port, "spark-eve") as eve,
        running(config, NICK) as daemon,
    ):
        for channel in ("#general", "#alerts"):
            await eve.join(channel)
        for number in range(3):
            ori.send(f"PRIVMSG {NICK} :build it for the secret project")
            # The last answer and the call for people come in either order.
            assert number == 2 or await answered(ori, "spark-ori") == "built"
            await ended(daemon, number + 1)
            await settled(daemon)
        assert "Retried same approach 5 times. You have retried cmake." in await said_in(
            ori, "spark-ori", "resume/abort"
        )
        said = [await said_in(eve, "#alerts", word) for word in ("[SPIRALING]", "[ESCALATION]")]
        eve.send(f"PRIVMSG #general :@{NICK} hello")
        said.append(
            (await eve.expect("NOTICE", "spark-eve", where=lambda each: "guidance" in each.params[1])).params[1]
        )
    for line in said:
        assert "(private)" in line and "secret" not in line and "cmake" not in line
    assert "Retried same approach 5 times. Awaiting human guidance." in said[1]


@pytest.mark.fault("E30")
@pytest.mark.requirement("I15")
async def test_the_hold_outlives_a_restart_and_agents_cannot_lift_it(ircd: IRCd, home: Path) -> None:
    config = configured(home, ircd, BUILDING, [STUCK], eval_interval=6)
    async with registered(ircd.port, "spark-ori") as ori, registered(ircd.port, "spark-bot") as bot:
        await bot.ask("MODE spark-bot +B")
        await ori.join("#general")
        await bot.join("#general")
        async with running(config, NICK) as daemon:
            await get_stuck(ori, daemon)
            assert daemon.notes.held == "build it 2"
        async with running(config, NICK) as daemon:
            assert daemon.presence.state is AgentState.PAUSED
            bot.send(f"PRIVMSG #general :@{NICK} resume")
            await until(lambda: daemon.inbox.counts()[0] == 1)
            assert daemon.notes.held == "build it 2"
            ori.send(f"PRIVMSG #general :@{NICK} abort")
            notice = await ori.expect("NOTICE", "spark-ori", where=lambda each: "aborted" in each.params[1])
            assert notice.params[1] == 'aborted "build it 2"; I go on with what is next.'
            assert await answered(ori, "#general") == "heard: resume"


@pytest.mark.requirement("I12", "I13", "I15", "I16")
async def test_the_running_turn_ends_by_itself_and_abort_discards_it(ircd: IRCd, home: Path) -> None:
    many = {"loop": {"times": 40, "steps": [RETRY]}}
    rules = [{"when": "build", "steps": [many, *held(home)]}]
    config = configured(home, ircd, rules, [STUCK], eval_interval=2)
    async with registered(ircd.port, "spark-ori") as ori, running(config, NICK) as daemon:
        for channel in ("#general", "#alerts"):
            await ori.join(channel)
        ori.send(f"PRIVMSG #general :@{NICK} build it")
        await said_in(ori, "#alerts", "[ESCALATION]")
        assert daemon.work.busy and daemon.presence.state is AgentState.WORKING
        ori.send(f"PRIVMSG #general :@{NICK} next thing")
        ori.send(f"PRIVMSG #general :@{NICK} abort")
        await ori.expect("NOTICE", "spark-ori", where=lambda each: each.params[1] == 'aborted "build it".')
        assert await answered(ori, "#general") == "heard: next thing"
        assert daemon.notes.held is None


@pytest.mark.fault("E26")
@pytest.mark.requirement("F06")
@pytest.mark.parametrize(
    "settings", [{"playbook": "missing.yaml"}, {"agent": "acp"}, {"options": {"acp_command": ["gemini"]}}]
)
async def test_an_agent_whose_supervisor_cannot_be_had_works_and_the_channel_is_told_once(
    ircd: IRCd, home: Path, settings: dict[str, Any]
) -> None:
    config = configured(home, ircd, [], [], **settings)
    async with registered(ircd.port, "spark-ori") as ori:
        for channel in ("#general", "#alerts"):
            await ori.join(channel)
        async with running(config, NICK):
            assert "has no supervisor" in await said_in(ori, "#alerts", "[ERROR]")
            ori.send(f"PRIVMSG #general :@{NICK} hello")
            assert await answered(ori, "#general") == "heard: hello"
            assert not [each for each in await ori.sync() if each.verb == "PRIVMSG" and each.params[0] == "#alerts"]


@pytest.mark.fault("E26")
async def test_a_judge_that_fails_is_told_in_the_channel_once(ircd: IRCd, home: Path) -> None:
    config = configured(home, ircd, BUILDING, [], eval_interval=6)
    async with (
        registered(ircd.port, "spark-ori") as ori,
        registered(ircd.port, "spark-eve") as eve,
        running(config, NICK) as daemon,
    ):
        await ori.join("#general")
        await eve.join("#alerts")

        async def broken(prompt: str) -> str:
            raise RuntimeError("the model is away")

        daemon.supervision._supervisor.judge = broken  # type: ignore[union-attr]
        await get_stuck(ori, daemon)
        alerts = [each.params[1] for each in await eve.sync() if each.verb == "PRIVMSG" and each.params[0] == "#alerts"]
        (told,) = [alert for alert in alerts if "supervisor" in alert]
        assert told == f"[ERROR] {NICK} has no supervisor: RuntimeError: the model is away. The agent goes on."


async def test_a_scripted_agent_has_a_supervisor_only_when_one_is_named(ircd: IRCd, home: Path) -> None:
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, BUILDING)})
    async with registered(ircd.port, "spark-ori") as ori, running(config, NICK) as daemon:
        await ori.join("#general")
        assert daemon.supervision._supervisor is None
        ori.send(f"PRIVMSG #general :@{NICK} build it")
        assert await answered(ori, "#general") == "built"
    for settings in ({"agent": "none"}, {"model": "claude-haiku-4-5"}):
        config = agents_yaml(home, ircd.port, {"nick": NICK}, rules={"supervisor": settings})
        async with running(config, NICK) as daemon:
            assert daemon.supervision._supervisor is None


@pytest.mark.requirement("H29")
def test_an_agent_is_reminded_of_its_channels_after_the_measured_gap() -> None:
    now = 0.0
    advice = Advice(600, 80, lambda: now)
    now = 599
    assert advice.on_channels(lambda: True) is None
    now = 720
    assert advice.on_channels(lambda: False) is None
    assert advice.on_channels(lambda: True) == Whisper(
        "CORRECTION",
        "You haven't checked your channels in 12 minutes. "
        "Consider doing an irc_read() to see if there's relevant input.",
    )
    now = 1300
    assert advice.on_channels(lambda: True) is None
    now = 1320
    told = advice.on_channels(lambda: True)
    assert told is not None and "in 22 minutes" in told.message
    advice.read()
    now = 1900
    assert advice.on_channels(lambda: True) is None


@pytest.mark.requirement("H29")
async def test_an_agent_that_works_on_while_others_talk_is_reminded_once(ircd: IRCd, home: Path) -> None:
    steps: list[Any] = [held(home, "talked")[0], FIVE, held(home, "told")[0], {"read": "#general"}, {"say": "{output}"}]
    rules = [{"when": "build", "steps": steps}]
    config = configured(home, ircd, rules, [], check_in="50ms")
    async with registered(ircd.port, "spark-ori") as ori, running(config, NICK) as daemon:
        await ori.join("#general")
        ori.send(f"PRIVMSG #general :@{NICK} build it")
        await until(lambda: daemon.work.busy)
        assert not daemon._has_unread()
        ori.send("PRIVMSG #general :the password has changed")
        await until(daemon._has_unread)
        await sleep(0.06)
        (home / "talked").touch()
        await until(lambda: bool(daemon.socket._whispers))
        (whisper, _) = daemon.socket._whispers[0]
        assert whisper.message.startswith("You haven't checked your channels in 1 minutes.")
        (home / "told").touch()
        assert "build it" in await answered(ori, "#general")
        assert "the password has changed" in await answered(ori, "#general")


@pytest.mark.requirement("I19")
def test_an_agent_whose_context_fills_up_is_advised_once_until_it_is_shorter() -> None:
    now = 0.0
    advice = Advice(600, 80, lambda: now)
    assert advice.on_context(80) is None
    told = advice.on_context(83.4)
    assert told is not None and told.message.startswith("Your context is 83 % full. Consider compact_context()")
    assert advice.on_context(90) is None
    assert advice.on_context(20) is None
    assert advice.on_context(81) is not None
    now = 600
    assert advice.on_context(81) is not None


@pytest.mark.requirement("I19")
async def test_the_advice_to_compact_comes_with_the_next_prompt(ircd: IRCd, home: Path) -> None:
    rules = [{"when": "much", "steps": [{"usage": {"context_pct": 91}}, {"say": "ok"}]}]
    config = configured(home, ircd, rules, [])
    async with registered(ircd.port, "spark-ori") as ori, running(config, NICK):
        await ori.join("#general")
        ori.send(f"PRIVMSG #general :@{NICK} much")
        assert await answered(ori, "#general") == "ok"
        ori.send(f"PRIVMSG #general :@{NICK} more")
        assert await answered(ori, "#general") == "heard: more"
    assert "[SUPERVISOR/CORRECTION] Your context is 91 % full." in prompts(home / "work")[1]


async def test_what_a_supervisor_spends_counts_for_its_agent(ircd: IRCd, home: Path) -> None:
    rules = [{"when": "go", "steps": [{"usage": {"tokens": 100, "cost_usd": 0.5}}, {"say": "ok"}]}]
    config = configured(home, ircd, rules, [])
    async with registered(ircd.port, "spark-ori") as ori, running(config, NICK) as daemon:
        await ori.join("#general")
        ori.send(f"PRIVMSG #general :@{NICK} go")
        assert await answered(ori, "#general") == "ok"
        await settled(daemon)
        daemon.supervision._supervisor.on_spent(7, 0.25)  # type: ignore[union-attr]
        spent = daemon.inbox.spent(0)
        assert (spent.tokens, spent.cost_usd) == (107, 0.75)


async def test_an_agent_without_budget_is_not_judged(ircd: IRCd, home: Path) -> None:
    """What an agent started by hand does is seen over the socket, for as long as there is money for it."""
    judge = [{"when": "cmake", "verdict": "CORRECTION Stop."}]
    before = configured(home, ircd, [], judge, eval_interval=1)
    agent = {"nick": NICK, "playbook": playbook(home, []), "budget": {"turns_per_day": 1}}
    config = agents_yaml(home, ircd.port, agent, rules={"supervisor": before.supervisor.model_dump(mode="json")})
    content: list[dict[str, object]] = [{"type": "tool_use", "name": "Bash", "input": {"command": "cmake"}}]
    async with registered(ircd.port, "spark-ori") as ori, running(config, NICK) as daemon:
        await ori.join("#general")
        await daemon.service.activity(content, hear=False)
        await settled(daemon)
        assert len(daemon.supervision.take()) == 1
        ori.send(f"PRIVMSG #general :@{NICK} hello")
        assert await answered(ori, "#general") == "heard: hello"
        await until(lambda: daemon.purse.why_not() is not None)
        await settled(daemon)
        daemon.supervision.take()
        await daemon.service.activity(content, hear=False)
        await settled(daemon)
        assert daemon.supervision.take() == []
