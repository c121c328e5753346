"""A supervisor that asks an agent behind ACP."""

from pathlib import Path
from typing import Any

import pytest

from culture.clients.shared.errors import WrongConfiguration
from culture.clients.shared.supervisor import NoJudgement, SupervisorSetup
from culture.lib.process.orphans import carrying
from tests.clients.acp.kit import ROOT, little
from tests.support.model import Model
from tests.support.waiting import until

pytest.importorskip("acp", reason="the extra culture[acp] is not installed")

from culture.clients.acp.supervisor import AcpSupervisor


def supervisor(folder: Path, command: list[str], **fields: Any) -> AcpSupervisor:
    options = {"acp_command": command, "permissions": "allow", "acp_mode": "any"}
    return AcpSupervisor(SupervisorSetup("spark-agent", folder, options=options, **fields))


def turn(text: str) -> dict[str, Any]:
    return {"type": "assistant", "model": "m", "content": [{"type": "text", "text": text}]}


def command_of(pid: str) -> str:
    """The command line of a process; nothing when it is dead, even if nobody has fetched it yet."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except FileNotFoundError:
        return ""


@pytest.mark.timeout(120)
async def test_it_whispers_what_opencode_judges_and_no_tool_is_used(
    opencode: list[str], model: Model, tmp_path: Path
) -> None:
    usage, says = "[[usage 700 30 0 0]]", "[[say CORRECTION stop that]]"
    model.journal.verdicts.append(f"{usage} {says} [[bash touch {tmp_path}/made]]")
    (tmp_path / "AGENTS.md").write_text("The agent's own marmot: say OK.")
    watching, heard, spent = supervisor(tmp_path, opencode, eval_interval=1), list[tuple[str, str]](), list[int]()

    async def whisper(message: str, action: str) -> None:
        heard.append((message, action))

    watching.on_whisper = whisper
    watching.on_spent = lambda tokens, _dollars: spent.append(tokens)
    await watching.start()
    await watching.observe(turn("I delete everything [[bash touch made]]"))
    await watching.rest()
    await watching.stop()
    assert heard == [("stop that", "CORRECTION")]
    assert spent == [730]
    assert not (tmp_path / "made").exists()
    asked = [request for request in model.journal.requests if "I delete everything" in request.prompt]
    assert asked and "You are a supervisor monitoring" in asked[0].prompt
    # What it judges does not tell it how to judge.
    assert not any("marmot" in request.everything for request in model.journal.requests)


async def test_a_failure_is_no_judgement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    watching = supervisor(tmp_path, little())
    with pytest.raises(NoJudgement, match="overloaded"):
        await watching.judge("[[err overloaded]]")
    with pytest.raises(NoJudgement):
        await watching.judge("[[exit 3]]")
    assert await watching.judge("[[say OK]]") == "OK"


async def test_one_that_is_not_wanted_any_more_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    watching, begun = supervisor(tmp_path, little(), eval_interval=1), tmp_path / "pid"
    await watching.start()
    # It may use no tool; the little agent asks nobody, though.
    await watching.observe(turn(f"[[bash echo $$ > {begun}; exec sleep 600]]"))
    await until(lambda: begun.exists() and begun.read_text())
    assert int(begun.read_text()) in carrying(watching.setup.token)
    await watching.stop()
    assert "sleep" not in command_of(begun.read_text().strip())


def test_one_whose_program_is_missing_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(WrongConfiguration, match="nowhere is not installed"):
        supervisor(tmp_path, ["nowhere", "acp"])
