"""Who may read what, and whose it is."""

import os
from pathlib import Path

import pytest

from culture.cli.doctor.runner import FindingSeverity
from tests.cli.doctor.conftest import NOBODY, Patient, unprivileged

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


def test_others_may_look_into_the_home_folder(patient: Patient) -> None:
    patient.home.chmod(0o755)
    finding = patient.one("files.home")
    assert finding.severity is FindingSeverity.WARNING and "0755" in finding.what and "chmod 700" in finding.next
    patient.mend("files.home")


def test_the_home_folder_is_a_file(patient: Patient) -> None:
    patient.home.rmdir()
    patient.home.write_text("")
    assert patient.one("files.home").severity is FindingSeverity.ERROR


@root_only
def test_the_home_folder_is_of_another_user(patient: Patient) -> None:
    os.chown(patient.home, NOBODY, NOBODY)
    finding = patient.one("files.home")
    assert finding.severity is FindingSeverity.ERROR and "chown" in finding.next


def test_a_home_folder_that_its_owner_may_not_enter(patient: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    with unprivileged(monkeypatch) as home:
        home.chmod(0o000)
        assert patient.one("files.home").severity is FindingSeverity.ERROR
        result = patient.typed()
        assert result.code == 1 and "bug of `culture doctor`" not in result.out, "no check fails by surprise"
        patient.mend("files.home")


@pytest.mark.parametrize(
    "name", ["secrets/spark-bee", "tls/spark.key", "accounts.json", "data/spark/federation/links.json"]
)
def test_others_may_read_a_secret(patient: Patient, name: str) -> None:
    file = patient.file(name, "{}", mode=0o604)
    finding = patient.one("files.secrets")
    assert finding.severity is FindingSeverity.ERROR and f"chmod 600 ~/culture-home/{name}" == finding.next
    assert file.stat().st_mode & 0o777 == 0o604, "looking changes nothing"
    patient.mend("files.secrets")
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("name", ["culture.yaml", "agents.yaml"])
def test_others_may_read_a_configuration_with_secrets(patient: Patient, name: str) -> None:
    secret = {"culture.yaml": "password: hunter22\n", "agents.yaml": "webhooks: {url: https://hooks.example/x}\n"}
    patient.file(name, secret[name], mode=0o644)
    assert name in patient.one("files.secrets").what
    patient.file(name, "# nothing secret\n", mode=0o644)
    assert patient.found("files.secrets") == []


def test_secrets_outside_of_the_home_folder_count_too(patient: Patient, tmp_path: Path) -> None:
    accounts = tmp_path / "elsewhere.json"
    accounts.write_text("{}")
    accounts.chmod(0o644)
    patient.server(accounts_file=accounts)
    assert "elsewhere.json" in patient.one("files.secrets").what


def test_a_symlink_among_the_secrets(patient: Patient, tmp_path: Path) -> None:
    patient.file("secrets/spark-bee").unlink()
    (patient.home / "secrets/spark-bee").symlink_to(tmp_path / "elsewhere")
    assert patient.one("files.secrets").severity is FindingSeverity.WARNING


def test_others_may_read_what_is_said(patient: Patient) -> None:
    log = patient.file("log/spark.log", "hello", mode=0o644)
    patient.file("data/spark/history/history.db", mode=0o640)
    finding = patient.one("files.others")
    assert finding.severity is FindingSeverity.HINT and "1 other" in finding.what, "the home folder itself is shut"
    patient.home.chmod(0o755)
    assert patient.one("files.others").severity is FindingSeverity.WARNING
    patient.mend("files.others")
    assert log.stat().st_mode & 0o777 == 0o600


@root_only
def test_sudo_has_left_files_of_another_user(patient: Patient) -> None:
    os.chown(patient.file("log/spark.log"), NOBODY, NOBODY)
    finding = patient.one("files.owners")
    assert finding.severity is FindingSeverity.ERROR and "sudo chown -R" in finding.next
