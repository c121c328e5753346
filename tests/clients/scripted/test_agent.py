"""The scripted agent at work: steps, session, interrupts, and what becomes of it when its daemon is gone."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from culture.clients.shared.turn import CLEAR, COMPACT, AgentDied
from culture.lib.process.orphans import carrying
from tests.clients.conformance import there
from tests.clients.desks import NotedDesk, answered
from tests.clients.scripted.conftest import Play

PROGRAM = [sys.executable, "-P", "-m", "culture.clients.scripted.agent"]


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("hello", "Hello spark-ori!"),
        ("@spark-helper good morning", "Hello spark-ori!"),
        ("help", "I am spark-helper"),
        ("what time is it", " UTC."),
        ("ping", "pong"),
        ("echo a {sender} $(id)", "a {sender} $(id)"),
        ("count", "prompt number 1"),
        ("thanks", "You are welcome, spark-ori."),
        ("make me a sandwich", "help`, and I say what I can do"),
    ],
)
async def test_the_built_in_playbook_answers(play: Play, said: str, answer: str) -> None:
    player = await play()
    assert answer in (await player.turn(f"[IRC DM] <spark-ori> {said}\n  (class: human; account: none)")).text


async def test_what_it_does_is_told_as_it_does_it(play: Play, desk: NotedDesk) -> None:
    player = await play("default: [{think: hm}, {say: one}, {run: 'echo x'}, {read: '#general'}, {say: two}]")
    turn = await player.turn("go")
    blocks = [message["content"][0] for message in player.record.messages]
    first = next(block for block in blocks if block["type"] == "tool_result")
    assert (first["tool_use_id"], first["content"], first["is_error"]) == ("call-1-1", "x", False)
    assert [block for block in blocks if block["type"] != "tool_result"] == [
        {"type": "thinking", "thinking": "hm"},
        {"type": "text", "text": "one"},
        {"type": "tool_use", "id": "call-1-1", "name": "run", "input": {"command": "echo x"}},
        {"type": "tool_use", "id": "call-1-2", "name": "irc_read", "input": {"channel": "#general"}},
        {"type": "text", "text": "two"},
    ]
    assert (turn.text, turn.tools) == ("two", ("run", "irc_read"))


async def test_what_it_sends_arrives_to_the_letter(play: Play, desk: NotedDesk) -> None:
    player = await play("rules: [{when: 'x(.*)x', steps: [send: {to: '{target}', text: '{1}'}, say: '{code}']}]")
    text = "--json 'quoted' \"too\" $(id) \\ {sender} ünïcode"
    assert (await player.turn(f"[IRC @mention in #general] <spark-ori> x{text}x")).text == "0"
    assert desk.done == [("send", "#general", text)]


async def test_a_send_that_is_refused_says_why(play: Play, desk: NotedDesk) -> None:
    player = await play("default: [{send: {to: '#nowhere', text: hi}}, {say: '{code}: {output}'}]")
    assert (await player.turn("go")).text == "1: irc_client: you are not in #nowhere; perhaps #general"


async def test_a_question_nobody_answers(play: Play, desk: NotedDesk) -> None:
    desk.answer = answered(None, "TIMED_OUT")
    player = await play("default: [{ask: {to: '#general', question: sure?, timeout: 7s}}, {say: '{code}: {output}'}]")
    assert (await player.turn("go")).text == "3: irc_client: nobody answered in time"
    assert desk.done == [("ask", "#general", "sure?", 7.0)]


async def test_a_command_that_takes_too_long_is_ended(play: Play) -> None:
    player = await play(
        "default: [{run: {command: 'echo begun; sleep 600', timeout: 300ms}}, {say: '{code} {output}'}]"
    )
    assert (await player.turn("go")).text == "124 begun"


async def test_what_runs_in_the_background_holds_no_turn(play: Play) -> None:
    player = await play("default: [{run: 'echo begun; sleep 600 &'}, {say: '{output}'}]")
    assert (await player.turn("go")).text == "begun"
    await player.runner.stop()
    assert carrying(player.token) == []


async def test_long_output_is_cut(play: Play) -> None:
    player = await play("default: [{run: 'yes | head -c 1000000'}, {say: '{output}'}]")
    assert len((await player.turn("go")).text) == len("y\n…") + 64 * 1024 - 2


async def test_a_file_that_never_comes_is_an_error(play: Play) -> None:
    player = await play("default: [{wait: {until: nothing, timeout: 50ms}}, {say: there}]")
    turn = await player.turn("go")
    assert (turn.text, turn.error) == ("", "waited 0.05 seconds for nothing")


async def test_usage_is_what_the_playbook_says_or_an_estimate(play: Play) -> None:
    player = await play("rules: [{when: dear, steps: [usage: {tokens: 9000, cost_usd: 0.5, context_pct: 85}]}]")
    dear = await player.turn("dear")
    assert (dear.tokens, dear.cost_usd, dear.context_pct) == (9000, 0.5, 85)
    cheap = await player.turn("x" * 400)
    assert (cheap.cost_usd, cheap.context_pct) == (0, 85)
    assert 100 <= cheap.tokens <= 110


async def test_compacting_lets_the_context_fall(play: Play) -> None:
    player = await play("default: [usage: {context_pct: 85}]")
    assert (await player.turn("go")).context_pct == 85
    turn = await player.turn(COMPACT)
    assert turn.compacted
    assert turn.context_pct is not None and turn.context_pct < 1


async def test_think_deeper_holds_for_one_turn(play: Play) -> None:
    player = await play("default: [say: '{thinking}']", thinking="low")
    player.runner.think_deeper()
    assert [(await player.turn("go")).text for _ in range(2)] == ["deeper", "low"]


@pytest.mark.requirement("G19")
async def test_a_resumed_session_knows_what_it_has_seen(play: Play, tmp_path: Path) -> None:
    count = "rules: [{when: crash, steps: [crash: 1]}]\ndefault: [say: '{count}']"
    first = await play(count)
    assert [(await first.turn("go")).text for _ in range(2)] == ["1", "2"]
    await first.runner.send_prompt("crash")
    await first.record.exited()
    session = first.runner.session_id
    second = await play(count, resume=session)
    assert (await second.turn("go")).text == "4"
    assert second.runner.session_id == session
    await second.turn(CLEAR)
    assert (await second.turn("go")).text == "1"
    assert second.runner.session_id != session


async def test_a_session_is_there_before_the_first_prompt(play: Play) -> None:
    first = await play()
    second = await play(resume=first.runner.session_id)
    assert second.runner.session_id == first.runner.session_id


async def test_a_line_torn_by_a_kill_is_no_harm(play: Play, tmp_path: Path) -> None:
    first = await play("default: [say: '{count}']")
    await first.turn("go")
    await first.runner.stop()
    with open(tmp_path / ".scripted" / f"{first.runner.session_id}.jsonl", "a") as history:  # noqa: ASYNC230
        history.write('{"prompt": "to')
    second = await play("default: [say: '{count}']", resume=first.runner.session_id)
    assert [(await second.turn("go")).text for _ in range(2)] == ["2", "3"]
    await second.runner.stop()
    third = await play("default: [say: '{count}']", resume=first.runner.session_id)
    assert (await third.turn("go")).text == "4"


@pytest.mark.parametrize("session", ["0" * 32, "../../etc/passwd", "nonsense"])
async def test_a_session_that_is_not_there_is_a_new_one(play: Play, session: str) -> None:
    player = await play("default: [say: '{count}']", resume=session)
    assert player.runner.session_id != session
    assert (await player.turn("go")).text == "1"


async def test_the_history_is_for_its_owner_alone(play: Play, tmp_path: Path) -> None:
    player = await play("default: [say: hi]")
    await player.turn("a secret")
    folder = tmp_path / ".scripted"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.glob("*.jsonl")} == {0o600}
    assert (folder / ".gitignore").read_text() == "*\n"


async def test_an_interrupt_for_a_turn_that_is_over_does_nothing(play: Play) -> None:
    player = await play("default: [{wait: 10ms}, {say: hi}]")
    await player.turn("go")
    await player.runner.interrupt()
    assert (await player.turn("go")).text == "hi"


@pytest.mark.parametrize("hang", ["true", "stubborn"])
async def test_an_agent_that_hangs_is_ended(play: Play, tmp_path: Path, hang: str) -> None:
    player = await play(f"default: [{{run: touch begun}}, {{hang: {hang}}}]")
    await player.runner.send_prompt("go")
    await there(tmp_path / "begun")
    await player.runner.interrupt()
    await player.runner.stop()
    assert player.record.exits == [0]
    assert carrying(player.token) == []


@pytest.mark.parametrize(("code", "told"), [(3, 3), (0, 1), (-9, -9), (-signal.SIGSEGV, -signal.SIGSEGV)])
async def test_a_crash_has_the_code_it_should_have(play: Play, code: int, told: int) -> None:
    """To end with 0 without being asked to is a crash, too."""
    player = await play(f"default: [{{say: bye}}, {{crash: {code}}}]")
    await player.runner.send_prompt("go")
    assert await player.record.exited() == told
    assert player.record.texts == ["bye"]


async def test_an_agent_that_cannot_start_says_how_it_ended(play: Play, tmp_path: Path) -> None:
    player = await play("default: [say: hi]")
    await player.runner.stop()
    (tmp_path / "playbook.yaml").write_text("default: [sya: hi]")
    with pytest.raises(AgentDied) as death:
        await player.runner.start()
    assert death.value.code == 78
    assert not player.runner.is_running()


async def test_a_project_cannot_get_between_the_agent_and_its_modules(play: Play, tmp_path: Path) -> None:
    for name in ("json.py", "queue.py", "culture.py"):
        (tmp_path / name).write_text("raise SystemExit(99)")
    player = await play("default: [say: hi]")
    assert (await player.turn("go")).text == "hi"


@pytest.mark.fault("E6")
async def test_it_ends_with_its_daemon(play: Play, tmp_path: Path) -> None:
    """The end of the input is the end of the agent, and of the command it runs."""
    (tmp_path / "playbook.yaml").write_text("default: [run: 'echo $$ > pid; touch begun; exec sleep 600']")
    process = await asyncio.create_subprocess_exec(
        *PROGRAM, "--playbook", "playbook.yaml", cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps({"type": "prompt", "id": 1, "text": "go"}).encode() + b"\n")
    await there(tmp_path / "begun")
    process.stdin.close()
    async with asyncio.timeout(30):
        assert await process.wait() == 0
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_by_hand_a_wrong_playbook_is_told_and_ends_with_78(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text("default: [sya: hi]")
    ended = subprocess.run([*PROGRAM, "--playbook", "p.yaml"], cwd=tmp_path, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (78, "")
    assert ended.stderr == "p.yaml:1: default[0].sya: 'sya' is no step (did you mean say?)\n"
