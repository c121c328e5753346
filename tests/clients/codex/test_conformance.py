"""Codex's runner does what every runner must."""

import json
from pathlib import Path

import pytest

from culture.clients.shared.turn import RunnerSetup
from tests.clients.codex.conftest import MODEL
from tests.clients.conformance import Kit, WholeContract
from tests.support.model import Model

pytest.importorskip("codex_cli_bin", reason="the extra culture[codex] is not installed")

from culture.clients.codex.agent_runner import CodexRunner


class CodexKit(Kit):
    def make(self, resume: str | None = None) -> CodexRunner:
        return CodexRunner(RunnerSetup("spark-agent", self.folder, self.environment, resume=resume))

    def crash(self) -> str:
        return "[[bash kill -9 $PPID]]"

    def fail(self) -> str:
        return "[[err 500]]"

    def add_mcp(self, name: str, command: list[str]) -> None:
        """For a model that Codex does not know: those that it knows have to look for such tools first."""
        settings = Path.home() / ".codex" / "config.toml"
        server = f"[mcp_servers.{name}]\ncommand = {json.dumps(command[0])}\nargs = {json.dumps(command[1:])}\n"
        settings.write_text(settings.read_text().replace(MODEL, "mine-large") + server)

    def asking(self) -> CodexRunner:
        options = {"approval_policy": "untrusted"}
        return CodexRunner(RunnerSetup("spark-agent", self.folder, self.environment, options=options))


@pytest.mark.fault("E37")
class TestCodex(WholeContract):
    @pytest.fixture
    def kit(self, environment: None, tmp_path: Path, model: Model) -> Kit:
        return CodexKit(tmp_path, model)
