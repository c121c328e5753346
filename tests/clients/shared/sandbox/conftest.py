"""A scripted agent in a sandbox, which runs what its prompts say in its shell."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from culture.clients.scripted.agent_runner import ScriptedRunner
from culture.clients.shared.assembly import environment
from culture.clients.shared.sandbox.bubblewrap import Sandbox, obstacle
from culture.clients.shared.sandbox.needs import ProgramNeeds
from culture.clients.shared.turn import RunnerSetup
from culture.config.sandbox import SandboxConfig
from culture.lib.process.orphans import new_token
from tests.clients import surroundings
from tests.clients.conformance import Record

NICK = "spark-helper"
SHELL = {"default": [{"run": "sh -c {prompt}"}, {"say": "{output}"}]}
"""A playbook: the text of a message is a command, its output the answer."""

needs_bwrap = pytest.mark.skipif(bool(obstacle()) and not os.environ.get("CI"), reason=obstacle() or "no bubblewrap")
"""In CI it is there and works, or the test fails."""

ircd = surroundings.ircd


class Inmate:
    """A sandboxed scripted agent."""

    def __init__(self, runner: ScriptedRunner, token: str) -> None:
        self.runner = runner
        self.token = token
        self.record = Record(runner)

    async def shell(self, command: str) -> str:
        """Have it run a command; what that writes."""
        before = len(self.record.turns)
        await self.runner.send_prompt(command)
        await self.record.until(lambda: len(self.record.turns) > before or self.record.exits)
        assert self.record.exits == [], "the agent died"
        return self.record.turns[-1].text


Jail = Callable[..., Awaitable[Inmate]]


@pytest.fixture
def owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The owner's home, with secrets in it, and a ~/.culture."""
    home = tmp_path / "owner"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "id").write_text("the owner's key")
    monkeypatch.setenv("HOME", str(home))
    culture = surroundings.fresh_home(tmp_path, monkeypatch)
    (culture / "accounts.json").write_text("the owner's accounts")
    (tmp_path / "work").mkdir()
    return home


@pytest.fixture
async def jail(owner: Path, tmp_path: Path) -> AsyncIterator[Jail]:
    """``jail(read=[...])``: a sandboxed agent that takes shell commands as prompts; it is ended with the test."""
    inmates: list[Inmate] = []
    (tmp_path / "playbook.yaml").write_text(json.dumps(SHELL))

    async def start(
        needs: ProgramNeeds | None = None,
        gate: Path | None = None,
        directory: Path = tmp_path / "work",
        **config: object,
    ) -> Inmate:
        token = new_token()
        settings = SandboxConfig.model_validate({"kind": "bwrap", **config}, strict=False)
        sandbox = Sandbox(NICK, directory, settings, needs or ProgramNeeds(), gate)
        setup = RunnerSetup(
            NICK,
            directory,
            environment(NICK, token),
            options={"playbook": str(tmp_path / "playbook.yaml")},
            sandbox=sandbox,
        )
        inmate = Inmate(ScriptedRunner(setup), token)
        inmates.append(inmate)
        await inmate.runner.start()
        return inmate

    yield start
    await asyncio.gather(*(inmate.runner.stop() for inmate in inmates))
