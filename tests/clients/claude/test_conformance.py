"""Claude's runner does what every runner must."""

import json
from pathlib import Path

import pytest

from culture.clients.shared.turn import RunnerSetup
from tests.clients.conformance import Kit, WholeContract
from tests.support.model import Model

pytest.importorskip("claude_agent_sdk", reason="the extra culture[claude] is not installed")

from culture.clients.claude.agent_runner import ClaudeRunner


class ClaudeKit(Kit):
    def make(self, resume: str | None = None) -> ClaudeRunner:
        return ClaudeRunner(RunnerSetup("spark-agent", self.folder, self.environment, resume=resume))

    def crash(self) -> str:
        return "[[bash kill -9 $PPID]]"

    def fail(self) -> str:
        return "[[err 529]]"

    def add_mcp(self, name: str, command: list[str]) -> None:
        server = {"command": command[0], "args": command[1:]}
        Path.home().joinpath(".claude.json").write_text(json.dumps({"mcpServers": {name: server}}))

    def asking(self) -> ClaudeRunner:
        options = {"permission_mode": "default"}
        return ClaudeRunner(RunnerSetup("spark-agent", self.folder, self.environment, options=options))


@pytest.mark.fault("E37")
class TestClaude(WholeContract):
    @pytest.fixture
    def kit(self, environment: None, tmp_path: Path, model: Model) -> Kit:
        return ClaudeKit(tmp_path, model)
