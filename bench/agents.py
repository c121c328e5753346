"""What an agent's daemon costs: how soon it is there, what it holds, and how soon a call reaches its agent."""

import argparse
import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles

from bench.linked import Talker
from bench.machine import describe
from bench.servers import HERE, Running, Server, culture, end, running
from bench.table import markdown, number
from culture.clients.shared.assembly import identity
from culture.clients.shared.base import AgentRunnerBase
from culture.clients.shared.daemon import AgentDaemon
from culture.config.load import load_agents
from culture.protocol.vocabulary import Environment
from culture.transport import Address

NICK = "spark-claude"
CHANNEL = "#general"
PATIENCE = 30.0
AIM_MS = 20.0
AIM_CLIENT_S = 0.1
_CLIENT = (sys.executable, "-P", "-m", "culture.clients.shared.skill.irc_client")
_COMMAND = (
    "{python} -m culture server start --foreground --config {folder}/culture-history.yaml --name spark "
    "--host 127.0.0.1 --port {{port}} --data-dir {{run}}/data"
)


def _server() -> Server:
    """Ours as people run it: with the history on."""
    return culture(_COMMAND.format(python=sys.executable, folder=HERE / "peers"))


def _configure(target: Running) -> None:
    """One scripted agent, and a folder for it to work in."""
    work = target.folder / "work"
    work.mkdir()
    book = target.folder / "playbook.yaml"
    book.write_text(json.dumps({"rules": [], "default": [{"say": "done"}]}), encoding="utf-8")
    agent = {"nick": NICK, "agent": "scripted", "directory": str(work), "channels": [CHANNEL], "playbook": str(book)}
    said = {"server": {"host": "127.0.0.1", "port": target.port}, "agents": [agent]}
    (target.folder / "agents.yaml").write_text(json.dumps(said), encoding="utf-8")
    os.environ[Environment.HOME] = os.environ["XDG_RUNTIME_DIR"] = str(target.folder)


# Starting, and what it holds


@contextmanager
def _daemon(target: Running) -> Iterator[tuple[int, float]]:
    """A daemon that is ready: its process, and how long that took."""
    address = target.folder / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
        told.bind(str(address))
        told.settimeout(PATIENCE)
        began = time.monotonic()
        with (target.folder / "daemon.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "culture.clients.claude.daemon", NICK],
                env={**os.environ, "NOTIFY_SOCKET": str(address)},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        try:
            while b"READY=1" not in told.recv(1 << 12):
                pass
            yield process.pid, time.monotonic() - began
        finally:
            end(process)
            address.unlink()


def _memory(pid: int) -> tuple[float, float]:
    """Resident and proportional, in MiB."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()[1:]
    found = {line.split(":")[0]: int(line.split()[1]) / 1024 for line in lines}
    return found["Rss"], found["Pss"]


def _children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]


def _ask(words: Sequence[str]) -> None:
    """What an agent does to use IRC."""
    environment = {**os.environ, Environment.NICK.value: NICK}
    subprocess.run([*_CLIENT, *words], env=environment, check=True, stdout=subprocess.DEVNULL)


def _starts(target: Running, runs: int) -> dict[str, float]:
    starts, clients, daemons, agents = [], [], [], []
    for _ in range(runs):
        with _daemon(target) as (pid, took):
            starts.append(took)
            daemons.append(_memory(pid))
            agents.append(_memory(_children(pid)[0]))
            began = time.monotonic()
            _ask(["channels"])
            clients.append(time.monotonic() - began)
    return {
        "start_s": median(starts),
        "start_s_most": max(starts),
        "daemon_rss_mib": median(rss for rss, _ in daemons),
        "daemon_pss_mib": median(pss for _, pss in daemons),
        "agent_rss_mib": median(rss for rss, _ in agents),
        "agent_pss_mib": median(pss for _, pss in agents),
        "irc_client_s": median(clients),
        "irc_client_s_most": max(clients),
    }


# From the call to the agent


class Stopwatch(AgentRunnerBase):
    """A runner that notes when a prompt reaches it."""

    def __init__(self) -> None:
        self.given: asyncio.Queue[float] = asyncio.Queue()

    async def start(self, initial_prompt: str = "") -> None:
        """There is nothing to start."""

    async def stop(self) -> None:
        """Nor to end."""

    async def send_prompt(self, text: str) -> None:
        """Note the time."""
        self.given.put_nowait(time.monotonic())

    async def answer(self) -> None:
        """End the turn without a word."""
        if self.on_message is not None:
            await self.on_message({"type": "assistant", "model": "", "content": []})

    def is_running(self) -> bool:
        """It always takes prompts."""
        return True

    @property
    def session_id(self) -> str | None:
        """It has none."""
        return None


async def _calls(target: Running, calls: int) -> list[float]:
    """How many milliseconds pass from writing a call until the runner has the prompt; every second one in private."""
    config = load_agents(target.folder / "agents.yaml").config
    (agent,) = config.agents
    watch = Stopwatch()
    address = Address(config.server.host, config.server.port)
    daemon = AgentDaemon(agent, address, identity(agent), lambda agent, session, token: watch)
    await daemon.start()
    try:
        ori = await asyncio.to_thread(Talker, target.port, "spark-ori")
        await asyncio.to_thread(ori.ask, f"JOIN {CHANNEL}", " 366 ")
        passed = []
        for count in range(calls):
            text = f"PRIVMSG {CHANNEL} :@{NICK} {count}" if count % 2 else f"PRIVMSG {NICK} :{count}"
            began = await asyncio.to_thread(_write, ori, text)
            passed.append(1000 * (await watch.given.get() - began))
            await watch.answer()
        return passed
    finally:
        await daemon.stop()


def _write(talker: Talker, line: str) -> float:
    began = time.monotonic()
    talker.send(line)
    return began


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print; 1 where an aim is missed."""
    parser = argparse.ArgumentParser(prog="python -m bench.agents", description=__doc__)
    parser.add_argument("--runs", type=int, default=10, help="starts of a daemon (default 10)")
    parser.add_argument("--calls", type=int, default=1000, help="calls of an agent (default 1,000)")
    parser.add_argument("--json", type=Path, metavar="FILE")
    arguments = parser.parse_args(argv)
    with running(_server()) as target:
        _configure(target)
        figures = _starts(target, arguments.runs)
        passed = asyncio.run(_calls(target, arguments.calls))
    figures |= {"call_ms_p50": median(passed), "call_ms_p99": quantiles(passed, n=100)[98]}
    print(markdown([["figure", "measured"], *([name, number(value)] for name, value in figures.items())]))
    if arguments.json:
        rounded = {name: round(value, 4) for name, value in figures.items()}
        arguments.json.write_text(json.dumps({"machine": describe(), **rounded}, indent=1) + "\n", encoding="utf-8")
    missed = [name for name, aim in (("call_ms_p99", AIM_MS), ("irc_client_s", AIM_CLIENT_S)) if figures[name] > aim]
    if missed:
        print(f"missed: {', '.join(missed)}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
