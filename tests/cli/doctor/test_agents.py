"""Agents: their folders, what they are doing, what they have left behind."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from culture.bridge.access import BridgeAccess
from culture.cli.agents import agent_report
from culture.cli.doctor.runner import Finding, FindingSeverity
from culture.clients.shared import ending, pidfile
from culture.clients.shared.notes import Notes
from culture.clients.shared.records import Records
from culture.config import paths
from tests.cli.doctor.conftest import NICK, Patient, unprivileged
from tests.support.agents import kill_watchdog, playbook
from tests.support.client import registered
from tests.support.people import accounts_of
from tests.support.waiting import PATIENCE


async def until_found(patient: Patient, check: str, is_it: Callable[[Finding], bool]) -> Finding:
    """What a check finds, once it does."""
    async with asyncio.timeout(PATIENCE):
        while True:
            for finding in await asyncio.to_thread(patient.found, check):
                if is_it(finding):
                    return finding


@asynccontextmanager
async def running(patient: Patient, **settings: Any) -> AsyncIterator[tuple[Any, int]]:
    """The agent with a server of its own, and the server's process and port."""
    server, port = await patient.serve()
    address = {"host": "127.0.0.1", "port": port}
    patient.agents(settings, server=address, supervisor={"agent": "none"})
    started = await patient.shell.run("start", NICK)
    assert started.code == 0, started.err
    try:
        yield server, port
    finally:
        await ending.end(NICK)


def test_a_folder_that_is_gone(patient: Patient) -> None:
    patient.agents()
    assert patient.found("agents.folders") == []
    (patient.shell.folder / "work").rmdir()
    finding = patient.one("agents.folders")
    assert finding.severity is FindingSeverity.ERROR and "mkdir -p" in finding.next


