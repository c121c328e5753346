"""What is particular about agents behind ACP, with one that misbehaves on request."""

import asyncio
import json
import shlex
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from culture.clients.shared.errors import WrongConfiguration
from culture.clients.shared.queued import QueuedRunner
from culture.clients.shared.turn import CLEAR, COMPACT, AgentDied, Can, Permit, RunnerSetup, Turn
from culture.lib.process.orphans import carrying
from tests.clients.acp.kit import LittleKit, little
from tests.clients.conformance import Record, bounded, there
from tests.support.clock import sleep
from tests.support.waiting import until

pytest.importorskip("acp", reason="the extra culture[acp] is not installed")

from culture.clients.acp import agent_runner
from culture.clients.acp.agent_runner import AcpRunner

Make = Callable[..., AcpRunner]


@pytest.fixture
def kit(tmp_path: Path) -> LittleKit:
    return LittleKit(tmp_path)


@pytest.fixture
async def make(kit: LittleKit) -> AsyncIterator[Make]:
    """``make({"ask": True}, permissions="deny")``: a runner of the little agent, stopped with the test."""
    async with AsyncExitStack() as stack:

        def made(switches: dict[str, Any] | None = None, **more: Any) -> AcpRunner:
            fields = {name: more.pop(name) for name in ("model", "resume", "instructions") if name in more}
            options = {"acp_command": little(**(switches or {})), **more}
            runner = AcpRunner(RunnerSetup("spark-agent", kit.folder, kit.environment, options=options, **fields))
            stack.push_async_callback(bounded, runner)
            return runner

        yield made


async def taken(runner: QueuedRunner, *prompts: str) -> Record:
    """Start it and let it take these prompts."""
    record = Record(runner)
    await runner.start()
    for prompt in prompts:
        await runner.send_prompt(prompt)
    await record.until(lambda: len(record.turns) == len(prompts) or record.exits)
    return record


@pytest.mark.parametrize(
    ("policy", "offers", "answer", "done"),
    [
        ("allow", ["reject_once", "allow_always", "allow_once"], "(o-allow_once)", True),
        ("allow", ["allow_always", "reject_always"], "(o-allow_always)", True),
        ("allow", ["reject_once"], None, False),
        ("deny", ["allow_once", "reject_always", "reject_once"], "(o-reject_once)", False),
        ("deny", ["allow_once", "reject_always"], "(o-reject_always)", False),
        ("deny", ["allow_always"], None, False),
    ],
    ids=["allow once", "allow always", "no way to allow", "deny once", "deny always", "no way to deny"],
)
async def test_a_question_is_answered_by_the_policy(
    make: Make, kit: LittleKit, policy: str, offers: list[str], answer: str | None, done: bool
) -> None:
    runner = make({"ask": True, "offers": offers}, permissions=policy)
    record = await taken(runner, "[[bash touch made]] [[say so]]")
    assert (kit.folder / "made").exists() is done
    assert record.texts == ([answer, "so"] if answer else ["so"])
    assert record.turns[0].tools == ("Bash",)


async def test_what_people_are_asked_says_what_would_be_done(make: Make) -> None:
    runner, asked = make({"ask": True}, permissions="ask"), list[tuple[str, Mapping[str, object]]]()

    async def permit(tool: str, given: Mapping[str, object]) -> Permit:
        asked.append((tool, given))
        return Permit(False, "no")

    runner.permit = permit
    record = await taken(runner, "[[bash touch made]]")
    assert asked == [("Bash", {"command": "touch made"})]
    assert [call["input"] for call in record.blocks("tool_use")] == [{"command": "touch made"}]


async def test_a_turn_is_broken_off_while_people_are_asked(make: Make, kit: LittleKit) -> None:
    runner, asked, given_up = make({"ask": True}, permissions="ask"), asyncio.Event(), asyncio.Event()

    async def permit(_tool: str, _given: Mapping[str, object]) -> Permit:
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            given_up.set()
        return Permit(True)

    runner.permit = permit
    record = Record(runner)
    await runner.start("[[bash touch made]]")
    await asked.wait()
    await runner.interrupt()
    await record.until(lambda: record.turns)
    assert record.turns[0].interrupted and given_up.is_set()
    assert not (kit.folder / "made").exists()


async def test_who_aborts_when_asked_ends_the_turn(make: Make, kit: LittleKit) -> None:
    runner = make({"ask": True}, permissions="ask")

    async def permit(_tool: str, _given: Mapping[str, object]) -> Permit:
        return Permit(False, "aborted", interrupt=True)

    runner.permit = permit
    record = await taken(runner, "[[bash touch made]] [[say and on I go]]", "[[say next]]")
    assert (record.turns[0].interrupted, record.turns[1].text) == (True, "next")
    assert record.texts == ["next"]


