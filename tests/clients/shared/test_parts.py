"""How the parts of a daemon belong together: their order, and that it knows no backend."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from culture.clients.shared import ipc
from culture.clients.shared.assembly import assemble, identity
from culture.clients.shared.base import AgentRunnerBase
from culture.clients.shared.bus import MessageBus
from culture.clients.shared.daemon import AgentDaemon
from culture.config import paths
from culture.protocol.vocabulary import AgentState
from culture.server.ircd import IRCd
from culture.transport import Address
from tests.clients.shared.test_daemon import NICK, answered
from tests.support.agents import agents_yaml, playbook, running
from tests.support.client import registered
from tests.support.waiting import PATIENCE, until

PARTS = ("transport", "webhook", "socket", "supervision", "keeper")


def watch(daemon: AgentDaemon, name: str, happened: list[str]) -> None:
    """Write down when a part is started and stopped."""
    part = getattr(daemon, name)
    for verb in ("start", "stop"):
        do: Callable[..., Any] = getattr(part, verb)

        async def noted(*arguments: Any, do: Callable[..., Any] = do, verb: str = verb) -> Any:
            happened.append(f"{verb} {name}")
            return await do(*arguments)

        setattr(part, verb, noted)


@pytest.mark.requirement("F10", "F11", "F12")
async def test_the_parts_start_and_stop_in_order(ircd: IRCd, home: Path) -> None:
    daemon = assemble(agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, [])}), NICK)
    happened: list[str] = []
    for name in PARTS:
        watch(daemon, name, happened)
    await daemon.start()
    assert happened == [f"start {name}" for name in PARTS]
    happened.clear()
    await daemon.stop()
    stopped = [each for each in happened if each != "stop webhook"]
    assert stopped == ["stop keeper", "stop supervision", "stop socket", "stop transport"]


class Contractor(AgentRunnerBase):
    """A runner made from the contract alone."""

    def __init__(self) -> None:
        self.prompts: list[str] = []
        self._running = False

    async def start(self, initial_prompt: str = "") -> None:
        self._running = True

    async def stop(self) -> None:
        self._running = False
        if self.on_exit is not None:
            await self.on_exit(0)

    async def send_prompt(self, text: str) -> None:
        self.prompts.append(text)
        if self.on_message is not None:
            answer = {"type": "text", "text": f"prompt {len(self.prompts)}"}
            await self.on_message({"type": "assistant", "model": "none", "content": [answer]})

    def is_running(self) -> bool:
        return self._running

    @property
    def session_id(self) -> str | None:
        return None


@pytest.mark.requirement("F03", "F28", "F20")
async def test_a_runner_made_from_the_contract_alone_is_enough(ircd: IRCd, home: Path) -> None:
    config = agents_yaml(home, ircd.port, {"nick": NICK}).agent(NICK)
    assert config is not None
    runner = Contractor()
    daemon = AgentDaemon(
        config, Address("127.0.0.1", ircd.port), identity(config), lambda config, session, token: runner
    )
    async with registered(ircd.port, "spark-ori") as ori:
        await ori.join("#general")
        await daemon.start()
        try:
            for count in (1, 2):
                ori.send(f"PRIVMSG #general :@{NICK} hello")
                assert await answered(ori, "#general") == f"prompt {count}"
                await until(lambda: daemon.presence.state is AgentState.IDLE)
        finally:
            await daemon.stop()
    assert runner.prompts[0].startswith(f"[IRC @mention in #general] <spark-ori> @{NICK} hello")


@pytest.mark.requirement("F07")
async def test_a_slow_part_holds_nobody_up_and_its_queue_is_bounded() -> None:
    bus, go, done = MessageBus(), asyncio.Event(), list[int]()

    async def slow(item: int) -> None:
        await go.wait()
        done.append(item)

    lane = bus.lane("slow", slow, longest=10)
    bus.start()
    for number in range(100):
        lane.put(number)
    go.set()
    await until(lambda: done[-1:] == [99])
    assert len(done) <= 11
    await bus.stop()


async def request(type: str, **fields: object) -> ipc.Response:
    """What somebody at the socket is answered."""
    reader, writer = await asyncio.open_unix_connection(str(paths.agent_socket(NICK)))
    writer.write(ipc.encode(ipc.Request(type, "1", fields)))
    async with asyncio.timeout(PATIENCE):
        line = await reader.readline()
    writer.close()
    await writer.wait_closed()
    answer = ipc.json.loads(line)
    return ipc.Response(answer["id"], answer["ok"], answer.get("data"), answer.get("error"))


@pytest.mark.requirement("F09", "H15", "H16", "H17")
async def test_whoever_looks_after_it_does_so_over_the_socket(ircd: IRCd, home: Path) -> None:
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, [])})
    async with registered(ircd.port, "spark-ori") as ori, running(config, NICK) as daemon:
        await ori.join("#general")
        status = (await request("status")).data
        assert isinstance(status, dict)
        assert (status["nick"], status["state"], status["backend"], status["unread"]) == (NICK, "idle", "scripted", 0)
        assert (await request("pause")).ok
        ori.send(f"PRIVMSG #general :@{NICK} hello")
        await ori.expect("NOTICE", "spark-ori", where=lambda each: "I am paused" in each.params[1])
        status = (await request("status")).data
        assert isinstance(status, dict) and (status["state"], status["unread"]) == ("paused", 1)
        assert (await request("resume")).ok
        assert await answered(ori, "#general") == "heard: hello"
        assert (await request("shutdown")).ok
        async with asyncio.timeout(PATIENCE):
            await daemon.finished.wait()


@pytest.mark.requirement("H25")
@pytest.mark.requirement("F25", part="one daemon of a kind on a machine: several are allowed, under several nicks")
async def test_the_agent_has_one_connection_under_its_nick(ircd: IRCd, home: Path) -> None:
    rules = [{"when": "go", "steps": [{"send": {"to": "#general", "text": "sent"}}, {"say": "said"}]}]
    config = agents_yaml(
        home, ircd.port, {"nick": NICK, "playbook": playbook(home, rules), "channels": ["#a", "#general"]}
    )
    async with registered(ircd.port, "spark-ori") as ori, running(config, NICK) as daemon:
        await ori.join("#general")
        ori.send(f"PRIVMSG #general :@{NICK} go")
        assert await answered(ori, "#general") == "sent"
        await until(lambda: not daemon.work.busy)
        user = ircd.parts.network.user(NICK)
        assert user is not None and len(ircd.parts.router.sessions[user]) == 1
        assert {channel.name for channel in user.channels} == {"#a", "#general", "#alerts"}