def test_a_folder_that_cannot_be_written(patient: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    with unprivileged(monkeypatch) as home:
        work = home / "work"
        work.mkdir(mode=0o500)
        said = f"agents: [{{nick: {NICK}, agent: scripted, directory: {work}, channels: ['#a']}}]"
        (home / "agents.yaml").write_text(said)
        assert patient.one("agents.folders").severity is FindingSeverity.WARNING


@pytest.mark.timeout(90)
async def test_a_daemon_that_hangs_loses_its_socket_its_server_and_its_life(
    patient: Patient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_report, "PATIENCE", PATIENCE)
    async with running(patient) as (server, _):
        note = pidfile.running(NICK)
        assert note is not None
        for check in ("agents.states", "agents.orphans", "sockets.states", "leftovers.notes"):
            assert await asyncio.to_thread(patient.found, check) == []

        os.kill(note.pid, signal.SIGSTOP)
        with monkeypatch.context() as patch:
            patch.setattr(agent_report, "PATIENCE", 0.3)
            silent = await asyncio.to_thread(patient.one, "agents.states")
        os.kill(note.pid, signal.SIGCONT)
        assert silent.severity is FindingSeverity.ERROR and f"culture restart {NICK}" in silent.next

        socket = paths.agent_socket(NICK)
        socket.rename(socket.with_name("aside"))
        lost = await asyncio.to_thread(patient.one, "sockets.states")
        socket.with_name("aside").rename(socket)
        assert lost.severity is FindingSeverity.ERROR and f"culture restart {NICK}" in lost.next

        await server.kill()
        away = await until_found(patient, "agents.states", lambda each: "not on its server" in each.what)
        assert away.severity is FindingSeverity.WARNING

        kill_watchdog(note.pid)
        os.kill(note.pid, signal.SIGKILL)
        left = await until_found(patient, "agents.orphans", lambda each: True)
        assert left.severity is FindingSeverity.WARNING and f"culture stop {NICK}" in left.next
    assert patient.found("agents.orphans") == []


async def test_an_agent_that_crashed_too_often(patient: Patient, tmp_path: Path) -> None:
    book = playbook(tmp_path / "book", [{"when": "die", "steps": [{"crash": 3}]}])
    async with (
        running(patient, playbook=book, recovery={"crashes": 1}) as (_, port),
        registered(port, "spark-ori") as ori,
    ):
        ori.send(f"PRIVMSG {NICK} :die")
        finding = await until_found(patient, "agents.states", lambda each: "parked" in each.what)
    assert finding.severity is FindingSeverity.WARNING
    assert f"culture logs {NICK}" in finding.next and f"culture resume {NICK}" in finding.next


async def test_an_agent_that_does_not_get_ready(patient: Patient) -> None:
    """Nobody answers where it looks for its server."""
    patient.agents(server={"host": "127.0.0.1", "port": 1}, supervisor={"agent": "none"})
    process = await patient.shell.spawn("start", "--foreground", NICK)
    finding = await until_found(patient, "agents.states", lambda each: "not ready" in each.what)
    process.signal(signal.SIGTERM)
    await process.ended()
    assert finding.severity is FindingSeverity.WARNING


def test_an_agent_that_was_parked_when_it_stopped(patient: Patient) -> None:
    patient.agents()
    records = Records(paths.inbox_file(NICK))
    Notes(records).parked = "the day's tokens are used"
    records.close()
    finding = patient.one("agents.states")
    assert finding.severity is FindingSeverity.WARNING and "tokens" in finding.what


def test_mail_for_an_agent_that_does_not_run(patient: Patient) -> None:
    patient.agents()
    records = Records(paths.inbox_file(NICK))
    records.execute(
        "INSERT INTO messages (msgid, place, private, sender, kind, text, said, received, stale, state)"
        " VALUES ('m1', '#general', 0, 'spark-ori', 'human', 'hello', 0, 0, 0, 'unread')"
    )
    records.close()
    finding = patient.one("agents.states")
    assert finding.severity is FindingSeverity.HINT and "1 message" in finding.what


CLAUDE = {"agent": "claude", "supervisor": {"agent": "none"}}
LINK = {"name": "thor", "secret": "a-secret-of-both", "trust": "no_authority"}


@pytest.mark.parametrize(
    ("way", "said"),
    [
        ({"self_registration": "inside"}, "self_registration: inside"),
        ({"local_users": ["mia"]}, "local_users: mia"),
        ({"links": [LINK]}, "the link to thor (trust no_authority)"),
        ({"web": {"host": "0.0.0.0", "tls": {"certificate": "/c.pem", "key": "/k.pem"}}}, "the web page beyond"),
        ({"listen": [{"port": 6667}, {"port": 6668, "websocket": {"origins": ["https://x.example"]}}]}, "port 6668"),
        ({"listen": [{"port": 6667}, {"host": "0.0.0.0", "port": 6697}], "trusted_network": True}, "trusted_network"),
    ],
)
def test_an_agent_that_never_asks_and_can_be_reached(patient: Patient, way: dict[str, Any], said: str) -> None:
    patient.server()
    patient.agents(CLAUDE)
    assert patient.found("agents.openings") == []
    patient.server(**way)
    finding = patient.one("agents.openings")
    # Where no person has an account, some of the ways make a person of whoever comes.
    is_open = bool(way.keys() & {"local_users", "trusted_network"})
    assert finding.severity is (FindingSeverity.WARNING if is_open else FindingSeverity.HINT)
    assert said in finding.what and NICK in finding.what
    accounts_of(patient.home, "spark-ori")
    finding = patient.one("agents.openings")
    assert finding.severity is FindingSeverity.HINT and said in finding.what
    patient.agents({**CLAUDE, "wake": "anybody"})
    assert patient.one("agents.openings").severity is FindingSeverity.WARNING
    patient.agents({**CLAUDE, "permission_mode": "default"})
    assert patient.found("agents.openings") == []


def test_members_of_a_team_never_ask_and_can_be_reached(patient: Patient) -> None:
    patient.server(links=[LINK])
    accounts_of(patient.home, "spark-ori")
    team = {"slug": "shop", "project_dir": str(patient.shell.folder), "server": {"port": 6667}}
    patient.file("team/shop/team.yaml", json.dumps(team))
    finding = patient.one("agents.openings")
    assert finding.severity is FindingSeverity.HINT and "the link to thor" in finding.what
    assert finding.what.startswith("the members of the team shop never ask for permission")
    assert "team/shop/team.yaml" in finding.next
    patient.file("team/shop/team.yaml", json.dumps({**team, "wake": "anybody"}))
    finding = patient.one("agents.openings")
    assert finding.severity is FindingSeverity.WARNING and "take work from anybody" in finding.what


def test_tokens_of_the_bridge_are_a_way_in(patient: Patient) -> None:
    patient.server()
    patient.agents(CLAUDE)
    BridgeAccess().issue(("spark-old",), lifetime=-1.0)
    assert patient.found("agents.openings") == []
    BridgeAccess().issue(("spark-jules",))
    assert "tokens of the bridge (spark-jules)" in patient.one("agents.openings").what


def test_an_agent_that_never_asks_on_somebody_elses_server(patient: Patient) -> None:
    patient.agents(CLAUDE, server={"host": "chat.example.org", "port": 6697, "tls": True})
    assert "chat.example.org" in patient.one("agents.openings").what
