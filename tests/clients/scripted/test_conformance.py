"""The scripted agent's runner does what every runner must."""

from pathlib import Path

import pytest

from culture.clients.scripted.agent_runner import ScriptedRunner
from culture.clients.scripted.playbook_schema import STEPS
from culture.clients.shared.turn import RunnerSetup
from tests.clients.conformance import (
    ClearContract,
    CompactContract,
    Kit,
    ProcessContract,
    QueuedContract,
    ResumeContract,
    RunnerContract,
)
from tests.support.seen import seen

PLAYBOOK = r"""
rules:
  - when: 'please say (?P<words>(?:.|\n)*)'
    steps: [say: '{words}']
  - when: 'please run (?P<command>.*)'
    steps:
      - run: 'eval {command}'
      - say: done
  - when: please crash
    steps: [crash: 3]
  - when: please use 40100
    steps:
      - usage: {tokens: 40100, cost_usd: 0.2, context_pct: 20}
      - say: used
  - when: please use 20050
    steps:
      - usage: {tokens: 20050, cost_usd: 0.1, context_pct: 10}
      - say: used
  - when: 'please hang (?P<file>.*)'
    steps:
      - run: 'touch {file}'
      - wait: 1h
  - when: please fail
    steps: [error: 529 overloaded]
"""


class ScriptedKit(Kit):
    def make(self, resume: str | None = None) -> ScriptedRunner:
        (self.folder / "playbook.yaml").write_text(PLAYBOOK, encoding="utf-8")
        options = {"playbook": "playbook.yaml"}
        return ScriptedRunner(RunnerSetup("spark-agent", self.folder, self.environment, options=options, resume=resume))

    def say(self, text: str) -> str:
        return f"please say {text}"

    def run(self, command: str) -> str:
        return f"please run {command}"

    def crash(self) -> str:
        return "please crash"

    def fail(self) -> str:
        return "please fail"

    def use(self, read: int, written: int) -> str:
        return f"please use {read + written}"

    def hang(self, begun: Path) -> str:
        return f"please hang {begun}"


@pytest.mark.fault("E37")
class TestScripted(RunnerContract, ProcessContract, QueuedContract, ResumeContract, ClearContract, CompactContract):
    @pytest.fixture
    def kit(self, tmp_path: Path) -> Kit:
        return ScriptedKit(tmp_path)

    @pytest.mark.matrix
    async def test_a_playbook_has_no_word_for_tools_of_others_and_asks_for_no_leave(self, kit: Kit) -> None:
        assert STEPS.keys().isdisjoint({"mcp", "call", "permit"})
        seen(kit.make(), mcp="no", permission="no")
