"""A daemon is asked from within a loop, and its end is told from a refusal."""

import asyncio
from pathlib import Path

import pytest

from culture.clients.shared.calling import call
from culture.clients.shared.skill.call import CallFailed, NoDaemon
from culture.config import paths
from culture.server.ircd import IRCd
from tests.clients.shared.test_daemon import NICK
from tests.support.agents import agents_yaml, playbook, running
from tests.support.waiting import until


async def test_it_answers_refuses_and_is_not_there(ircd: IRCd, home: Path) -> None:
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, [])})
    with pytest.raises(NoDaemon, match=f"the daemon of {NICK} is not running"):
        await call(NICK, "status")
    async with running(config, NICK):
        status = await call(NICK, "status")
        assert isinstance(status, dict) and status["nick"] == NICK
        with pytest.raises(CallFailed, match="is no request") as refused:
            await call(NICK, "nonsense")
        assert not isinstance(refused.value, NoDaemon)
    with pytest.raises(NoDaemon):
        await call(NICK, "status")


async def test_who_waits_hears_that_it_stops(ircd: IRCd, home: Path) -> None:
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, [])})
    async with running(config, NICK) as daemon:
        await daemon.service.pause()
        waiting = asyncio.create_task(call(NICK, "prompt", {"text": "go", "key": "1", "wait": True}, None))
        await until(lambda: daemon.inbox.counts()[0] == 1)
    with pytest.raises(NoDaemon, match="is stopping"):
        await waiting


async def test_a_socket_that_nobody_reads_is_not_waited_for(home: Path) -> None:
    async def ignore(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    paths.agent_socket(NICK).parent.mkdir(parents=True, exist_ok=True)
    async with await asyncio.start_unix_server(ignore, str(paths.agent_socket(NICK))):
        with pytest.raises(CallFailed, match="does not answer"):
            await call(NICK, "status", patience=0.05)
