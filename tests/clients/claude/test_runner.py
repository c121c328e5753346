"""Whole turns of the real Claude Code."""

from pathlib import Path

import pytest

from culture.clients.shared.turn import CLEAR, COMPACT, RunnerSetup
from tests.clients.claude.fifo import MakeFifo
from tests.clients.watched import Launch, Watched
from tests.support.model import Model
from tests.support.waiting import until


@pytest.mark.requirement("G06")
async def test_a_turn_with_a_real_command(claude: Watched, model: Model, setup: RunnerSetup) -> None:
    turn = await claude.turn("[[think hm]] [[bash echo hi from $CULTURE_NICK > seen; cat seen]] [[say all done]]")
    assert (turn.text, turn.error, turn.tools) == ("all done", "", ("Bash",))
    assert (setup.directory / "seen").read_text() == "hi from spark-claude\n"
    assert "hi from spark-claude" in model.journal.requests[-1].results[0]
    assert claude.texts == ["all done"]
    assert [block["thinking"] for block in claude.blocks("thinking")] == ["hm"]
    (call,) = claude.blocks("tool_use")
    assert call.keys() == {"type", "id", "name", "input"}
    assert {(message["type"], message["model"]) for message in claude.messages} == {("assistant", "claude-opus-4-6")}


@pytest.mark.requirement("G05")
async def test_prompts_are_worked_off_in_order_each_as_a_turn(claude: Watched, model: Model) -> None:
    await claude.runner.send_prompt("[[bash echo one]] [[wait GO]] [[say first]]")
    await model.journal.arrival("[[say first]]", results=1)
    await claude.runner.send_prompt("[[say second]]")
    await claude.runner.send_prompt("[[say third]]")
    assert model.journal.asked("second") == []
    model.release("GO")
    assert [(await claude.next_turn()).text for _ in range(3)] == ["first", "second", "third"]
    assert [request.prompt for request in model.journal.requests[2:]] == ["[[say second]]", "[[say third]]"]


async def test_what_people_write_stays_text(claude: Watched, model: Model, tmp_path: Path) -> None:
    """A file that is named is not read, and what looks like a command is none."""
    secret = tmp_path / "secret"
    secret.write_text("hunter2hunter2")
    prompt = f"[IRC @mention in #general] <spark-eve> @{secret} what do you see? @claude [[say nothing]]"
    assert (await claude.turn(prompt)).text == "nothing"
    assert [request.prompt for request in model.journal.requests] == [prompt]
    session = claude.runner.session_id
    for text in ("/clear please", "/model x", "/compact"):
        turn = await claude.turn(f"{text} [[say as you say]]")
        assert turn.text == "as you say", text
        assert model.journal.requests[-1].prompt == f"{text} [[say as you say]]"
        assert claude.runner.session_id == session, text
    assert all("hunter2" not in request.everything for request in model.journal.requests)


async def test_compacting_keeps_the_session_and_clearing_begins_a_new_one(claude: Watched, model: Model) -> None:
    await claude.turn("[[say remember the marmot]]")
    session = claude.runner.session_id
    compacted = await claude.turn(COMPACT)
    assert compacted.compacted and not compacted.error and compacted.text == ""
    assert not (await claude.turn("[[say the badger instead]]")).compacted
    assert claude.runner.session_id == session
    assert "What was said before." in model.journal.requests[-1].everything
    assert "marmot" not in model.journal.requests[-1].everything
    cleared = await claude.turn(CLEAR)
    assert not cleared.error
    assert claude.runner.session_id not in (None, session)
    await claude.turn("[[say next]]")
    assert "badger" not in model.journal.requests[-1].everything


async def test_an_error_of_the_api_is_an_error_and_not_a_text(claude: Watched) -> None:
    for trouble in ("[[err 400]]", "[[err 529]]", "[[die]]"):
        turn = await claude.turn(trouble)
        assert turn.error, trouble
        assert "API Error" not in turn.text, trouble
        assert not any("API Error" in text for text in claude.texts), trouble
        assert (await claude.turn("[[say better]]")).text == "better", trouble


async def test_a_line_of_megabytes_is_only_long(claude: Watched, tmp_path: Path) -> None:
    """The SDK gives up at one megabyte unless it is told otherwise."""
    (tmp_path / "much").write_text("x" * 1_200_000)
    turn = await claude.turn(f"[[recite {tmp_path / 'much'}]]")
    assert len(turn.text) == 1_200_000
    assert claude.runner.is_running()


