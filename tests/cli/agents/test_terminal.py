"""What strangers, agents and other users write does nothing to the terminal of whoever looks."""

import json
import pwd
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from culture.cli.agents import daemon_launch, status, sudo, talk
from culture.cli.agents.daemon_launch import DaemonNotStarted
from culture.cli.agents.questions import render_table as questions_table
from culture.cli.agents.status import render_table
from culture.cli.agents.trace import Story, TracedMessage, TraceStep, describe_wait, render
from culture.cli.mesh.links import describe_state
from culture.cli.output import fail
from culture.clients.shared.questions.model import Question
from culture.config.agents import AgentConfig
from culture.ledger_views.agents import agents
from culture.ledger_views.ledger import LedgerFact
from culture.lib.process.background import BackgroundProcess
from culture.protocol.text import as_json
from culture.protocol.vocabulary import Receipt
from culture.transport import ChannelMember, Message
from tests.cli.agents.conftest import NICK, Machine

EVIL = "\x1b]0;owned\x07\x9b31m\u202e\r\x08"
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def is_harmless(text: str) -> bool:
    return all(letter.isprintable() or letter in "\n\t" for letter in text)


def test_a_log_is_shown_without_what_is_not_text(capsys: pytest.CaptureFixture[str]) -> None:
    status._show(f"one{EVIL}two\n".encode())
    render = capsys.readouterr().out
    assert is_harmless(render) and render.startswith("one") and render.endswith("two\n")


def test_the_last_words_of_a_daemon_are_harmless(tmp_path: Path) -> None:
    program = f"print('died:', {EVIL!r}); print('end'); raise SystemExit(3)"
    process = BackgroundProcess(NICK, [sys.executable, "-c", program], tmp_path / "log")
    with pytest.raises(DaemonNotStarted, match="did not start \\(exit code 3\\)") as failure:
        daemon_launch.until_ready(process)
    assert is_harmless(str(failure.value)) and str(failure.value).endswith("end")


def test_what_is_said_under_any_name_is_harmless() -> None:
    said = Message("#general", f"eve{EVIL}", f"a{EVIL}\nb{EVIL}", NOW)
    assert is_harmless(talk._line(said))
    assert is_harmless(talk._people([ChannelMember(f"eve{EVIL}", account=f"x{EVIL}")], "#general"))


def test_tables_are_harmless() -> None:
    facts = {"nick": f"n{EVIL}", "backend": f"b{EVIL}", "state": f"s{EVIL}", "task": EVIL, "since": None, "why": EVIL}
    facts |= {"tokens_today": 0, "cost_usd_today": 0.0, "context_pct": None, "unread": 0, "stale": 0, "quiet": False}
    facts |= {"last_message": None, "connected": True, "webhook": None}
    assert is_harmless(render_table([facts], NOW))
    assert is_harmless(render_table([{**facts, "state": "not answering"}], NOW))
    asked = Question(1, f"#x{EVIL}", EVIL, (), "", (), "", 0.0, 1.0, "").as_data()
    assert is_harmless(questions_table([{"nick": f"n{EVIL}", "who": EVIL, **asked}], NOW))


def test_what_an_agent_says_of_its_state_is_harmless_in_a_story() -> None:
    why = describe_wait(Receipt.INJECTED, {"state": EVIL, "task": EVIL}, False)
    assert is_harmless(render(Story("spark.x.1", None, (), {NICK: why})))


def test_a_story_is_harmless_wherever_it_was_said_and_whoever_had_it() -> None:
    said = TracedMessage("", f"eve{EVIL}", f"#x{EVIL}", EVIL, ())
    step = TraceStep("delivered", "", f"by{EVIL}", f"on{EVIL}")
    assert is_harmless(render(Story(f"spark.x.1{EVIL}", said, (step,), {f"nick{EVIL}": EVIL})))


def test_the_words_of_a_peer_about_a_link_are_harmless() -> None:
    row = {"name": "thor", "state": "dialling", "trust": "full", "problem": f"it said: {EVIL}"}
    assert is_harmless(describe_state(row)) and "it said: " in describe_state(row)


@pytest.mark.parametrize("state", [{"tokens": "nan"}, {"cost-usd": "inf"}, {"since": "x"}, {"task": [1]}, {"state": 1}])
def test_an_agent_that_says_nonsense_of_itself_hides_no_other(state: dict[str, object]) -> None:
    facts = {"since": "2026-01-01T00:00:00Z", "tokens": "1", "context-pct": "nan", **state}
    report = agents([LedgerFact(NICK, "state", "now", NOW, "spark", facts)], {NICK})[0].as_data()
    assert NICK in render_table([report], NOW) and json.loads(as_json(report))["nick"] == NICK


def test_an_error_with_a_servers_words_is_harmless(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(Exception):  # noqa: B017
        fail(f"no: {EVIL}")
    assert is_harmless(capsys.readouterr().err)


def test_what_another_user_runs_prints_nothing_but_text(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    user = pwd.getpwuid(0)
    done = subprocess.CompletedProcess([], 0, f"out{EVIL}\n", f"err{EVIL}\n")
    monkeypatch.setattr(sudo, "configured_agents", lambda: {NICK: AgentConfig.model_construct(nick=NICK)})
    monkeypatch.setattr(sudo, "other_user", lambda agent: user)
    monkeypatch.setattr(sudo, "run_as", lambda *given: done)
    assert sudo.run_as_owner(NICK, "stop") == 0
    printed = capsys.readouterr()
    assert is_harmless(printed.out) and is_harmless(printed.err) and printed.out.startswith("out")


async def test_an_agent_neither_pauses_nor_resumes(machine: Machine) -> None:
    machine.agents({"nick": NICK})
    await machine.run("start", NICK)
    await machine.run("pause", NICK)
    machine.shell.environment["CULTURE_NICK"] = NICK
    for word in ("pause", "resume"):
        refused = await machine.run(word, NICK)
        assert refused.code == 4 and f"you are {NICK}" in refused.err
    del machine.shell.environment["CULTURE_NICK"]
    said = json.loads((await machine.run("status", NICK, "--json")).out)
    assert said["state"] == "paused"
    assert (await machine.run("resume", NICK)).code == 0
