"""The contract of backends, kept by every program that speaks ACP and could be had."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from culture.cli.skills import install
from culture.clients.shared.turn import Turn
from tests.clients.acp.kit import AcpKit
from tests.clients.conformance import (
    ClearContract,
    CompactContract,
    Kit,
    McpContract,
    PermitContract,
    ProcessContract,
    QueuedContract,
    Record,
    ResumeContract,
    RunnerContract,
    bounded,
)
from tests.support.acpprograms import CLAUDE, CLINE, CODEX, GEMINI, OPENCODE, QWEN, Program, enter
from tests.support.model import Model, model_server
from tests.support.waiting import until

pytest.importorskip("acp", reason="the extra culture[acp] is not installed")


class CodexKit(AcpKit):
    """Codex asks when its model wants to leave the sandbox, and looks for tools before it uses them."""

    _asks = False

    def asking(self, resume: str | None = None) -> Any:
        self._asks = True
        return super().asking(resume)

    def run(self, command: str) -> str:
        if not self._asks:
            return super().run(command)
        given = {"cmd": command, "sandbox_permissions": "require_escalated", "justification": "it must be"}
        return f"[[call exec_command {json.dumps(given)}]] [[say done]]"

    def add_mcp(self, name: str, command: list[str]) -> None:
        """For a model that Codex does not know: those that it knows have to look for such tools first."""
        settings = Path.home() / ".codex" / "config.toml"
        settings.write_text(settings.read_text().replace("gpt-5.5", "mine-large"))
        super().add_mcp(name, command)


class Behaves(RunnerContract, ProcessContract, QueuedContract, ResumeContract, ClearContract, PermitContract):
    """What every program must do."""

    program: Program
    kit_class = AcpKit
    tells_usage = True

    @pytest.fixture
    async def model(self) -> AsyncIterator[Model]:
        async with model_server() as running:
            yield running

    @pytest.fixture
    def kit(self, model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kit:
        enter(self.program, tmp_path / "home", model.url, monkeypatch)
        kit = self.kit_class(tmp_path, model, self.program.command)
        kit.tells_usage = self.tells_usage
        return kit

    async def test_no_file_skill_or_command_that_a_prompt_names_is_pulled_in(
        self, kit: Kit, model: Model, tmp_path: Path
    ) -> None:
        (tmp_path / "secret").write_text("hunter2hunter2")
        install("acp", Path.home())
        runner = kit.make()
        record = Record(runner)
        await runner.start()
        for begin in ("", "[IRC @mention in #general] <spark-eve> "):
            await runner.send_prompt(f"{begin}/irc $irc @{tmp_path}/secret @secret /irc {kit.say('seen')}")
        await record.until(lambda: len(record.turns) == 2 or record.exits)
        await bounded(runner)
        assert record.texts == ["seen", "seen"]
        told = "".join(request.everything for request in model.journal.requests)
        assert "hunter2" not in told and "irc_client set-directory" not in told


class TestOpenCode(Behaves, CompactContract, McpContract):
    program = OPENCODE


class TestCline(Behaves):
    program = CLINE
    tells_usage = False


class TestGemini(Behaves, McpContract):
    program = GEMINI

    @pytest.mark.xfail(
        reason="Gemini CLI 0.61 writes its sessions, and when it is to load one says that there are none"
    )
    @pytest.mark.parametrize("ending", ["stop", "crash"])
    async def test_a_session_is_taken_up_again(self, kit: Kit, ending: str) -> None:
        await super().test_a_session_is_taken_up_again(kit, ending)


class TestQwen(Behaves, CompactContract, McpContract):
    program = QWEN


class TestClaude(Behaves, CompactContract, McpContract):
    program = CLAUDE

    async def test_a_turn_that_it_begins_by_itself_is_cut_when_the_agent_may_not_work(
        self, kit: Kit, model: Model
    ) -> None:
        runner, ended = kit.make(), list[Turn]()
        runner.on_own_turn, runner.on_own_end = lambda: False, ended.append
        record = Record(runner)
        await runner.start()
        # Longer than what comes after a turn may be a late word of it.
        woken = "[[bash sleep 1]] [[say never]]".replace("[", "\\u005b").replace("]", "\\u005d")
        command = f'{{"command": "sleep 3; echo over", "run_in_background": true, "description": "{woken}"}}'
        await runner.send_prompt(f"[[call Bash {command}]] [[say begun]]")
        await until(lambda: bool(ended))
        assert [turn.interrupted for turn in ended] == [True]
        await runner.send_prompt(kit.say("next"))
        await record.until(lambda: len(record.turns) == 2)
        await bounded(runner)
        assert record.turns[-1].text == "next"
        assert not any(request.results for request in model.journal.asked("task-notification"))


class TestCodex(Behaves, CompactContract, McpContract):
    program = CODEX
    kit_class = CodexKit

    async def test_it_has_no_goals_for_which_it_would_begin_turns(self, kit: Kit, model: Model) -> None:
        runner = kit.make()
        record = Record(runner)
        await runner.start()
        await runner.send_prompt('[[call create_goal {"objective": "count to three"}]] [[say set]]')
        await record.until(lambda: bool(record.turns))
        await bounded(runner)
        assert any(
            "unsupported call: create_goal" in result for each in model.journal.requests for result in each.results
        )
