"""Finding programs and their versions."""

import json
import logging
from pathlib import Path

import pytest

from culture.clients.shared import programs
from culture.clients.shared.programs import Found, Login, first_set, located, note_version, package_version, version_of


def script(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    file.chmod(0o755)
    return file


def test_a_program_of_a_package_is_not_started_to_know_its_version(tmp_path: Path) -> None:
    package = tmp_path / "node_modules" / "agent"
    started = tmp_path / "started"
    script(package / "bin" / "agent.js", f"touch {started}; echo 9.9.9")
    (package / "package.json").write_text(json.dumps({"name": "agent", "version": "1.18.33"}))
    (package / "bin" / "package.json").write_text(json.dumps({"type": "module"}))
    (tmp_path / "package.json").write_text(json.dumps({"version": "7.7.7"}))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "agent").symlink_to(package / "bin" / "agent.js")
    found = located("agent", {"PATH": str(tmp_path / "bin")})
    assert found is not None
    assert version_of(found) == "1.18.33"
    assert not started.exists()


def test_a_package_that_a_program_only_happens_to_lie_in_does_not_tell_its_version(tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text(json.dumps({"name": "somebody's own", "version": "7.7.7"}))
    assert version_of(script(tmp_path / ".agent" / "bin" / "agent", "echo 1.2.3")) == "1.2.3"


@pytest.mark.parametrize(
    ("said", "known"),
    [
        ("echo agent-cli v0.163.0 built by hand", "0.163.0"),
        ("echo 1.0.102-beta.3", "1.0.102-beta.3"),
        ("echo nothing to say", "?"),
        ("echo 1.2.3 >&2; exit 3", "?"),
        ("printf '\\377\\376'", "?"),
    ],
)
def test_a_program_of_no_package_is_asked(tmp_path: Path, said: str, known: str) -> None:
    assert version_of(script(tmp_path / "agent", said)) == known


def test_a_program_that_does_not_answer_is_there_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "ASKING_PATIENCE", 0.05)
    assert version_of(script(tmp_path / "agent", "exec sleep 600")) == "?"


def test_what_is_nowhere_is_not_found(tmp_path: Path) -> None:
    assert located("agent", {"PATH": str(tmp_path)}) is None
    assert located(str(tmp_path / "agent"), {"PATH": ""}) is None
    assert package_version("no-such-package-at-all") is None


def test_a_variable_without_a_value_is_not_set() -> None:
    assert first_set(("A", "B", "C"), {"A": "", "C": "x"}) == "C"
    assert first_set(("A", "B"), {"A": ""}) == ""


@pytest.mark.parametrize(
    ("version", "tried", "untried"),
    [
        ("0.163.4", "0.163", False),
        ("0.164.0", "0.163", True),
        ("0.99.0", "0.163", False),
        ("2", "1.9", True),
        ("1.0.103", "1.0.102", True),
        ("1.0.102-beta.3", "1.0.102", False),
        ("v2.2", "2.1", True),
        ("?", "2.1", False),
        ("2.2", "", False),
        (None, "2.1", False),
    ],
)
def test_a_version_beyond_what_was_tried_is_known_as_such(version: str | None, tried: str, untried: bool) -> None:
    assert Found("agent", version, tried=tried).untried is untried


def test_the_version_is_logged_and_a_newer_one_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    newer = Found("an agent of this test", "3.0.1", tried="2.1")
    for nick in ("spark-a", "spark-b"):
        note_version(nick, newer)
    note_version("spark-c", Found("an agent of this test", "2.1.9", tried="2.1"))
    assert [record.getMessage() for record in caplog.records if record.levelno == logging.INFO] == [
        "spark-a: an agent of this test 3.0.1",
        "spark-b: an agent of this test 3.0.1",
        "spark-c: an agent of this test 2.1.9",
    ]
    (warning,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert "3.0.1 is newer than what was tried (2.1)" in warning


@pytest.mark.parametrize(
    ("found", "ready"),
    [
        (Found("agent"), False),
        (Found("agent", "1", Login.MISSING), False),
        (Found("agent", "1", Login.UNKNOWN), True),
        (Found("agent", "1", Login.NOT_NEEDED), True),
    ],
)
def test_it_is_ready_when_nothing_is_known_to_be_missing(found: Found, ready: bool) -> None:
    assert found.ready is ready
