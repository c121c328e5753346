"""Where servers listen: whether they answer, who else has the port, who can reach it, and whether agents find it."""

import os
import signal
import threading
from pathlib import Path

import pytest

from culture.cli.doctor.inventory import probe
from culture.cli.doctor.runner import FindingSeverity
from culture.protocol.vocabulary import UserClass
from culture.server.auth.account_store import AccountStore
from culture.server.auth.accounts import new_account
from tests.cli.doctor.conftest import NICK, Patient
from tests.support.ports import bound, reserved
from tests.support.tls import made
from tests.support.waiting import PATIENCE


def test_another_program_has_the_port(patient: Patient) -> None:
    with bound() as other:
        other.listen()
        port = other.getsockname()[1]
        patient.server(listen=[{"port": port}])
        finding = patient.one("ports.answering")
    assert finding.severity is FindingSeverity.ERROR
    assert f"port {port} is taken" in finding.what and str(os.getpid()) in finding.what


def test_an_address_that_is_not_this_machines(patient: Patient) -> None:
    patient.server(listen=[{"host": "192.0.2.1", "port": 6667}], trusted_network=True)
    assert "no such address" in patient.one("ports.answering").what


def test_a_server_that_does_not_run(patient: Patient) -> None:
    with reserved() as port:
        patient.server(listen=[{"port": port}])
        finding = patient.one("ports.answering")
    assert finding.severity is FindingSeverity.HINT and "culture server start" in finding.next


async def test_a_server_that_hangs(patient: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    process, port = await patient.serve()
    assert patient.found("ports.answering") == []
    monkeypatch.setattr(probe, "__defaults__", (0.2,))
    process.signal(signal.SIGSTOP)
    finding = patient.one("ports.answering")
    process.signal(signal.SIGCONT)
    assert finding.severity is FindingSeverity.ERROR
    assert f"port {port}" in finding.what and "culture server restart" in finding.next


async def test_a_listener_for_web_pages_is_well_though_it_speaks_no_irc(patient: Patient) -> None:
    await patient.serve(listen=[{"port": 0}, {"port": 0, "websocket": {"origins": ["none"]}}])
    assert patient.found("ports.answering") == []


def test_beyond_loopback_without_tls_and_without_accounts(patient: Patient) -> None:
    patient.server(listen=[{"host": "0.0.0.0", "port": 6667}], trusted_network=True)
    found = patient.found("ports.exposure")
    assert [each.severity for each in found] == [FindingSeverity.WARNING, FindingSeverity.WARNING]
    assert "culture server cert" in found[0].next and "culture account add" in found[1].next


def test_beyond_loopback_with_tls_and_without_accounts(patient: Patient, tmp_path: Path) -> None:
    tls, _ = made(tmp_path, "spark")
    patient.server(listen=[{"host": "0.0.0.0", "port": 6697, "tls": tls.model_dump()}])
    assert patient.one("ports.exposure").severity is FindingSeverity.ERROR
    AccountStore(patient.home / "accounts.json").add(new_account("ori", UserClass.HUMAN))
    assert patient.found("ports.exposure") == []


def test_figures_that_everybody_can_read(patient: Patient) -> None:
    patient.server(metrics={"listen": "0.0.0.0:9464"}, trusted_network=True)
    assert "127.0.0.1" in patient.one("ports.exposure").next


async def test_agents_look_for_the_server_at_another_port(patient: Patient) -> None:
    _, port = await patient.serve()
    with reserved() as wrong:
        patient.agents(server={"host": "127.0.0.1", "port": wrong})
        finding = patient.one("ports.agents")
    assert finding.severity is FindingSeverity.ERROR and f"port: {port}" in finding.next
    patient.agents(server={"host": "127.0.0.1", "port": port})
    assert patient.found("ports.agents") == []


def test_agents_look_elsewhere_than_where_the_server_would_be(patient: Patient) -> None:
    patient.server(listen=[{"port": 2}])
    patient.agents(server={"host": "127.0.0.1", "port": 1})
    assert "port: 2" in patient.one("ports.agents").next


async def test_agents_speak_tls_where_the_server_does_not(patient: Patient) -> None:
    _, port = await patient.serve()
    patient.agents(server={"host": "127.0.0.1", "port": port, "tls": True})
    assert "no TLS" in patient.one("ports.agents").what


async def test_agents_with_the_nicks_of_another_server(patient: Patient) -> None:
    _, port = await patient.serve()
    patient.agents({"nick": "thor-bee"}, server={"host": "127.0.0.1", "port": port})
    assert "spark-" in patient.one("ports.agents").why


def test_the_server_of_the_agents_on_another_machine_does_not_answer(
    patient: Patient, monkeypatch: pytest.MonkeyPatch
) -> None:
    patient.agents(server={"host": "nowhere.invalid", "port": 6667})
    assert "nowhere.invalid" in patient.one("ports.agents").what


async def test_agents_that_wait_for_a_server_make_it_an_error(patient: Patient) -> None:
    process, port = await patient.serve()
    patient.agents({"nick": NICK}, server={"host": "127.0.0.1", "port": port}, supervisor={"agent": "none"})
    started = await patient.shell.run("start", NICK)
    assert started.code == 0, started.err
    try:
        await process.kill()
        with reserved() as free:
            patient.server(listen=[{"port": free}])
            finding = patient.one("ports.answering")
    finally:
        await patient.shell.run("stop", NICK)
    assert finding.severity is FindingSeverity.ERROR and NICK in finding.why


@pytest.mark.parametrize("said", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b":x 391 * x no-time\r\n", b"\xff\xfe\r\n"])
def test_whatever_answers_the_probe_is_judged_and_never_trusted(said: bytes) -> None:
    with bound() as other:
        other.listen()
        other.settimeout(PATIENCE)

        def answer() -> None:
            wire, _ = other.accept()
            with wire:
                wire.recv(100)
                wire.sendall(said)

        thread = threading.Thread(target=answer)
        thread.start()
        found = probe("127.0.0.1", other.getsockname()[1], tls=False)
        thread.join()
    assert found.ahead is None
    assert found.speaks is (b"391" in said)
