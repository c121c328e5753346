"""Links to other servers: secrets, certificates, clocks, and why one is not there."""

import asyncio
import time
from pathlib import Path

import pytest

from culture.cli.doctor.runner import Finding, FindingSeverity
from culture.config.links import LinkConfig
from culture.config.model import Listen
from culture.server.ircd import IRCd
from tests.cli.doctor.conftest import Patient
from tests.support.clock import ClockedRuntime
from tests.support.servers import config_for, serving
from tests.support.tls import made
from tests.support.waiting import PATIENCE

SECRET, OTHER = "correct-horse-battery-staple", "another-horse-battery-staple"


async def until_found(patient: Patient, text: str) -> Finding:
    """The server notices within a second; what doctor says of its links then."""
    async with asyncio.timeout(PATIENCE):
        while True:
            for finding in await asyncio.to_thread(patient.found, "links.states"):
                if text in finding.what:
                    return finding


def test_a_file_of_links_that_cannot_be_read(patient: Patient) -> None:
    patient.server()
    patient.file("data/spark/federation/links.json", '{"links": [{"name": "thor", "secret": "hunter22"')
    finding = patient.one("links.readable")
    assert finding.severity is FindingSeverity.ERROR and "hunter22" not in str(finding)


def test_links_that_cannot_be(patient: Patient) -> None:
    patient.server()
    patient.file("data/spark/federation/links.json", f'{{"links": [{{"name": "spark", "secret": "{SECRET}"}}]}}')
    assert "culture mesh unlink" in patient.one("links.readable").next


def test_two_links_with_one_secret(patient: Patient) -> None:
    patient.server(links=[{"name": "thor", "secret": SECRET}, {"name": "odin", "secret": SECRET}])
    finding = patient.one("links.secrets")
    assert (
        finding.severity is FindingSeverity.WARNING and "thor and odin" in finding.what and SECRET not in str(finding)
    )


def test_a_secret_that_is_short_and_one_that_was_not_changed_to_the_end(patient: Patient) -> None:
    patient.server(links=[{"name": "thor", "secret": "hunter22", "old_secret": OTHER}])
    short, unfinished = patient.found("links.secrets")
    assert short.severity is unfinished.severity is FindingSeverity.HINT
    assert "--finish" in unfinished.next and "hunter22" not in str(short)


async def test_two_servers_with_different_secrets(patient: Patient, tmp_path: Path) -> None:
    link = LinkConfig(name="spark", secret=OTHER)
    async with serving(tmp_path / "thor", name="thor", links=(link,)) as thor:
        await patient.serve(links=[{"name": "thor", "address": f"127.0.0.1:{thor.port}", "secret": SECRET}])
        finding = await until_found(patient, "secret")
    assert finding.severity is FindingSeverity.ERROR and "--secret-file" in finding.next
    assert SECRET not in str(finding)


async def test_two_servers_that_do_not_know_each_others_certificates(patient: Patient, tmp_path: Path) -> None:
    link = LinkConfig(name="spark", secret=SECRET, fingerprint="ab" * 32, tls=True)
    tls, fingerprint = made(tmp_path, "thor", 90)
    listen = (Listen(port=0, tls=tls),)
    async with serving(tmp_path / "thor", name="thor", links=(link,), listen=listen) as thor:
        address = f"127.0.0.1:{thor.port}"
        own, _ = made(tmp_path, "spark", 90)
        await patient.serve(
            links=[{"name": "thor", "address": address, "secret": SECRET, "fingerprint": fingerprint}],
            listen=[{"port": 0, "tls": own.model_dump()}],
        )
        finding = await until_found(patient, "certificate")
    assert finding.severity is FindingSeverity.ERROR and "culture server cert" in finding.next


async def test_a_link_that_stands_by_its_old_secret(patient: Patient, tmp_path: Path) -> None:
    async with serving(tmp_path / "thor", name="thor", links=(LinkConfig(name="spark", secret=SECRET),)) as thor:
        address = f"127.0.0.1:{thor.port}"
        link = {"name": "thor", "address": address, "secret": OTHER, "old_secret": SECRET}
        await patient.serve(links=[link])
        finding = await until_found(patient, "old secret")
    assert finding.severity is FindingSeverity.HINT and "culture mesh rotate" in finding.next


async def test_a_server_that_cannot_be_reached(patient: Patient) -> None:
    await patient.serve(links=[{"name": "thor", "address": "127.0.0.1:1", "secret": SECRET}])
    finding = await until_found(patient, "cannot be reached")
    assert finding.severity is FindingSeverity.WARNING and "culture mesh" in finding.next


async def test_a_peer_that_shows_another_certificate(patient: Patient, tmp_path: Path) -> None:
    tls, fingerprint = made(tmp_path, "thor", 90)
    async with serving(tmp_path / "thor", name="thor", listen=(Listen(port=0, tls=tls),)) as thor:
        address = f"127.0.0.1:{thor.port}"
        patient.server(links=[{"name": "thor", "address": address, "secret": SECRET, "fingerprint": "ab" * 32}])
        finding = await asyncio.to_thread(patient.one, "links.certificates")
    assert finding.severity is FindingSeverity.ERROR and fingerprint in finding.next


@pytest.mark.parametrize(
    ("ahead", "severity"),
    [
        pytest.param(60, FindingSeverity.WARNING, id="a minute ahead"),
        pytest.param(-3600, FindingSeverity.ERROR, id="an hour behind"),
    ],
)
async def test_a_peer_whose_clock_is_wrong(
    patient: Patient, tmp_path: Path, ahead: int, severity: FindingSeverity
) -> None:
    config = config_for(tmp_path / "thor", name="thor")
    async with IRCd(config, runtime=ClockedRuntime(lambda: time.time() + ahead)).running() as thor:
        patient.server(links=[{"name": "thor", "address": f"127.0.0.1:{thor.port}", "secret": SECRET}])
        finding = await asyncio.to_thread(patient.one, "clocks.servers")
    assert finding.severity is severity
    assert f"{abs(ahead)} s {'ahead of' if ahead > 0 else 'behind'}" in finding.what


async def test_the_clock_of_the_agents_server_is_wrong(patient: Patient, tmp_path: Path) -> None:
    ahead = ClockedRuntime(lambda: time.time() + 1000)
    async with IRCd(config_for(tmp_path / "spark"), runtime=ahead).running() as spark:
        patient.agents(server={"host": "127.0.0.1", "port": spark.port})
        finding = await asyncio.to_thread(patient.one, "clocks.servers")
    assert finding.severity is FindingSeverity.ERROR and "timedatectl" in finding.next


async def test_clocks_that_agree_are_well(patient: Patient, tmp_path: Path) -> None:
    async with serving(tmp_path / "thor", name="thor") as thor:
        patient.server(links=[{"name": "thor", "address": f"127.0.0.1:{thor.port}", "secret": SECRET}])
        assert await asyncio.to_thread(patient.found, "clocks.servers") == []
