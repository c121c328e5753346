"""Databases that are damaged or grow, and what restores leave."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from culture.cli.doctor import databases
from culture.cli.doctor.runner import FindingSeverity
from culture.clients.shared.records import Records
from tests.cli.doctor.conftest import NICK, Patient, unprivileged
from tests.support.lockholder import locked


def large(path: Path, rows: int = 2000) -> None:
    """A database of some pages."""
    with closing(sqlite3.connect(path)) as made:
        made.execute("CREATE TABLE IF NOT EXISTS said (number INTEGER PRIMARY KEY, text TEXT)")
        made.executemany("INSERT INTO said (text) VALUES (?)", [("x" * 200,)] * rows)
        made.execute("CREATE INDEX words ON said (text)")
        made.commit()


def damage(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(8192)
        file.write(os.urandom(40_000))


def test_a_damaged_history(patient: Patient) -> None:
    patient.server()
    history = patient.file("data/spark/history/history.db")
    large(history)
    assert patient.found("databases.whole") == []
    damage(history)
    finding = patient.one("databases.whole")
    assert (
        finding.severity is FindingSeverity.ERROR and "history.db" in finding.what and "culture restore" in finding.next
    )


def test_an_agents_file_that_is_no_database(patient: Patient) -> None:
    patient.file(f"inbox/{NICK}.db", "this is no database, and never was one")
    finding = patient.one("databases.whole")
    assert f"culture stop {NICK}" in finding.next


def test_a_database_that_is_too_large_for_the_time_is_no_fault(
    patient: Patient, monkeypatch: pytest.MonkeyPatch
) -> None:
    patient.server()
    large(patient.file("data/spark/history/history.db"), 20_000)
    monkeypatch.setattr(databases, "_TIME", 0.0)
    assert patient.found("databases.whole") == []
    assert "1 was not finished" in patient.typed("--all").out


def test_looking_makes_no_files(patient: Patient) -> None:
    patient.file(f"inbox/{NICK}.db").unlink()
    Records(patient.home / "inbox" / f"{NICK}.db").close()
    assert patient.found("databases.whole") == []
    assert [each.name for each in (patient.home / "inbox").iterdir()] == [f"{NICK}.db"]


def test_a_database_that_cannot_be_opened(patient: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    with unprivileged(monkeypatch) as home:
        (home / "inbox").mkdir()
        large(home / "inbox" / f"{NICK}.db", 1)
        (home / "inbox" / f"{NICK}.db").chmod(0)
        finding = patient.one("databases.whole")
    assert finding.severity is FindingSeverity.WARNING and "ls -l" in finding.next


async def test_a_database_that_is_being_written_is_no_fault(patient: Patient) -> None:
    patient.file(f"inbox/{NICK}.db").unlink()
    Records(patient.home / "inbox" / f"{NICK}.db").close()
    async with locked(patient.home / "inbox" / f"{NICK}.db"):
        assert patient.found("databases.whole") == []


@pytest.mark.parametrize(
    ("name", "size", "severity"),
    [
        pytest.param("data/spark/history/history.db-wal", 300_000_000, FindingSeverity.WARNING, id="write-ahead log"),
        pytest.param("data/spark/ledger/ledger.db", 2_000_000_000, FindingSeverity.HINT, id="ledger"),
        pytest.param("data/spark/audit/audit-20260101T000000.0Z.jsonl", 950_000_000, FindingSeverity.HINT, id="audit"),
        pytest.param("log/spark.log", 300_000_000, FindingSeverity.HINT, id="log"),
    ],
)
def test_what_has_grown(patient: Patient, name: str, size: int, severity: FindingSeverity) -> None:
    patient.server()
    os.truncate(patient.file(name), size)
    assert patient.one("databases.growth").severity is severity


def test_what_a_restore_has_put_aside(patient: Patient) -> None:
    patient.file("data/spark.before-20260101T000000/history/history.db", "old")
    assert "rm -r" in patient.one("databases.before").next