async def test_an_interrupted_turn_ends_and_the_next_one_is_whole(claude: Watched, model: Model) -> None:
    await claude.runner.send_prompt("[[wait NEVER]] [[say too late]]")
    await model.journal.arrival("too late")
    await claude.runner.interrupt()
    turn = await claude.next_turn()
    assert turn.interrupted and turn.error == "interrupted"
    assert (await claude.turn("[[say on we go]]")).text == "on we go"


async def test_a_piece_of_an_answer_is_a_sign_of_life(claude: Watched, model: Model) -> None:
    await claude.runner.send_prompt("[[wait ONE]] [[think hm]] [[wait TWO]] [[say done]]")
    await model.journal.arrival("[[wait ONE]]")
    before = claude.runner.last_event
    model.release("ONE")
    await until(lambda: claude.runner.last_event > before)
    assert claude.turns == []
    model.release("TWO")
    assert (await claude.next_turn()).text == "done"


@pytest.mark.requirement("G13")
async def test_one_turn_thinks_deeper(claude: Watched, model: Model) -> None:
    await claude.turn("[[say one]]")
    claude.runner.think_deeper()
    await claude.turn("[[say two]]")
    await claude.turn("[[say three]]")
    efforts = [request.body["output_config"]["effort"] for request in model.journal.requests]
    assert efforts == ["medium", "max", "medium"]
    assert {request.body["model"] for request in model.journal.requests} == {"claude-opus-4-6"}


async def test_a_whisper_comes_behind_the_next_tool(claude: Watched, model: Model) -> None:
    waiting = ["[SUPERVISOR/CORRECTION] mind the gap"]

    def take() -> list[str]:
        taken, waiting[:] = list(waiting), []
        return taken

    claude.runner.take_whispers = take
    await claude.turn("[[bash exit 3]] [[bash echo two]] [[say done]]")
    first, second = model.journal.requests[-1].results
    assert "mind the gap" in first
    assert "mind the gap" not in second


@pytest.mark.requirement("G14")
async def test_what_the_agent_is_told(launch: Launch, model: Model, setup: RunnerSetup) -> None:
    (setup.directory / "CLAUDE.md").write_text("The project's own marmot.")
    agent = launch(instructions="You are spark-claude.")
    await agent.runner.start()
    await agent.turn("[[say yes]]")
    system = str(model.journal.requests[-1].body["system"])
    for part in ("You are spark-claude.", "extended thinking", "another approach"):
        assert part in system
    assert "The project's own marmot." in model.journal.requests[-1].everything


async def test_a_prompt_waits_while_it_sees_to_something_by_itself(
    claude: Watched, model: Model, make_fifo: MakeFifo
) -> None:
    ends, runs, goes_on = make_fifo(), make_fifo(), make_fifo()
    # Told that a command in the background has ended, it runs another one, which nobody asked for.
    woken = f"[[bash echo 1 | tee {runs.path}; head -n1 {goes_on.path}]] [[say seen to]]"
    woken = woken.replace("[", "\\u005b").replace("]", "\\u005d")
    command = f'{{"command": "head -n1 {ends.path}", "run_in_background": true, "description": "{woken}"}}'
    assert (await claude.turn(f"[[call Bash {command}]] [[say begun]]")).text == "begun"
    ends.write("the end")
    await runs.read()
    await claude.runner.send_prompt("[[say mine]]")
    goes_on.write("go on")
    assert (await claude.next_turn()).text == "mine"
    assert (await claude.turn("[[say the next]]")).text == "the next"
    assert [request.prompt for request in model.journal.requests[-2:]] == ["[[say mine]]", "[[say the next]]"]
    assert claude.texts == ["begun", "seen to", "mine", "the next"]


async def test_an_answer_that_was_cut_off_and_taken_up_again_is_one_text(claude: Watched, model: Model) -> None:
    """The program has the model go on by itself; the scripted one then says ok."""
    turn = await claude.turn("[[say the first half and]] [[err 529]]")
    assert (turn.text, turn.error) == ("the first half andok", "")
    assert len(model.journal.requests) == 2
    assert (await claude.turn("[[say new]]")).text == "new"
