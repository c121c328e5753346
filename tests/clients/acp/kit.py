"""An agent behind ACP, as the conformance suite has it made."""

import json
import os
import shlex
import sys
from pathlib import Path
from typing import Any

from culture.clients.shared.turn import RunnerSetup
from tests.clients.conformance import Kit
from tests.support.model import Model

ROOT = Path(__file__).parents[3]
CRASH = """
import os, pathlib
for entry in pathlib.Path("/proc").iterdir():
    try:
        if "PPid:\\t{parent}\\n" in (entry / "status").read_text() and b"{token}" in (entry / "environ").read_bytes():
            os.kill(int(entry.name), 9)
    except OSError:
        pass
"""


class AcpKit(Kit):
    def __init__(self, folder: Path, model: Model | None, command: list[str], **options: Any) -> None:
        super().__init__(folder, model)
        self.options = {"acp_command": command, **options}

    def make(self, resume: str | None = None, **options: Any) -> Any:
        from culture.clients.acp.agent_runner import AcpRunner

        given = {**self.options, **options}
        return AcpRunner(RunnerSetup("spark-agent", self.folder, self.environment, options=given, resume=resume))

    def asking(self, resume: str | None = None) -> Any:
        return self.make(resume, permissions="ask")

    def crash(self) -> str:
        """The program that we started is killed, and not only what that has started itself."""
        script = self.folder / "crash.py"
        script.write_text(CRASH.format(parent=os.getpid(), token=self.token), encoding="utf-8")
        return f"[[bash {shlex.quote(sys.executable)} {script}]]"

    def fail(self) -> str:
        return "[[err 400]]"

    def add_mcp(self, name: str, command: list[str]) -> None:
        self.options["mcp_servers"] = {name: {"command": command[0], "args": command[1:]}}


class LittleKit(AcpKit):
    """The little agent, with what it does differently."""

    def __init__(self, folder: Path, **switches: Any) -> None:
        super().__init__(folder, None, little(**switches))
        self.environment["PYTHONPATH"] = str(ROOT)

    def asking(self, resume: str | None = None) -> Any:
        return self.make(resume, permissions="ask", acp_command=little(ask=True))


def little(**switches: Any) -> list[str]:
    """What starts the little agent."""
    return [sys.executable, "-m", "tests.clients.acp.little", json.dumps(switches)]
