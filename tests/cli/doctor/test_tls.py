"""Certificates: their dates, their keys, and who has pinned them."""

from pathlib import Path
from typing import Any

import pytest

from culture.cli.doctor.runner import FindingSeverity
from tests.cli.doctor.conftest import Patient
from tests.support.tls import made


def listen(tls: Any, port: int = 6697) -> list[dict[str, Any]]:
    return [{"port": port, "tls": tls.model_dump()}]


@pytest.mark.parametrize(
    ("days", "ago", "severity"),
    [
        pytest.param(30, 40, FindingSeverity.ERROR, id="ended"),
        pytest.param(30, 20, FindingSeverity.WARNING, id="ends soon"),
        pytest.param(90, -10, FindingSeverity.ERROR, id="not yet"),
    ],
)
def test_the_dates_of_a_certificate(
    patient: Patient, tmp_path: Path, days: int, ago: int, severity: FindingSeverity
) -> None:
    tls, _ = made(tmp_path, "spark", days, ago)
    patient.server(listen=listen(tls))
    assert patient.one("tls.dates").severity is severity


def test_a_certificate_that_is_good(patient: Patient, tmp_path: Path) -> None:
    tls, _ = made(tmp_path, "spark", 90)
    patient.server(listen=listen(tls))
    assert patient.found("tls.dates") == []


def test_a_certificate_that_is_not_there_or_none(patient: Patient, tmp_path: Path) -> None:
    tls, _ = made(tmp_path, "spark", 90)
    patient.server(listen=listen(tls))
    tls.certificate.write_text("nothing")
    assert "is not a certificate" in patient.one("tls.dates").what
    tls.certificate.unlink()
    assert "No such file" in patient.one("tls.dates").what


def test_a_key_that_is_of_another_certificate(patient: Patient, tmp_path: Path) -> None:
    tls, _ = made(tmp_path, "spark", 90)
    other, _ = made(tmp_path, "other", 90)
    other.key.rename(tls.key)
    patient.server(listen=listen(tls))
    finding = patient.one("tls.dates")
    assert finding.severity is FindingSeverity.ERROR and "spark.key" in finding.what
    tls.key.unlink()
    assert "No such file" in patient.one("tls.dates").what


async def test_a_server_that_has_not_read_its_new_certificate(patient: Patient, tmp_path: Path) -> None:
    tls, before = made(tmp_path, "spark", 90)
    process, port = await patient.serve(listen=listen(tls, port=0))
    patient.agents(server={"host": "127.0.0.1", "port": port, "tls": True, "fingerprint": before})
    assert patient.found("tls.shown") == [] and patient.found("tls.pins") == []
    assert patient.found("ports.agents") == [] and patient.found("ports.answering") == []
    made(tmp_path, "spark", 90)
    assert patient.one("tls.shown").next == f"kill -HUP {process.pid}"


async def test_a_server_that_shows_another_certificate_than_agents_expect(patient: Patient, tmp_path: Path) -> None:
    tls, fingerprint = made(tmp_path, "spark", 90)
    _, port = await patient.serve(listen=listen(tls, port=0))
    patient.agents(server={"host": "127.0.0.1", "port": port, "tls": True, "fingerprint": "ab" * 32})
    finding = patient.one("tls.pins")
    assert finding.severity is FindingSeverity.ERROR and fingerprint in finding.next


def test_a_server_that_does_not_run_is_judged_by_its_file(patient: Patient, tmp_path: Path) -> None:
    tls, fingerprint = made(tmp_path, "spark", 90)
    patient.server(listen=listen(tls, port=1))
    patient.agents(server={"host": "127.0.0.1", "port": 1, "tls": True, "fingerprint": "ab" * 32})
    assert fingerprint in patient.one("tls.pins").next
