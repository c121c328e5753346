"""What crashes leave: notes, locks that somebody inherited, half-written files."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from culture.cli.doctor.runner import FindingSeverity
from tests.cli.doctor.conftest import Patient

# Holds a file as a server does, starts a child that inherits it, and ends.
_INHERITED = """
import fcntl, json, os, subprocess, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o600)
fcntl.flock(fd, fcntl.LOCK_EX)
os.write(fd, json.dumps({"pid": os.getpid()}).encode())
child = subprocess.Popen(["sleep", "100"], pass_fds=[fd], stdout=-3, stderr=-3)
print(child.pid, flush=True)
"""


@contextmanager
def inherited(file: Path) -> Iterator[None]:
    """The file is held by a child of a process that is gone."""
    done = subprocess.run([sys.executable, "-c", _INHERITED, str(file)], capture_output=True, text=True, check=True)
    try:
        yield
    finally:
        os.kill(int(done.stdout), 9)


async def test_a_note_of_a_server_that_was_killed(patient: Patient) -> None:
    process, _ = await patient.serve()
    assert patient.found("leftovers.notes") == []
    await process.kill()
    finding = patient.one("leftovers.notes")
    assert finding.severity is FindingSeverity.HINT and "spark.pid" in finding.what
    patient.mend("leftovers.notes")


def test_a_note_that_a_child_of_the_dead_still_holds(patient: Patient) -> None:
    with inherited(patient.file("run/spark.pid")):
        finding = patient.one("leftovers.notes")
    assert finding.severity is FindingSeverity.WARNING and "fuser" in finding.next


def test_a_note_that_is_a_symlink(patient: Patient, tmp_path: Path) -> None:
    patient.file("run/spark.pid").unlink()
    (patient.home / "run/spark.pid").symlink_to(tmp_path / "elsewhere")
    assert patient.one("leftovers.notes").severity is FindingSeverity.WARNING
    (patient.home / "run/spark.pid").unlink()


async def test_a_data_folder_that_another_server_holds(patient: Patient, tmp_path: Path) -> None:
    process, _ = await patient.serve()
    assert patient.found("leftovers.locks") == []
    patient.server(name="thor", data_dir=patient.home / "data" / "spark")
    finding = patient.one("leftovers.locks")
    assert finding.severity is FindingSeverity.WARNING
    assert f"process {process.pid} holds" in finding.what and finding.next == f"ps -fp {process.pid}"


def test_a_data_folder_that_a_child_of_the_dead_holds(patient: Patient) -> None:
    patient.server()
    with inherited(patient.file("data/spark/lock")):
        assert "fuser" in patient.one("leftovers.locks").next


def test_a_file_that_was_not_finished(patient: Patient) -> None:
    half = patient.file("accounts.json.new")
    assert patient.found("leftovers.halves") == [], "somebody may be writing it"
    os.utime(half, (time.time() - 100, time.time() - 100))
    assert patient.one("leftovers.halves").severity is FindingSeverity.HINT
    patient.mend("leftovers.halves")
