"""Whole turns of the real Copilot CLI."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from culture.clients.shared.turn import CLEAR, COMPACT, News, Permit, RunnerSetup
from tests.clients.copilot.conftest import provided
from tests.clients.watched import Launch, Watched
from tests.support.model import Model
from tests.support.waiting import until

# Text that says what is to be answered, in a place where it must not be read as that yet.
HIDDEN = str.maketrans({"[": "\\u005b", "]": "\\u005d"})


@pytest.mark.requirement("G06")
async def test_a_turn_with_a_real_command(copilot: Watched, model: Model, setup: RunnerSetup) -> None:
    turn = await copilot.turn("[[think hm]] [[bash echo hi from $CULTURE_NICK > seen; cat seen]] [[say all done]]")
    assert (turn.text, turn.error, turn.tools) == ("all done", "", ("bash",))
    assert (setup.directory / "seen").read_text() == "hi from spark-copilot\n"
    assert "hi from spark-copilot" in model.journal.requests[-1].results[0]
    assert copilot.texts == ["all done"]
    assert [block["thinking"] for block in copilot.blocks("thinking")] == ["hm"]
    assert {(message["type"], message["model"]) for message in copilot.messages} == {("assistant", "gpt-5")}


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("gpt-5", {"wire_api": "responses"}),
        ("claude-sonnet-4-5", {"type": "anthropic"}),
    ],
    ids=["responses", "anthropic"],
)
async def test_providers_of_other_kinds(
    launch: Launch, model: Model, setup: RunnerSetup, name: str, wanted: dict[str, str]
) -> None:
    address = {"base_url": model.url} if "type" in wanted else {}
    agent = launch(model=name, options=provided(model, **address, **wanted))
    await agent.runner.start()
    turn = await agent.turn("[[think hm]] [[usage 1000 50 300 20]] [[bash echo hi > seen]] [[say all done]]")
    assert (turn.text, turn.error, turn.tools) == ("all done", "", ("bash",))
    assert (setup.directory / "seen").read_text() == "hi\n"
    assert turn.tokens == 2 * (1000 + 50 + 300 + 20)
    assert [block["thinking"] for block in agent.blocks("thinking")] == ["hm"]


async def test_what_people_write_stays_text(copilot: Watched, model: Model, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("hunter2hunter2")
    session = copilot.runner.session_id
    for text in (
        f"@{secret}",
        "/clear now",
        "/compact now",
        f"/add-dir {tmp_path}",
        "!cat /etc/hostname",
        f"#{secret}",
    ):
        assert (await copilot.turn(f"{text} [[say as you say]]")).text == "as you say"
        assert model.journal.requests[-1].prompt.endswith(f"\n{text} [[say as you say]]")
    assert copilot.runner.session_id == session
    assert not any("hunter2" in request.everything for request in model.journal.requests)


async def test_after_an_error_or_an_interruption_the_next_turn_is_whole(
    copilot: Watched, model: Model, tmp_path: Path
) -> None:
    """An error of the API is an error and not a text; what is interrupted ends with its command."""
    turn = await copilot.turn("[[err 400 no such thing]]")
    assert "no such thing" in turn.error and turn.text == ""
    assert copilot.texts == []
    assert (await copilot.turn("[[say better]]")).text == "better"
    begun = tmp_path / "begun"
    await copilot.runner.send_prompt(f"[[bash touch {begun}; sleep 601]] [[say too late]]")
    await until(begun.exists)
    await copilot.runner.interrupt()
    turn = await copilot.next_turn()
    assert turn.interrupted and turn.error == "interrupted"
    await until(lambda: not any("sleep" in command for command in copilot.processes().values()))
    await copilot.runner.send_prompt("[[wait NEVER]] [[say too late]]")
    await model.journal.arrival("[[wait NEVER]]")
    await copilot.runner.interrupt()
    assert (await copilot.next_turn()).interrupted
    assert (await copilot.turn("[[say on we go]]")).text == "on we go"


async def test_what_runs_in_the_background_keeps_no_turn_from_ending(copilot: Watched, model: Model) -> None:
    command = '{"command": "sleep 601", "mode": "async", "description": "waits"}'
    assert (await copilot.turn(f"[[call bash {command}]] [[say begun]]")).text == "begun"
    assert (await copilot.turn("[[say next]]")).text == "next"
    assert any("sleep 601" in command for command in copilot.processes().values())
    await copilot.runner.stop()
    assert copilot.processes() == {}


def _until(path: Path) -> str:
    return f"until test -e {path}; do sleep 0.02; done"


async def test_a_prompt_waits_while_it_sees_to_something_by_itself(
    copilot: Watched, model: Model, tmp_path: Path
) -> None:
    end, runs, go_on = tmp_path / "end", tmp_path / "runs", tmp_path / "go-on"
    # Told that a command in the background has ended, it reads what that wrote, and runs one that nobody asked for.
    woken = f"[[bash true]] [[bash touch {runs}; {_until(go_on)}]] [[say seen to]]".translate(HIDDEN)
    command = f'{{"command": "{_until(end)}", "mode": "async", "description": "{woken}"}}'
    assert (await copilot.turn(f"[[call bash {command}]] [[say begun]]")).text == "begun"
    end.touch()
    await until(runs.exists)
    await copilot.runner.send_prompt("[[say mine]]")
    await until(lambda: copilot.runner.busy)
    go_on.touch()
    turn = await copilot.next_turn()
    assert (turn.text, turn.tools) == ("mine", ())
    assert copilot.texts == ["begun", "seen to", "mine"]


async def test_news_of_a_background_command_is_kept_and_no_turn_begins(
    copilot: Watched, model: Model, tmp_path: Path
) -> None:
    kept: list[News] = []
    copilot.runner.on_news = kept.append
    copilot.runner.background.place = lambda: "#general"
    end = tmp_path / "end"
    command = f'{{"command": "{_until(end)}", "mode": "async", "description": "waits"}}'
    assert (await copilot.turn(f"[[call bash {command}]] [[say begun]]")).text == "begun"
    copilot.runner.background.place = lambda: "#elsewhere"
    assert copilot.runner.background.running_in("#general") == 1
    end.touch()
    await until(lambda: bool(kept))
    told = 'Shell command "waits" (shellId: 0) has completed successfully.'
    assert [(news.place, news.text) for news in kept] == [("#general", told)]
    assert copilot.runner.background.running == ()
    assert (await copilot.turn("[[say next]]")).text == "next"
    assert not any("has completed successfully" in request.everything for request in model.journal.requests)


async def test_news_goes_unasked_into_a_turn_that_runs(copilot: Watched, model: Model, tmp_path: Path) -> None:
    """What cannot be had: here Copilot asks no hook."""
    kept: list[News] = []
    copilot.runner.on_news = kept.append
    end, runs, go_on = tmp_path / "end", tmp_path / "runs", tmp_path / "go-on"
    command = f'{{"command": "{_until(end)}", "mode": "async", "description": "waits"}}'
    assert (await copilot.turn(f"[[call bash {command}]] [[say begun]]")).text == "begun"
    await copilot.runner.send_prompt(f"[[bash touch {runs}; {_until(go_on)}]] [[say mine]]")
    await until(runs.exists)
    end.touch()
    await until(lambda: not any(str(end) in command for command in copilot.processes().values()))
    go_on.touch()
    await copilot.next_turn()
    assert kept == [] and copilot.runner.background.running == ()
    assert "(shellId: 0) has completed successfully." in model.journal.requests[-1].prompt


async def test_a_death_is_told_at_once_though_somebody_holds_the_pipe(copilot: Watched) -> None:
    """The SDK waits for the end of what it reads, and tells nobody even then."""
    await copilot.runner.send_prompt("[[hang]]")
    await until(lambda: copilot.runner.busy)
    program = copilot.program()
    held = os.open(f"/proc/{program}/fd/1", os.O_WRONLY)
    try:
        os.kill(program, signal.SIGKILL)
        assert await copilot.exited() == -signal.SIGKILL
    finally:
        os.close(held)
    await copilot.runner.stop()
    assert copilot.processes() == {}


async def test_clearing_and_compacting(copilot: Watched, model: Model) -> None:
    await copilot.turn("[[say remember the marmot]]")
    before = copilot.runner.session_id
    compacted = await copilot.turn(COMPACT)
    assert compacted.compacted and not compacted.error and compacted.text == "" and compacted.tokens > 0
    await copilot.turn("[[say next]]")
    assert copilot.runner.session_id == before
    assert "<summary>" in model.journal.requests[-1].everything
    assert not (await copilot.turn(CLEAR)).error
    assert copilot.runner.session_id not in (None, before)
    empty = await copilot.turn(COMPACT)
    assert not empty.compacted and "Nothing to compact" in empty.error
    await copilot.turn("[[say new]]")
    assert "marmot" not in model.journal.requests[-1].everything


@pytest.mark.requirement("G13")
async def test_one_turn_thinks_deeper_where_the_model_can(copilot: Watched, launch: Launch, model: Model) -> None:
    await copilot.turn("[[say one]]")
    copilot.runner.think_deeper()
    await copilot.turn("[[say two]]")
    await copilot.turn("[[say three]]")
    assert [request.body["reasoning_effort"] for request in model.journal.requests] == ["medium", "high", "medium"]


async def test_a_model_that_knows_no_effort_is_given_none(launch: Launch, model: Model) -> None:
    agent = launch(model="llama3")
    await agent.runner.start()
    await agent.turn("[[say one]]")
    agent.runner.think_deeper()
    await agent.turn("[[say two]]")
    assert not any("reasoning_effort" in request.body for request in model.journal.requests)


async def test_how_full_it_is_and_what_it_used(copilot: Watched, model: Model) -> None:
    told: list[int] = []
    copilot.runner.on_usage = lambda tokens, cost_usd: told.append(tokens)
    await copilot.runner.send_prompt("[[usage 1000 50 300 0]] [[bash true]] [[wait GO]] [[say done]]")
    await model.journal.arrival("[[wait GO]]", results=1)
    await until(lambda: told == [1350])
    model.release("GO")
    turn = await copilot.next_turn()
    assert turn.tokens == 2700 and turn.cost_usd == 0
    assert turn.context_pct is not None and 0 < turn.context_pct < 50


@pytest.mark.requirement("G14")
async def test_what_the_agent_is_told(launch: Launch, model: Model, setup: RunnerSetup) -> None:
    (setup.directory / "AGENTS.md").write_text("The project's own marmot.")
    skill = Path(os.environ["HOME"]) / ".agents/skills/irc/SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: irc\ndescription: Talk to badgers.\n---\n")
    agent = launch(instructions="You are spark-copilot.", resume="00000000-0000-4000-8000-000000000000")
    await agent.runner.start()
    await agent.turn("[[bash env]] [[say yes]]")
    first, last = model.journal.requests[0], model.journal.requests[-1]
    for part in ("You are spark-copilot.", "another approach", "you begin without its memory"):
        assert part in str(first.body["messages"][0])
    assert "The project's own marmot." in first.everything and "Talk to badgers." in first.everything
    assert "CULTURE_NICK=spark-copilot" in last.results[0] and "PROVIDER_KEY" not in last.results[0]


async def test_a_question_that_is_aborted_or_not_needed_any_more(launch: Launch, setup: RunnerSetup) -> None:
    agent = launch(options={**setup.options, "permission_mode": "ask"})
    asked: asyncio.Queue[str] = asyncio.Queue()
    answers = [Permit(False, "aborted", interrupt=True)]

    async def permit(tool: str, given: object) -> Permit:
        asked.put_nowait(tool)
        if answers:
            return answers.pop()
        try:
            return await asyncio.Event().wait()  # type: ignore[return-value]
        finally:
            asked.put_nowait("forgotten")

    agent.runner.permit = permit
    await agent.runner.start()
    assert (await agent.turn("[[bash touch one]] [[say late]]")).interrupted
    await agent.runner.send_prompt("[[bash touch two]] [[say late]]")
    await until(lambda: asked.qsize() == 2)
    await agent.runner.interrupt()
    assert (await agent.next_turn()).interrupted
    assert (await agent.turn("[[say on we go]]")).text == "on we go"
    assert [asked.get_nowait() for _ in range(3)] == ["Bash", "Bash", "forgotten"]
    assert not (setup.directory / "one").exists() and not (setup.directory / "two").exists()


async def test_what_it_complains_of_takes_no_memory_for_ever(copilot: Watched) -> None:
    from culture.clients.copilot.process import COMPLAINT, COMPLAINTS

    live = copilot.runner._live
    assert live is not None and live.client._client is not None
    wire = live.client._client
    complaints = f"first\n{'x' * 5000}\n" + "trouble\n" * 2 * COMPLAINTS + f"last {'x' * 5000}\n"
    # Written in the program's place.
    await asyncio.to_thread(Path(f"/proc/{copilot.program()}/fd/2").write_text, complaints, encoding="utf-8")
    await until(lambda: "last" in wire.get_stderr_output())
    kept = wire.get_stderr_output()
    assert "first" not in kept and kept.count("trouble") == COMPLAINTS - 1
    assert len(kept) <= COMPLAINTS * COMPLAINT
