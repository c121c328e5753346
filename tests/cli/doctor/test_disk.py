"""The disk: room, inodes, what sort it is."""

import os
import subprocess
from pathlib import Path

import pytest

from culture.cli.doctor.files import judge_disk_kind
from culture.cli.doctor.runner import FindingSeverity
from tests.cli.doctor.conftest import Patient, unprivileged
from tests.support.small_disk import fill, small_disk


def test_a_full_disk(patient: Patient) -> None:
    with small_disk(patient.home):
        assert patient.found("disk.room") == []
        fill(patient.home)
        finding = patient.one("disk.room")
    assert finding.severity is FindingSeverity.ERROR and "prune" in finding.next


def test_a_disk_that_is_nearly_full(patient: Patient) -> None:
    with small_disk(patient.home):
        (patient.home / "ballast").write_bytes(b"x" * 3_000_000)
        assert patient.one("disk.room").severity is FindingSeverity.WARNING


def test_a_disk_without_inodes(patient: Patient) -> None:
    with small_disk(patient.home, "4m,nr_inodes=1000"):
        for number in range(980):
            (patient.home / str(number)).touch()
        finding = patient.one("disk.room")
    assert finding.severity is FindingSeverity.ERROR and "df -i" in finding.next


def test_a_disk_that_is_read_only(patient: Patient) -> None:
    with small_disk(patient.home):
        subprocess.run(["mount", "-o", "remount,ro", str(patient.home)], check=True)
        finding = patient.one("disk.writable")
    assert finding.severity is FindingSeverity.ERROR and "remount,rw" in finding.next


def test_a_folder_that_cannot_be_written(patient: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    with unprivileged(monkeypatch) as home:
        assert patient.found("disk.writable") == []
        os.chmod(home, 0o500)
        assert "chmod u+rwx" in patient.one("disk.writable").next


def test_a_disk_of_another_machine() -> None:
    mounts = "/dev/sda / ext4 rw 0 0\nserver:/export /shared nfs4 rw 0 0\nC:\\134 /mnt/my\\040c 9p rw 0 0\n"
    [finding] = judge_disk_kind(Path("/shared/.culture"), mounts)
    assert finding.severity is FindingSeverity.WARNING and "nfs4" in finding.what
    assert [*judge_disk_kind(Path("/mnt/my c/.culture"), mounts)] and not [
        *judge_disk_kind(Path("/var/.culture"), mounts)
    ]


def test_the_data_is_very_large(patient: Patient) -> None:
    patient.server()
    os.truncate(patient.file("data/spark/history/history.db"), 6_000_000_000)
    finding = patient.one("disk.size")
    assert finding.severity is FindingSeverity.HINT and "6.0 GB" in finding.what
