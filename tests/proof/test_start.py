"""``make proof NAME=start``: thirty agents of a machine are started at once, by one command."""

import asyncio
import json
import os
import time
from pathlib import Path

import pytest

from tests.cli.agents.conftest import Machine, at_home, machine
from tests.cli.conftest import shell
from tests.support.client import registered
from tests.support.waiting import until

__all__ = ["at_home", "machine", "shell"]

AGENTS = int(os.environ.get("START_AGENTS", "30"))
MOST_SECONDS = 20.0


@pytest.mark.fault("E25")
async def test_thirty_daemons_that_start_at_once_are_up_within_twenty_seconds(machine: Machine) -> None:
    """Each is a process of its own, takes prompts and is in its channel; all of them stop again."""
    nicks = [f"spark-a{number}" for number in range(AGENTS)]
    machine.agents(*({"nick": nick} for nick in nicks))
    async with registered(machine.port, "spark-ori") as ori:
        await ori.join("#general")
        began = time.monotonic()
        started = await machine.run("start", "--all")
        returned = time.monotonic() - began

        async def present() -> set[str]:
            rows = [line for line in await ori.ask("NAMES #general") if line.verb == "353"]
            return {name.lstrip("@+") for row in rows for name in row.params[-1].split()}

        async def all_present() -> bool:
            return set(nicks) <= await present()

        await until(all_present)
        seconds = time.monotonic() - began
    notes = [machine.daemon(nick) for nick in nicks]
    stopped = await machine.run("stop", "--all")
    figures = {"agents": AGENTS, "command_s": round(returned, 2), "all_in_channel_s": round(seconds, 2)}
    print(json.dumps(figures), flush=True)
    if path := os.environ.get("PROOF_FIGURES"):
        await asyncio.to_thread(Path(path).write_text, json.dumps(figures))
    assert started.code == 0, started.err
    assert len({note.pid for note in notes if note is not None and note.ready}) == AGENTS
    assert stopped.code == 0 and stopped.out.count("has stopped.") == AGENTS
    assert seconds < MOST_SECONDS
