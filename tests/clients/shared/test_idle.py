"""Agents that nobody calls cost nothing, however long."""

import time
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from culture.clients.shared.assembly import identity
from culture.clients.shared.daemon import AgentDaemon
from culture.clients.shared.queued import QueuedRunner
from culture.clients.shared.supervisor import Supervisor, SupervisorSetup
from culture.clients.shared.turn import RunnerSetup, Turn
from culture.config.agents import AgentConfig, AgentsConfig
from culture.server.ircd import IRCd
from culture.transport import Address
from tests.support.agents import agents_yaml
from tests.support.client import registered
from tests.support.hours import hours
from tests.support.waiting import until

AGENTS = 30
HOUR = 3600.0
WORDS = 12


class Costly(QueuedRunner):
    """A model that writes down how often it is called."""

    def __init__(self, setup: RunnerSetup, calls: list[str]) -> None:
        super().__init__(setup)
        self._calls = calls

    @property
    def session_id(self) -> str | None:
        return "the only one"

    async def open(self) -> None: ...

    async def take_turn(self, prompt: str) -> Turn:
        self._calls.append(prompt)
        return Turn(text="here")

    async def close(self) -> None: ...


class Judge(Supervisor):
    """A supervisor whose model is the same."""

    def __init__(self, setup: SupervisorSetup, calls: list[str]) -> None:
        super().__init__(setup)
        self._calls = calls

    async def judge(self, prompt: str) -> str:
        self._calls.append(prompt)
        return "OK"


def daemon_of(config: AgentsConfig, agent: AgentConfig, calls: list[str]) -> AgentDaemon:
    """A daemon as it is, but for what costs money."""
    setup = RunnerSetup(agent.nick, agent.directory)
    judge = Judge(SupervisorSetup(agent.nick, agent.directory, eval_interval=1), calls)
    address = Address(config.server.host, config.server.port)
    return AgentDaemon(agent, address, identity(agent), lambda *_: Costly(setup, calls), supervisor=judge)


@pytest.mark.fault("E33")
async def test_thirty_agents_that_nobody_calls_cost_nothing_in_an_hour(ircd: IRCd, home: Path) -> None:
    """The hour passes on the clocks of daemons and server; `make proof NAME=idle MINUTES=60` waits for a real one."""
    calls: list[str] = []
    names = [f"spark-a{number}" for number in range(AGENTS)]
    config = agents_yaml(home, ircd.port, *({"nick": name} for name in names), rules={"recovery": {}})
    async with AsyncExitStack() as stack:
        daemons = [daemon_of(config, agent, calls) for agent in config.agents]
        for daemon in daemons:
            stack.push_async_callback(daemon.stop)
            await daemon.start()
        await until(lambda: all(daemon.reporting._reports.first() is None for daemon in daemons))
        clock = await stack.enter_async_context(hours())
        began, looked = time.monotonic(), daemons[0].keeper._heard
        for number in range(WORDS):
            await clock.passes(HOUR / WORDS)
            await think_aloud(ircd.port, f"what was number {number}?", daemons)
        assert time.monotonic() - began >= HOUR
        assert daemons[0].keeper._heard - looked > HOUR - 600, "it was looked whether the agent hangs"
        assert all(daemon.transport.connected for daemon in daemons)
        assert calls == []
        async with registered(ircd.port, "spark-ori") as ori:
            await ori.join("#general")
            ori.send(f"PRIVMSG #general :@{names[0]} hello")
            await ori.expect("PRIVMSG", "#general", "here")
        await until(lambda: len(calls) == 1)
        assert "hello" in calls[0]


async def think_aloud(port: int, text: str, daemons: list[AgentDaemon]) -> None:
    """Somebody says it to nobody in particular, and all hear it."""
    async with registered(port, "spark-ori") as ori:
        await ori.join("#general")
        ori.send(f"PRIVMSG #general :{text}")
        await until(lambda: all(_heard(daemon) == text for daemon in daemons))


def _heard(daemon: AgentDaemon) -> str:
    return daemon.service.last_heard.text if daemon.service.last_heard else ""