async def test_what_was_said_before_the_end_belongs_to_the_turn_however_slowly_it_is_heard(make: Make) -> None:
    runner, heard = make(), list[str]()
    record = Record(runner)

    async def slowly(message: dict[str, Any]) -> None:
        heard.append(message["content"][0]["type"])
        # Longer than the agent takes for the rest of its turn.
        await sleep(0.05)

    runner.on_message = slowly
    await runner.start("[[think hm]] [[say one]] [[think hm]] [[say two]]")
    await record.until(lambda: record.turns)
    assert heard == ["thinking", "text", "thinking", "text"]
    assert record.turns[0].text == "two"


async def test_an_agent_that_does_not_react_can_still_be_stopped(make: Make, kit: LittleKit) -> None:
    runner, begun = make({"deaf": True}), kit.folder / "begun"
    record = Record(runner)
    await runner.start(f"[[bash touch {begun}; sleep 600]]")
    await there(begun)
    await bounded(runner)
    assert record.exits == [0]
    assert carrying(kit.token) == []


@pytest.mark.parametrize(
    ("script", "text", "error"),
    [
        ("[[say half]] [[stop max_tokens]]", "half", ""),
        ("[[stop max_tokens]]", "", "the answer was cut off by its length"),
        ("[[stop max_turn_requests]]", "", "the agent used up its requests for one turn"),
        ("[[say I cannot]] [[stop refusal]]", "I cannot", "the model refused to go on"),
        ("[[err overloaded]]", "", "overloaded"),
        ("[[failed API Error: 529]]", "", "API Error: 529"),
        ("[[say half]] [[err broken off]]", "half", "broken off"),
    ],
)
async def test_how_a_turn_can_end(make: Make, script: str, text: str, error: str) -> None:
    record = await taken(make(), script, "[[say next]]")
    assert (record.turns[0].text, record.turns[0].error) == (text, error)
    assert record.turns[1].text == "next"
    assert record.texts == ([text, "next"] if text else ["next"])


async def test_a_context_that_is_full_is_told(make: Make) -> None:
    record = await taken(make(), "[[err context_length_exceeded: 214000 tokens]]")
    assert record.turns[0].full


@pytest.mark.parametrize("letters", [70_000, 20_000_000])
async def test_a_line_may_be_long(make: Make, letters: int) -> None:
    record = await taken(make(), f"[[long {letters}]]")
    assert record.turns[0].text == "x" * letters


async def test_noise_between_messages_is_no_harm(make: Make) -> None:
    record = await taken(make(), "[[noise Warning: {not a message}]] [[say here]]")
    assert record.turns[0].text == "here"


@pytest.mark.fault("E6")
@pytest.mark.parametrize(
    "script",
    ["[[exit 3]]", "[[mute]]", "[[noise 5]]", "[[err Session not found]]"],
    ids=["exit", "mute", "no message", "lost session"],
)
async def test_an_agent_that_cannot_be_talked_to_any_more_has_crashed(make: Make, kit: LittleKit, script: str) -> None:
    runner = make()
    record = await taken(runner, f"[[say before]] {script}")
    assert await record.exited() == (3 if "exit" in script else 1)
    await bounded(runner)
    assert carrying(kit.token) == []


@pytest.mark.parametrize("request_", ["initialize", "new"])
async def test_a_death_at_the_start_is_told_with_its_last_words(make: Make, kit: LittleKit, request_: str) -> None:
    with pytest.raises(AgentDied, match="I cannot go on") as death:
        await make({"die_in": request_}).start()
    assert death.value.code == 9
    assert carrying(kit.token) == []


async def test_a_death_while_a_session_is_loaded(make: Make, kit: LittleKit) -> None:
    with pytest.raises(AgentDied, match="I cannot go on"):
        await make({"die_in": "load", "resume": False}, resume="any").start()
    assert carrying(kit.token) == []


async def test_an_agent_that_does_not_begin_is_given_up(
    make: Make, kit: LittleKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_runner, "START_PATIENCE", 2.0)
    with pytest.raises(AgentDied, match="does not begin"):
        await make({"hang_in": "new"}).start()
    assert carrying(kit.token) == []


@pytest.mark.parametrize(
    ("switches", "kept"),
    [
        ({}, True),
        ({"resume": False}, True),
        ({"resumes": False}, True),
        ({"resume": False, "load": False}, False),
    ],
    ids=["resumed", "loaded", "promised in vain", "neither"],
)
async def test_a_session_is_taken_up_as_the_agent_can(make: Make, switches: dict[str, Any], kept: bool) -> None:
    first = make(switches)
    await taken(first, "[[say hello]]")
    session = first.session_id
    await bounded(first)
    later = make(switches, resume=session, instructions="You are spark-agent.")
    record = await taken(later, "[[echo]]")
    assert (later.session_id == session) is kept
    assert (Can.RESUME in later.can) is kept
    # What was said long ago is not said again, and what a new session is told an old one knows.
    (said,) = record.texts
    assert ("You are spark-agent." in said) is not kept


async def test_a_session_that_is_gone_is_replaced(make: Make) -> None:
    runner = make(resume="0123456789abcdef", instructions="You are spark-agent.")
    record = await taken(runner, "[[echo]]", "[[echo]]")
    told = ["session 0123456789abcdef is gone" in said and "You are spark-agent." in said for said in record.texts]
    assert told == [True, False]
    assert runner.session_id not in (None, "0123456789abcdef")


