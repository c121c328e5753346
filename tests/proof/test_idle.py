"""``make proof NAME=idle [MINUTES=60]``: thirty agents that nobody calls, then ten thousand calls for one of them."""

import asyncio
import json
import os
import time
from contextlib import AsyncExitStack
from pathlib import Path
from statistics import median

import pytest

from culture.lib.process.orphans import carrying
from tests.support.agents import agents_yaml, playbook
from tests.support.client import registered
from tests.support.clock import sleep
from tests.support.fleet import READS_THE_REST, Agent, agent_at
from tests.support.mesh import Member, mesh
from tests.support.usage import cpu_seconds, memory_kib
from tests.support.waiting import until

AGENTS = int(os.environ.get("IDLE_AGENTS", "30"))
SECONDS = 60 * float(os.environ.get("PROOF_MINUTES") or "10")
MOST_CPU = 1.0  # per cent of a core
MENTIONS, SENDERS, WITHIN = 10_000, 10, 10.0
READY = SETTLING = 120.0
_CHATTER = 5.0
FLOODED = "#calls"
"""Where one of the agents is alone with those who call it."""


@pytest.mark.fault("E8")
async def test_idle_agents_cost_nothing_and_a_flood_costs_two_turns(tmp_path: Path) -> None:
    """No prompt and less than one per cent of a core each while nobody calls; at most two turns for 10,000 calls."""
    async with mesh(tmp_path, names=("spark",)) as m, AsyncExitStack() as stack:
        server = m.members["spark"]
        agents = _agents(tmp_path, server.port)
        for agent in agents:
            await stack.enter_async_context(agent.running())
        await until(lambda: all(agent.was_ready for agent in agents), "not every agent is ready", patience=READY)
        idle = await _idle(server, agents)
        flood = await _flood(server, agents[0])
    figures = {"agents": AGENTS, **idle, **flood}
    print(json.dumps(figures, indent=1), flush=True)
    if path := os.environ.get("PROOF_FIGURES"):
        await asyncio.to_thread(Path(path).write_text, json.dumps(figures))
    assert figures["prompts"] == 0
    assert figures["cpu_percent_most"] < MOST_CPU
    assert figures["turns"] <= 2 and figures["mentions_answered"] == figures["mentions_seen"] == MENTIONS


def _agents(folder: Path, port: int) -> list[Agent]:
    home, run = folder / "spark", folder / "run"
    run.mkdir(mode=0o700)
    nicks = [f"spark-a{number}" for number in range(AGENTS)]
    rules = [
        {"when": "first", "steps": [{"wait": {"until": str(home / "go"), "timeout": 300}}, {"say": "done"}]},
        READS_THE_REST,
    ]
    book = playbook(home, rules, [{"say": "done"}])
    works = {nick: home / "work" / nick for nick in nicks}
    for work in works.values():
        work.mkdir(parents=True)
    described = [{"nick": nick, "playbook": book, "directory": str(works[nick])} for nick in nicks]
    agents_yaml(home, port, {**described[0], "channels": ["#general", FLOODED]}, *described[1:])
    return [agent_at(nick, home, run) for nick in nicks]


async def _idle(server: Member, agents: list[Agent]) -> dict[str, float]:
    """A person talks to nobody in particular; what the agents make of that."""
    every = {agent.nick: (agent.daemon.pid, *carrying(agent.token() or "")) for agent in agents}
    before = {pid: cpu_seconds(pid) for pids in every.values() for pid in pids}
    began, said = time.monotonic(), 0
    async with registered(server.port, "spark-ori") as ori:
        await ori.join("#general")
        while time.monotonic() < began + SECONDS:
            ori.send(f"PRIVMSG #general :thinking aloud, {said}")
            said += 1
            await ori.sync()
            await sleep(_CHATTER)
    lasted = time.monotonic() - began
    used = [100 * sum(cpu_seconds(pid) - before[pid] for pid in pids) / lasted for pids in every.values()]
    daemons = [memory_kib(pids[0]) for pids in every.values()]
    programs = [memory_kib(pids[1]) for pids in every.values()]
    return {
        "seconds": round(lasted, 1),
        "said_to_nobody": said,
        "prompts": sum(len(agent.prompts()) for agent in agents),
        "processes": sum(map(len, every.values())),
        "cpu_percent_median": round(median(used), 3),
        "cpu_percent_most": round(max(used), 3),
        "daemon_rss_mib": round(median(each["rss"] for each in daemons) / 1024, 1),
        "daemon_pss_mib": round(median(each["pss"] for each in daemons) / 1024, 1),
        "agent_rss_mib": round(median(each["rss"] for each in programs) / 1024, 1),
        "agent_pss_mib": round(median(each["pss"] for each in programs) / 1024, 1),
    }


async def _flood(server: Member, agent: Agent) -> dict[str, float]:
    """Everybody calls one agent, which is at work; then it may go on."""
    async with registered(server.port, "spark-ori") as ori:
        await ori.join(FLOODED)
        ori.send(f"PRIVMSG {FLOODED} :@{agent.nick} first")
        await until(lambda: len(agent.prompts()) == 1, patience=SETTLING)
    began = time.monotonic()
    await asyncio.gather(*(_call(server, number, agent.nick, began) for number in range(SENDERS)))
    called = time.monotonic() - began
    await until(lambda: len(agent.states()) == MENTIONS + 1, patience=SETTLING)
    received = time.monotonic() - began
    (agent.home / "go").touch()
    await until(lambda: set(agent.states().values()) == {"answered"}, patience=SETTLING)
    seen = "".join((*agent.prompts(), agent.read()))
    words = [f"message-{number}.{count}." for number in range(SENDERS) for count in range(MENTIONS // SENDERS)]
    return {
        "mentions": MENTIONS,
        "called_within_s": round(called, 1),
        "received_within_s": round(received, 1),
        "answered_within_s": round(time.monotonic() - began, 1),
        "turns": len(agent.prompts()),
        "mentions_answered": sum(state == "answered" for state in agent.states().values()) - 1,
        "mentions_seen": sum(word in seen for word in words),
        "daemon_rss_mib_after": round(memory_kib(agent.daemon.pid)["rss"] / 1024, 1),
    }


async def _call(server: Member, number: int, nick: str, began: float) -> None:
    each = MENTIONS // SENDERS
    async with registered(server.port, f"spark-s{number}") as sender:
        sender.send(f"JOIN {FLOODED}")
        for count in range(each):
            sender.send(f"PRIVMSG {FLOODED} :@{nick} message-{number}.{count}.")
            if count % 10 == 9:
                await sender.sync()
                sender.seen.clear()
                await sleep(max(0.0, began + count * WITHIN / each * 0.9 - time.monotonic()))
