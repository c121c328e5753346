"""How Copilot is made for the conformance suite."""

import json
from dataclasses import replace
from pathlib import Path

from culture.clients.copilot.agent_runner import CopilotRunner
from culture.clients.shared.turn import RunnerSetup
from tests.clients.conformance import Kit
from tests.clients.copilot.conftest import provided
from tests.support.model import Model


class CopilotKit(Kit):
    def __init__(self, folder: Path, model: Model) -> None:
        super().__init__(folder, model)
        setup = RunnerSetup("spark-agent", folder, self.environment, model="gpt-5")
        self.setup = replace(setup, options=provided(model))

    def make(self, resume: str | None = None) -> CopilotRunner:
        return CopilotRunner(replace(self.setup, resume=resume))

    def crash(self) -> str:
        # It refuses to run `kill` for what is no number.
        return "[[bash exec python3 -c 'import os; os.kill(os.getppid(), 9)']]"

    def fail(self) -> str:
        # Most others it tries again, for seconds.
        return "[[err 400]]"

    def asking(self) -> CopilotRunner:
        return CopilotRunner(replace(self.setup, options={**self.setup.options, "permission_mode": "ask"}))

    def add_mcp(self, name: str, command: list[str]) -> None:
        settings = self.folder / "home/.copilot/mcp-config.json"
        settings.parent.mkdir()
        server = {"type": "local", "command": command[0], "args": command[1:], "tools": ["*"]}
        settings.write_text(json.dumps({"mcpServers": {name: server}}))