@pytest.mark.requirement("K13")
@pytest.mark.parametrize("offered", ["anthropic/claude-sonnet-4-6", "claude-sonnet-4-6"])
async def test_the_model_is_chosen(make: Make, offered: str) -> None:
    runner = make({"models": ["other", offered]}, model="anthropic/claude-sonnet-4-6")
    record = await taken(runner, "[[echo]]")
    assert json.loads(record.texts[0])[0] == offered


async def test_a_model_that_is_not_there_is_a_mistake_of_the_configuration(make: Make, kit: LittleKit) -> None:
    with pytest.raises(WrongConfiguration, match="it offers one, two"):
        await make({"models": ["one", "two"]}, model="anthropic/claude-sonnet-4-6").start()
    assert carrying(kit.token) == []


async def test_without_a_login_it_says_what_to_do(make: Make) -> None:
    with pytest.raises(WrongConfiguration, match="not logged in: Run `little login` once"):
        await make({"login": False}).start()


async def test_another_protocol_is_a_mistake_of_the_configuration(make: Make) -> None:
    with pytest.raises(WrongConfiguration, match="speaks version 7"):
        await make({"version": 7}).start()


async def test_costs_are_told_as_differences(make: Make) -> None:
    record = await taken(make(), "[[cost 0.25]]", "[[say nothing]]", "[[cost 0.75]] [[usage 20000 0]]")
    assert [turn.cost_usd for turn in record.turns] == [0.25, 0.0, 0.5]
    assert record.turns[-1].context_pct == 10.0


async def test_the_cost_of_a_session_that_is_taken_up_is_not_counted_again(make: Make) -> None:
    first = make()
    await taken(first, "[[cost 5]]")
    await bounded(first)
    record = await taken(make(resume=first.session_id), "[[cost 5.5]]", "[[cost 6]]")
    assert [turn.cost_usd for turn in record.turns] == [0.0, 0.5]


async def test_what_a_session_tells_while_it_is_taken_up_makes_its_next_turn_count(make: Make) -> None:
    first = make()
    await taken(first, "[[cost 5]]")
    await bounded(first)
    record = await taken(make({"resume": False, "spent": 5.0}, resume=first.session_id), "[[cost 5.5]]")
    assert [turn.cost_usd for turn in record.turns] == [0.5]
    assert record.turns[0].context_pct == 0.5


async def test_what_another_session_has_cost_is_not_counted(make: Make) -> None:
    record = await taken(make(), "[[cost 5]]", CLEAR, "[[elsewhere 5.5]] [[cost 0.25]]")
    assert [turn.cost_usd for turn in record.turns] == [5.0, 0.0, 0.25]


async def test_instructions_come_with_the_first_prompt_and_again_after_a_compaction(make: Make) -> None:
    runner = make(instructions="You are spark-agent.")
    record = await taken(runner, "[[echo]]", "[[echo]]", COMPACT, "[[echo]]")
    assert ["You are spark-agent." in said for said in record.texts] == [True, False, True]
    assert [turn.compacted for turn in record.turns] == [False, False, True, False]
    assert Can.COMPACT in runner.can


async def test_an_agent_that_cannot_shorten_its_context_says_so(make: Make) -> None:
    record = await taken(make({"commands": []}), COMPACT, "[[say on]]")
    assert "cannot shorten its context" in record.turns[0].error
    assert record.turns[1].text == "on"


async def test_what_it_begins_by_itself_is_told_once_and_cut_when_the_agent_may_not_work(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_runner, "LATE", 0.0)
    path = tmp_path / "there"
    runner = make()
    began, ended = list[bool](), list[Turn]()

    def begins() -> bool:
        began.append(True)
        return False

    runner.on_own_turn, runner.on_own_end = begins, ended.append
    record = await taken(runner, f"[[later {path}]] [[say begun]]")
    assert [turn.text for turn in record.turns] == ["begun"]
    path.touch()
    await until(lambda: not path.exists())
    assert (len(began), [turn.interrupted for turn in ended]) == (1, [True])
    await runner.send_prompt("[[say next]]")
    await record.until(lambda: len(record.turns) == 2)
    assert record.turns[-1].text == "next"


@pytest.mark.parametrize(("set_to", "seen"), [(None, '{"features":{"goals":false}}'), ("{}", "{}")])
async def test_codex_is_started_without_goals_unless_its_owner_configures_it(
    kit: LittleKit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, set_to: str | None, seen: str
) -> None:
    if set_to is not None:
        monkeypatch.setenv("CODEX_CONFIG", set_to)
    program = tmp_path / "codex-acp"
    program.write_text(f"#!/bin/sh\nexec {shlex.join(little())}\n")
    program.chmod(0o755)
    runner = kit.make(acp_command=[str(program)])
    try:
        await taken(runner, f"[[bash printenv CODEX_CONFIG > {tmp_path}/seen]]")
    finally:
        await bounded(runner)
    assert (tmp_path / "seen").read_text().strip() == seen
