"""A daemon whose agent has a sandbox: the skill client works inside, and nothing outlives the daemon."""

import json
from pathlib import Path

import pytest

from culture.clients.shared.assembly import assemble
from culture.clients.shared.errors import WrongConfiguration
from culture.clients.shared.notes import Notes
from culture.clients.shared.records import Records
from culture.clients.shared.sandbox import bubblewrap
from culture.config import paths
from culture.config.errors import ConfigError
from culture.lib.process.orphans import carrying
from culture.server.ircd import IRCd
from tests.clients.ipc import Wire
from tests.clients.shared.sandbox.conftest import NICK, needs_bwrap
from tests.support.agents import DaemonProcess, agents_yaml, running
from tests.support.client import registered
from tests.support.squatter import USER
from tests.support.waiting import until


@needs_bwrap
async def test_agent_speaks_through_its_daemon_and_dies_with_it(ircd: IRCd, owner: Path) -> None:
    home = paths.home()
    rules = [{"when": "work", "steps": [{"send": {"to": "#general", "text": "from inside"}}, {"hang": True}]}]
    (home / "playbook.yaml").write_text(json.dumps({"rules": rules}))
    agent = {"nick": NICK, "playbook": str(home / "playbook.yaml"), "sandbox": "bwrap"}
    agents_yaml(home, ircd.port, agent)
    async with registered(ircd.port, "spark-ori") as ori:
        await ori.join("#general")
        daemon = DaemonProcess(NICK, home)
        await daemon.start()
        try:
            await ori.expect("JOIN", "#general")
            ori.send(f"PRIVMSG {NICK} :work")
            await ori.expect("PRIVMSG", "#general", "from inside")
            records = Records(paths.inbox_file(NICK))
            token = Notes(records).token
            records.close()
            assert token is not None
            assert carrying(token)
        finally:
            await daemon.kill()
        await until(lambda: carrying(token) == [])


@needs_bwrap
async def test_daemon_reads_no_file_for_an_agent_that_does_not_see_it(ircd: IRCd, owner: Path) -> None:
    home, work = paths.home(), paths.home() / "work"
    work.mkdir()
    (work / "CLAUDE.md").symlink_to(owner / ".ssh" / "id")
    config = agents_yaml(home, ircd.port, {"nick": NICK, "sandbox": "bwrap"})
    async with running(config, NICK), Wire(paths.agent_socket(NICK)) as agent:
        answer = await agent.call("set_directory", path=str(work))
    assert not answer["ok"] and "not in your sandbox" in answer["error"]


@needs_bwrap
def test_instructions_that_the_agent_could_lead_elsewhere_are_not_read(owner: Path) -> None:
    home, file = paths.home(), paths.home() / "work" / "role.md"
    file.parent.mkdir()
    file.symlink_to(owner / ".ssh" / "id")
    config = agents_yaml(home, 6667, {"nick": NICK, "sandbox": "bwrap", "instructions_file": str(file)})
    with pytest.raises(WrongConfiguration, match="a link that leads out"):
        assemble(config, NICK)


def test_sandbox_that_cannot_be_had_is_told_before_anything_starts(
    owner: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bubblewrap.shutil, "which", lambda program, path=None: None)
    bubblewrap.obstacle.cache_clear()
    config = agents_yaml(paths.home(), 6667, {"nick": NICK, "sandbox": "bwrap"})
    with pytest.raises(WrongConfiguration, match="bubblewrap is not installed: install bubblewrap"):
        assemble(config, NICK)
    bubblewrap.obstacle.cache_clear()


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"sandbox": "user"}, "name that in `user:`"),
        ({"sandbox": "user", "user": USER}, f"it runs as {USER} only, and this is another user"),
        ({"sandbox": "user", "user": "no such user"}, "it runs as no such user only"),
    ],
)
def test_agent_that_shall_run_as_another_user_does_not_run_as_this_one(
    settings: dict[str, str], why: str, owner: Path
) -> None:
    with pytest.raises(WrongConfiguration, match=why):
        assemble(agents_yaml(paths.home(), 6667, {"nick": NICK, **settings}), NICK)


def test_agent_overrules_the_rule_of_the_file_key_by_key(owner: Path) -> None:
    rules = {"sandbox": {"kind": "bwrap", "hosts": ["git.example.com"]}}
    agents = (
        {"nick": NICK},
        {"nick": "spark-free", "sandbox": "none"},
        {"nick": "spark-off", "sandbox": {"network": "off"}},
    )
    config = agents_yaml(paths.home(), 6667, *agents, rules=rules)
    found = {nick: config.agent(nick) for nick in (NICK, "spark-free", "spark-off")}
    said = {
        nick: (agent.sandbox.kind, agent.sandbox.network, agent.sandbox.hosts) for nick, agent in found.items() if agent
    }
    hosts = ("git.example.com",)
    assert said == {
        NICK: ("bwrap", "on", hosts),
        "spark-free": ("none", "on", hosts),
        "spark-off": ("bwrap", "off", hosts),
    }


@pytest.mark.parametrize(
    "sandbox", ["docker", {"kind": "bwrap", "host": ["x"]}, {"hosts": ["https://x"]}, {"variables": ["A=b"]}]
)
def test_sandbox_that_makes_no_sense_is_refused(sandbox: object, owner: Path) -> None:
    with pytest.raises(ConfigError, match="sandbox"):
        agents_yaml(paths.home(), 6667, {"nick": NICK, "sandbox": sandbox})
