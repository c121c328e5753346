"""A daemon that touches nothing of the machine but its file, as the simulator runs many of them in one process."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from culture.clients.shared.assembly import identity
from culture.clients.shared.daemon import AgentDaemon
from culture.clients.shared.desk import RequestFailed
from culture.clients.shared.queued import QueuedRunner
from culture.clients.shared.turn import RunnerSetup, Turn
from culture.lib.process import orphans
from culture.server.ircd import IRCd
from culture.transport import Address
from tests.clients.shared.test_daemon import NICK, answered
from tests.support.agents import agents_yaml
from tests.support.client import registered
from tests.support.in_process import InProcessClient, InProcessServer
from tests.support.waiting import until


class Scripted(QueuedRunner):
    """A runner whose turns are a function of the test."""

    turn: Callable[[str], object]

    @property
    def session_id(self) -> str | None:
        return None

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def take_turn(self, prompt: str) -> Turn:
        text = await self.turn(prompt)  # type: ignore[misc]
        return Turn(text=text)


@asynccontextmanager
async def in_process(ircd: IRCd, home: Path, life: int, turn: Callable[[str], object]) -> AsyncIterator[AgentDaemon]:
    config = agents_yaml(home, ircd.port, {"nick": NICK}).agent(NICK)
    assert config is not None
    runner = Scripted(RunnerSetup(NICK, home))
    runner.turn = turn

    async def end_nothing(token: str, grace: float = 0.0) -> int:
        return 0

    daemon = AgentDaemon(
        config,
        Address("127.0.0.1", ircd.port),
        identity(config),
        lambda *_: runner,
        inbox_file=home / str(life) / "inbox.db",
        socket_server=InProcessServer,
        end_processes=end_nothing,
    )
    await daemon.start()
    try:
        yield daemon
    finally:
        await daemon.stop()


def connected(daemon: AgentDaemon) -> InProcessClient:
    assert isinstance(daemon.socket, InProcessServer)
    return daemon.socket.connect()


async def test_an_agent_asks_its_daemon_within_the_process(
    ircd: IRCd, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def looks_around(*_: object) -> list[int]:
        raise AssertionError("a daemon in a simulator walks through /proc")

    monkeypatch.setattr(orphans, "carrying", looks_around)
    clients: list[InProcessClient] = []

    async def turn(prompt: str) -> str:
        clients.append(client := connected(daemon))
        daemon.socket.whisper("CORRECTION", "look at the clock")
        with pytest.raises(RequestFailed, match="'irc_aks' is no request; did you mean irc_ask"):
            await client.call("irc_aks")
        answer = await client.call("irc_ask", channel="#general", question="tea?", options=["yes", "no"], timeout=20)
        await client.close()
        assert isinstance(answer, dict)
        return f"so {answer['text']}"

    async with registered(ircd.port, "spark-ori") as ori, in_process(ircd, home, 0, turn) as daemon:
        await ori.join("#general")
        ori.send(f"PRIVMSG #general :@{NICK} what shall I drink?")
        assert "tea?" in await answered(ori, "#general")
        ori.send(f"PRIVMSG #general :@{NICK} yes")
        while (said := await answered(ori, "#general")) != "so yes":
            assert "Waiting for response" in said
    assert [(each.whisper_type, each.message) for each in clients[0].whispers] == [("CORRECTION", "look at the clock")]
    assert not daemon.socket.path.exists()
    assert (home / "0" / "inbox.db").exists() and not (home / "inbox").exists()


async def test_a_client_that_hangs_up_or_outlives_the_daemon_is_let_go(ircd: IRCd, home: Path) -> None:
    async def turn(prompt: str) -> str:
        return prompt

    async with in_process(ircd, home, 0, turn) as daemon:
        gone = connected(daemon)
        asking = asyncio.create_task(gone.call("irc_ask", channel="#general", question="tea?"))
        await until(lambda: daemon.questions.waiting)
        await gone.close()
        with pytest.raises(ConnectionError):
            await asking
        await until(lambda: not daemon.questions.waiting)
        staying = connected(daemon)
        status = await staying.call("status")
        assert json.loads(json.dumps(status))["nick"] == NICK
    with pytest.raises(ConnectionError):
        await staying.call("status")
    with pytest.raises(ConnectionError):
        connected(daemon)
