"""Versions of Python, of culture, and of agents' programs."""

import json
import stat
from pathlib import Path

import pytest

from culture import __version__
from culture.cli.doctor.machine import judge_python
from culture.cli.doctor.runner import FindingSeverity
from culture.cli.skills import skill_files
from culture.clients.shared.backends import backend
from culture.config.installation import installation
from culture.config.team import ROLES
from tests.cli.doctor.conftest import NICK, Patient

FTS5 = frozenset({"ENABLE_FTS5"})


def program(folder: Path, name: str, version: str) -> Path:
    """A program on PATH that tells its version and does nothing else."""
    file = folder / name
    file.write_text(f"#!/bin/sh\necho {name} {version}\n")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return file


def test_this_python_is_well(patient: Patient) -> None:
    assert not [each for each in patient.found("versions.python") if each.severity is FindingSeverity.ERROR]


def test_pythons_that_were_not_tried_or_lack_something() -> None:
    assert [*judge_python((3, 11, 9), (3, 40, 1), FTS5)] == []
    [newer] = judge_python((3, 99, 0), (3, 40, 1), FTS5)
    assert newer.severity is FindingSeverity.HINT
    [old], [without] = judge_python((3, 11, 9), (3, 20, 0), FTS5), judge_python((3, 11, 9), (3, 40, 1), frozenset())
    assert old.severity is without.severity is FindingSeverity.ERROR and "FTS5" in without.what


async def test_a_server_that_runs_since_before_an_update(patient: Patient) -> None:
    await patient.serve()
    assert patient.found("versions.package") == []
    file = patient.shell.pid_file()
    said = json.loads(file.read_text())
    assert said["version"] == __version__
    for version in ("0.0.1", ""):
        file.write_text(json.dumps({**said, "version": version}))  # the lock stays with the server
        finding = patient.one("versions.package")
        assert finding.severity is FindingSeverity.WARNING and "culture server restart" in finding.next


def test_files_of_another_version_than_was_installed(patient: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    site = patient.shell.folder / "site-packages"
    (site / "culture_mesh-0.0.1.dist-info").mkdir(parents=True)
    monkeypatch.syspath_prepend(str(site))
    finding = patient.one("versions.package")
    assert "0.0.1" in finding.what and installation().upgrade() in finding.next


def test_a_program_that_is_not_installed(patient: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(patient.shell.folder))
    patient.agents({"agent": "acp"})
    finding = patient.one("versions.backends")
    assert finding.severity is FindingSeverity.ERROR and NICK in finding.why
    said = {"slug": "shop", "project_dir": str(patient.home), "roles": {role: {"agent": "acp"} for role in ROLES}}
    patient.file("team/shop/team.yaml", json.dumps(said))
    assert "the team shop" in patient.one("versions.backends").why


def test_a_program_that_is_newer_than_what_was_tried(patient: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("acp")
    program(patient.shell.folder, "opencode", "99.1.0")
    monkeypatch.setenv("PATH", f"{patient.shell.folder}:/bin:/usr/bin")
    patient.agents({"agent": "acp"})
    finding = next(each for each in patient.found("versions.backends") if "99.1.0" in each.what)
    assert finding.severity is FindingSeverity.HINT and NICK in finding.why


def test_an_agent_whose_program_has_no_irc_skill(patient: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    patient.agents({"agent": "codex"})
    finding = patient.one("versions.skills")
    assert finding.severity is FindingSeverity.HINT and finding.next == "`culture skills install codex`"
    patient.agents({"agent": "claude"})
    assert patient.found("versions.skills") == []
    monkeypatch.setattr("culture.cli.doctor.machine.PLUGIN_MANIFEST", patient.shell.folder / "gone.json")
    assert patient.one("versions.skills").severity is FindingSeverity.ERROR


def test_an_agent_whose_program_has_the_irc_skill_of_another_version(patient: Patient) -> None:
    patient.agents({"agent": "claude"})
    page = skill_files(backend("codex"))["SKILL.md"].decode()
    put(patient, ".agents/skills/irc/SKILL.md", page)
    assert patient.found("versions.skills") == [], "kinds of agents share that folder"
    put(patient, ".claude/skills/irc/SKILL.md", page.replace("6: not answered yet", "7: not answered yet"))
    finding = patient.one("versions.skills")
    assert finding.severity is FindingSeverity.HINT and finding.next == "`culture skills install claude`"


def put(patient: Patient, name: str, text: str) -> None:
    """A file in the user's home."""
    file = Path.home() / name
    file.parent.mkdir(parents=True)
    file.write_text(text)
