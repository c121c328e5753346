"""A machine that something is wrong with."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from typer.testing import CliRunner

from culture.cli.commands import assembled
from culture.cli.doctor.command import CHECKS
from culture.cli.doctor.inventory import Inventory
from culture.cli.doctor.runner import Finding, FindingSeverity, repair, run_checks
from tests.cli.shell import Process, Result, Shell
from tests.support.waiting import PATIENCE, until

NICK = "spark-bee"
NOBODY = 65534


@dataclass
class Patient:
    """Somebody's machine, and what doctor finds there; the checks run in this process, everything else is real."""

    shell: Shell

    @property
    def home(self) -> Path:
        return self.shell.home

    def found(self, check: str) -> list[Finding]:
        """What one check finds that is not well."""
        [outcome] = run_checks([each for each in CHECKS if each.name == check], Inventory(), PATIENCE)
        return [each for each in outcome.findings if each.severity is not FindingSeverity.OK]

    def one(self, check: str) -> Finding:
        """The only thing that a check finds; it always says why it matters and what to type."""
        [finding] = self.found(check)
        assert finding.what and finding.why and finding.next
        return finding

    def mend(self, check: str) -> None:
        """What --fix does."""
        [outcome] = run_checks([each for each in CHECKS if each.name == check], Inventory(), PATIENCE)
        assert repair(outcome).worst is FindingSeverity.OK
        assert self.found(check) == []

    def file(self, name: str, text: str = "", mode: int = 0o600) -> Path:
        """A file in the home folder."""
        path = self.home / name
        for folder in reversed(path.relative_to(self.home).parents):
            (self.home / folder).mkdir(mode=0o700, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(mode)
        return path

    def server(self, **settings: Any) -> None:
        """culture.yaml (JSON is YAML)."""
        self.file("culture.yaml", json.dumps({"name": "spark", **settings}, default=str))

    def agents(self, *agents: dict[str, Any], **top: Any) -> None:
        """agents.yaml, with one agent that follows a playbook unless others are named."""
        work = self.shell.folder / "work"
        work.mkdir(exist_ok=True)
        usual = {"nick": NICK, "directory": str(work), "channels": ["#general"], "agent": "scripted"}
        said = [{**usual, **agent} for agent in agents or ({},)]
        self.file("agents.yaml", json.dumps({**top, "agents": said}))

    async def serve(self, *arguments: str, **settings: Any) -> tuple[Process, int]:
        """A running server, and its port."""
        self.server(**settings)
        process, port = await self.shell.serve(*arguments)
        await until(self._is_told)
        return process, port

    def _is_told(self) -> bool:
        note = self.shell.note()
        return note is not None and bool(note.addresses)

    async def run(self, *words: str) -> Result:
        """`culture doctor` as it is typed."""
        return await self.shell.run("doctor", *words)

    def typed(self, *words: str) -> Result:
        """The same within this process, which is faster."""
        said = CliRunner().invoke(assembled("doctor"), ["doctor", *words])
        return Result(said.exit_code, said.stdout, "")


@pytest.fixture
def patient(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Patient:
    """A machine with nothing on it but a home folder."""
    runtime = shell.folder / "run"
    runtime.mkdir(mode=0o700)
    shell.home.mkdir(mode=0o700)
    for name in [each for each in os.environ if each.endswith(("_KEY", "_TOKEN"))]:
        monkeypatch.delenv(name)
    shell.environment |= {"XDG_RUNTIME_DIR": str(runtime), "LOGNAME": "ori"}
    for name, value in {**shell.environment, "CULTURE_HOME": str(shell.home), "HOME": str(shell.folder)}.items():
        monkeypatch.setenv(name, value)
    return Patient(shell)


@contextmanager
def unprivileged(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home folder, looked at by a user who is not root: whom modes mean something to."""
    with TemporaryDirectory() as name:
        home = Path(name) / "home"
        home.mkdir(mode=0o700)
        monkeypatch.setenv("CULTURE_HOME", str(home))
        if os.geteuid() != 0:
            yield home
            return
        Path(name).chmod(0o755)
        os.chown(home, NOBODY, NOBODY)
        os.seteuid(NOBODY)
        try:
            yield home
        finally:
            os.seteuid(0)
