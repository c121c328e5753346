"""Who can log in where: agents at their provider and at the server, people at the server."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from culture.cli.doctor.runner import FindingSeverity
from culture.config.installation import installation
from culture.protocol.vocabulary import UserClass
from culture.server.auth.account_store import AccountStore
from culture.server.auth.accounts import new_account
from tests.cli.doctor.conftest import NICK, Patient
from tests.support.tls import made

PORT = 1
HERE = {"host": "127.0.0.1", "port": PORT}


@pytest.fixture
def store(patient: Patient) -> AccountStore:
    """The accounts of a server that has an agent."""
    patient.server(listen=[{"port": PORT}])
    patient.agents(server=HERE)
    return AccountStore(patient.home / "accounts.json", "spark")


@pytest.mark.parametrize(("kind", "package"), [("claude", "claude_agent_sdk"), ("codex", "codex_cli_bin")])
def test_nobody_has_logged_in_to_a_program(
    patient: Patient, monkeypatch: pytest.MonkeyPatch, kind: str, package: str
) -> None:
    pytest.importorskip(package)
    patient.agents({"agent": kind})
    finding = patient.one("logins.backends")
    assert finding.severity is FindingSeverity.ERROR and "login" in finding.next and NICK in finding.why
    monkeypatch.setenv("ANTHROPIC_API_KEY" if kind == "claude" else "CODEX_API_KEY", "hunter2")
    assert patient.found("logins.backends") == []


def test_a_program_that_agents_yaml_names_is_not_there(patient: Patient) -> None:
    pytest.importorskip("acp")
    patient.agents({"agent": "acp", "acp_command": ["no-such-agent", "--acp"]})
    finding = patient.one("logins.commands")
    assert finding.severity is FindingSeverity.ERROR and "no-such-agent" in finding.what
    assert patient.found("versions.backends") == [], "it needs no other program"


def test_what_speaks_to_the_named_program_is_not_installed(patient: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "acp", None)
    patient.agents({"agent": "acp", "acp_command": ["sh"]})
    assert patient.one("logins.commands").next == installation().extend("acp")


def test_an_agent_whose_account_is_revoked(patient: Patient, store: AccountStore) -> None:
    store.add(new_account(NICK, UserClass.AGENT))
    assert patient.found("logins.accounts") == []
    store.revoke(NICK)
    assert f"culture account passwd {NICK}" in patient.one("logins.accounts").next


def test_a_token_that_is_none_of_the_account(patient: Patient, store: AccountStore) -> None:
    store.add(new_account(NICK, UserClass.AGENT))
    patient.file(f"secrets/{NICK}", store.add_token(NICK, "daemon"))
    assert patient.found("logins.accounts") == []
    patient.file(f"secrets/{NICK}", "hunter2")
    finding = patient.one("logins.accounts")
    assert finding.severity is FindingSeverity.HINT and "hunter2" not in str(finding)


async def test_a_running_agent_with_a_token_that_is_none(patient: Patient) -> None:
    _, port = await patient.serve()
    patient.agents(server={"host": "127.0.0.1", "port": port}, supervisor={"agent": "none"})
    started = await patient.shell.run("start", NICK)
    assert started.code == 0, started.err
    try:
        assert patient.found("logins.accounts") == []
        patient.file(f"secrets/{NICK}", "hunter2")
        finding = patient.one("logins.accounts")
        patient.server(name="spark")
        patient.agents({"nick": "spark-other"}, server={"host": "127.0.0.1", "port": port})
        unknown = patient.one("agents.states")
    finally:
        await patient.shell.run("stop", NICK)
    assert finding.severity is FindingSeverity.WARNING and f"culture restart {NICK}" in finding.next
    assert unknown.severity is FindingSeverity.HINT and f"culture stop {NICK}" in unknown.next


def test_no_token_for_a_server_on_another_machine(patient: Patient) -> None:
    patient.agents(server={"host": "irc.invalid", "port": 6697, "tls": True})
    finding = patient.one("logins.accounts")
    assert finding.severity is FindingSeverity.WARNING and "culture account token" in finding.next


@pytest.mark.parametrize("text", ["{", '{"schema": 99}', "[]"])
def test_accounts_that_cannot_be_read(patient: Patient, text: str) -> None:
    patient.server()
    patient.file("accounts.json", text)
    finding = patient.one("accounts.readable")
    assert finding.severity is FindingSeverity.ERROR and "culture restore" in finding.next


def test_accounts_that_are_a_folder(patient: Patient) -> None:
    patient.server()
    (patient.home / "accounts.json").mkdir()
    assert patient.one("accounts.readable").severity is FindingSeverity.ERROR


def wide(patient: Patient) -> dict[str, Any]:
    tls, _ = made(patient.shell.folder, "spark", 90)
    return {"listen": [{"host": "0.0.0.0", "port": 6697, "tls": tls.model_dump()}]}


def test_agents_have_accounts_and_people_none(patient: Patient, store: AccountStore) -> None:
    assert patient.found("accounts.people") == []
    store.add(new_account(NICK, UserClass.AGENT))
    assert patient.one("accounts.people").severity is FindingSeverity.HINT
    patient.server(**wide(patient))
    assert patient.one("accounts.people").severity is FindingSeverity.WARNING
    store.add(new_account("ori", UserClass.HUMAN))
    assert patient.found("accounts.people") == []


def test_an_agent_with_the_nick_of_a_person(patient: Patient, store: AccountStore) -> None:
    store.add(new_account("bee", UserClass.HUMAN))
    finding = patient.one("accounts.nicks")
    assert finding.severity is FindingSeverity.ERROR and "the person bee" in finding.what


def test_an_agent_with_the_nick_of_who_types(patient: Patient, store: AccountStore) -> None:
    patient.agents({"nick": f"spark-{os.environ['LOGNAME']}"}, server=HERE)
    assert patient.one("accounts.nicks").severity is FindingSeverity.WARNING


def test_looking_leaves_the_modes_of_files_as_they_are(patient: Patient, store: AccountStore, tmp_path: Path) -> None:
    store.add(new_account(NICK, UserClass.AGENT))
    links = patient.file("data/spark/federation/links.json", '{"links": []}', mode=0o644)
    (patient.home / "accounts.json").chmod(0o644)
    patient.typed()
    assert (patient.home / "accounts.json").stat().st_mode & 0o777 == links.stat().st_mode & 0o777 == 0o644
