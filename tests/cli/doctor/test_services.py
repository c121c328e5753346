"""Units of systemd that are out of date."""

import os
from pathlib import Path

import pytest

from culture.cli.agents import service
from culture.cli.doctor import configuration
from culture.cli.doctor.runner import FindingSeverity
from culture.config.peer_uid import user_name
from tests.cli.doctor.conftest import NICK, Patient


@pytest.fixture
def folder(patient: Patient, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where systemd looks for the units of this user; nobody lingers."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(patient.shell.folder / "config"))
    monkeypatch.setattr(configuration, "_LINGERING", patient.shell.folder / "nothing" / "linger")
    made = service.unit_folder(system=False)
    made.mkdir(parents=True)
    patient.agents()
    return made


async def test_units_of_today_are_well(patient: Patient, folder: Path) -> None:
    patient.shell.environment["XDG_CONFIG_HOME"] = str(patient.shell.folder / "config")
    installed = await patient.shell.run("service", "install", "--all", "--server", "--bridge")
    assert installed.code == 0, installed.err
    assert sorted(os.listdir(folder)) == [service.BRIDGE_UNIT, service.SERVER_UNIT, service.agent_unit(NICK)]
    assert patient.found("services.installed") == []


def test_a_unit_that_would_be_written_differently_today(patient: Patient, folder: Path) -> None:
    unit = folder / service.SERVER_UNIT
    unit.write_text(service.for_server(system=False).replace("TimeoutStopSec=60", "TimeoutStopSec=5"))
    finding = patient.one("services.installed")
    assert finding.severity is FindingSeverity.HINT and "culture service install --server" in finding.next


def test_a_unit_whose_program_is_gone(patient: Patient, folder: Path) -> None:
    text = service.for_agent(NICK, system=False)
    lines = [
        f"ExecStart={patient.home}/gone/python" if each.startswith("ExecStart") else each for each in text.split("\n")
    ]
    (folder / service.agent_unit(NICK)).write_text("\n".join(lines))
    finding = patient.one("services.installed")
    assert finding.severity is FindingSeverity.ERROR and f"culture service install {NICK}" in finding.next


def test_a_unit_of_an_agent_that_is_gone(patient: Patient, folder: Path) -> None:
    (folder / service.agent_unit("spark-gone")).write_text(service.for_agent("spark-gone", system=False))
    assert "culture service uninstall spark-gone" in patient.one("services.installed").next


def test_units_of_a_team_and_of_the_bridge_are_known(patient: Patient, folder: Path) -> None:
    for name, text in (
        (service.team_unit("shop"), service.for_team("shop", False)),
        (service.BRIDGE_UNIT, service.for_bridge(False)),
    ):
        (folder / name).write_text(text + "# more\n")
    said = [finding.next for finding in patient.found("services.installed")]
    assert any("--team shop" in each for each in said) and any("--bridge" in each for each in said)


def test_units_of_others_are_left_alone(patient: Patient, folder: Path) -> None:
    other = service.for_server(False).replace(str(patient.home), "/var/other/.culture")
    (folder / service.SERVER_UNIT).write_text(other.replace("TimeoutStopSec", "# TimeoutStopSec"))
    (folder / "culture-mine.service").write_text("[Service]\nExecStart=/gone\n")
    assert patient.found("services.installed") == []


def test_units_that_end_when_their_user_logs_out(
    patient: Patient, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lingering = patient.shell.folder / "linger"
    monkeypatch.setattr(configuration, "_LINGERING", lingering)
    (folder / service.SERVER_UNIT).write_text(service.for_server(False))
    assert "loginctl enable-linger" in patient.one("services.installed").next
    lingering.mkdir()
    (lingering / user_name(os.geteuid())).touch()
    assert patient.found("services.installed") == []
