"""Unix sockets, and the folders for them."""

import os
import socket
from pathlib import Path

import pytest

from culture.cli.doctor.runner import FindingSeverity
from culture.config import paths
from culture.lib.files import private_directory
from tests.cli.doctor.conftest import NICK, NOBODY, Patient

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


def runtime(patient: Patient) -> Path:
    return patient.shell.folder / "run"


def test_without_a_runtime_folder_they_are_in_the_home_folder(
    patient: Patient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    patient.agents()
    assert patient.found("sockets.folder") == []
    assert paths.agent_socket(NICK).parent != Path("/tmp")


def test_the_folder_for_sockets_is_gone(patient: Patient) -> None:
    runtime(patient).rmdir()
    assert patient.one("sockets.folder").severity is FindingSeverity.ERROR


def test_everybody_may_write_to_the_folder_for_sockets(patient: Patient) -> None:
    runtime(patient).chmod(0o777)
    assert "chmod 700" in patient.one("sockets.folder").next


@root_only
def test_the_folder_for_sockets_is_of_another_user(patient: Patient) -> None:
    os.chown(runtime(patient), NOBODY, NOBODY)
    finding = patient.one("sockets.folder")
    assert finding.severity is FindingSeverity.ERROR and "unset" in finding.next


def test_the_folder_for_temporary_files_is_gone(patient: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(patient.shell.folder / "gone"))
    assert patient.one("sockets.temporary").severity is FindingSeverity.ERROR


def test_in_the_folder_for_temporary_files_everybody_may_do_everything(
    patient: Patient, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = patient.shell.folder / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    monkeypatch.setenv("TMPDIR", str(shared))
    assert "chmod +t" in patient.one("sockets.temporary").next
    shared.chmod(0o1777)
    assert patient.found("sockets.temporary") == []


def test_a_path_that_is_too_long(patient: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    patient.agents()
    monkeypatch.setattr(paths, "SOCKET_PATH_LIMIT", 20)
    finding = patient.one("sockets.lengths")
    assert finding.severity is FindingSeverity.ERROR and NICK in finding.what and "20 bytes" in finding.why


def test_a_socket_with_nobody_behind_it(patient: Patient) -> None:
    path = paths.agent_socket("spark-gone")
    private_directory(path.parent)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))
        path.chmod(0o600)
        made.listen()
        assert patient.found("sockets.states") == []
    assert patient.one("sockets.states").severity is FindingSeverity.HINT
    patient.mend("sockets.states")


def test_a_socket_that_others_may_speak_to(patient: Patient) -> None:
    patient.agents()
    private_directory(paths.agent_socket(NICK).parent)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(paths.agent_socket(NICK)))
        paths.agent_socket(NICK).chmod(0o666)
        made.listen()
        assert patient.one("sockets.states").severity is FindingSeverity.WARNING
        patient.mend("sockets.states")


@pytest.mark.parametrize("kind", ["symlink", "file"])
def test_something_else_in_the_place_of_a_socket(patient: Patient, kind: str) -> None:
    patient.agents()
    path = paths.agent_socket(NICK)
    private_directory(path.parent)
    path.symlink_to("/nowhere") if kind == "symlink" else path.write_text("")
    assert patient.one("sockets.states").severity is FindingSeverity.ERROR


@root_only
def test_a_socket_of_another_user(patient: Patient) -> None:
    patient.agents()
    private_directory(paths.agent_socket(NICK).parent)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(paths.agent_socket(NICK)))
        made.listen()
        os.chown(paths.agent_socket(NICK), NOBODY, NOBODY)
        assert "another user" in patient.one("sockets.states").what
