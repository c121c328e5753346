"""A team for tests: real daemons with scripted agents, a real server, real git."""

import asyncio
import json
import os
import shlex
import signal
import sqlite3
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from typing import Any

from culture.cli.team.factory import assemble, launcher
from culture.clients.shared import pidfile
from culture.config import paths
from culture.config.load import load_team
from culture.config.team import ROLES, TeamConfig
from culture.lib.process.background import BackgroundProcess
from culture.lib.process.orphans import end_all
from culture.orchestrator.heartbeat import Judge
from culture.orchestrator.members.daemons import Launch
from culture.orchestrator.team import Team
from tests.support.agents import prompts
from tests.support.client import Client
from tests.support.teamscripts import only_told
from tests.support.waiting import PATIENCE, until

_children: list[BackgroundProcess] = []
"""What was started from here; whoever has children must take note of their end."""
Rule = dict[str, Any]
COMMIT = "git -c user.name=w -c user.email=w@example.org commit -q"

EM: list[Rule] = [
    {
        "when": r"says: please (?P<what>.+)",
        "steps": [{"send": {"to": "#standup-demo", "text": "TASK: {what}"}}, {"say": "I have given it out."}],
    },
]
MANAGER: list[Rule] = [
    {
        "when": r"Your task is (?P<id>\S+), from",
        "steps": [{"send": {"to": "#work-{id}", "text": "TASK: implementer: write hello.txt"}}, {"say": "planned"}],
    },
    {
        "when": r"in #work-(?P<id>\S+)\].*it is written",
        "steps": [{"send": {"to": "#standup-demo", "text": "TASK: {id} done: hello is there"}}, {"say": "reported"}],
    },
]
WORKER: list[Rule] = [
    {
        "when": r"wants this of you, in #work-(?P<id>\S+):",
        "steps": [
            {"run": f"echo hello > hello.txt && git add hello.txt && {COMMIT} -m hello"},
            {"send": {"to": "#work-{id}", "text": "@spark-Ramona it is written"}},
            {"say": "done"},
        ],
    }
]


WIKI = f"{shlex.quote(sys.executable)} -P -m culture wiki"
HANDS_OVER: Rule = {
    "when": r"Write a handoff summary[\s\S]*The page is `(?P<page>[^`]+)`",
    "steps": [{"run": f"echo notes by {{nick}} | {WIKI} write {{page}}"}, {"say": "{output}"}],
}
TAKES_OVER: Rule = {
    "when": r"You take over from (?P<old>\w+), who was manager of (?P<id>\S+)\. Read the wiki page `(?P<page>[^`]+)`",
    "steps": [
        {"run": f"{WIKI} read {{page}} > {{id}}.txt && git add . && {COMMIT} -m hello"},
        {"send": {"to": "#work-{id}", "text": "I am here instead of {old}"}},
        {"send": {"to": "#standup-demo", "text": "TASK: {id} done: hello is there"}},
        {"say": "reported"},
    ],
}
IS_FULL: Rule = {
    "when": r"Your task is (?P<id>\S+), from",
    "steps": [
        {"send": {"to": "#work-{id}", "text": "I begin"}},
        {"usage": {"tokens": 190000, "cost_usd": 0.5, "context_pct": 95}},
        {"say": "begun"},
    ],
}


async def heard(client: Client, channel: str, text: str) -> str:
    """What the team says next in a channel with these words in it."""
    async with asyncio.timeout(PATIENCE):
        while True:
            with suppress(TimeoutError):
                found = await client.expect("NOTICE", channel, where=lambda line: text in line.params[1])
                return found.params[1]


def prompts_of(folder: Path) -> list[str]:
    """What the scripted agents of a folder were given."""
    return prompts(folder)


def book(folder: Path, name: str, rules: list[Rule]) -> str:
    """A playbook; the path for ``playbook:``. One of a role may use only what its role is told."""
    file = folder / f"{name}.playbook"
    if name in ROLES:
        only_told(name, TeamConfig(slug="demo", project_dir=folder), [*_commands(rules)])
    file.write_text(json.dumps({"rules": rules, "default": [{"say": "ok"}]}), encoding="utf-8")
    return str(file)


def team_yaml(
    home: Path, project: Path, port: int, rules: dict[str, list[Rule]] | None = None, **more: Any
) -> TeamConfig:
    """Write the team's file (JSON is YAML): every role is played by a scripted agent."""
    said = {"em": EM, "manager": MANAGER, "implementer": WORKER, **(rules or {})}
    others = ("test_runner", "groucho", "chico", "zeppo", "fixer", "documenter")
    config = {
        "slug": "demo",
        "project_dir": str(project),
        "server": {"name": "spark", "host": "127.0.0.1", "port": port},
        "supervisor": {"agent": "none"},
        "heartbeat": 3600,
        "roles": {
            role: {
                "agent": "scripted",
                "options": {
                    "playbook": book(home, role, said.get(role, WORKER)),
                    "recovery": {"restart_delay": 0.05, "silence": 60, "interrupt_grace": 5},
                    "cool_down": 0,
                },
            }
            for role in (*said, *(each for each in others if each not in said))
        },
        **more,
    }
    file = paths.team_dir(config["slug"]) / "team.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(config), encoding="utf-8")
    loaded = load_team(file).config
    for role, each in said.items():
        only_told(role, loaded, [*_commands(each)])
    return loaded


def _commands(rules: list[Rule]) -> Iterator[str]:
    """The commands that a playbook runs, and the lines that it says."""
    for step in (step for rule in rules for step in rule["steps"]):
        run, send = step.get("run", ""), step.get("send", {})
        yield run if isinstance(run, str) else run["command"]
        yield send.get("text", "")


def _launch(config: TeamConfig) -> Launch:
    begin = launcher(config)

    def launch(nick: str) -> BackgroundProcess:
        child = begin(nick)
        _children.append(child)
        return child

    return launch


@asynccontextmanager
async def at_work(
    config: TeamConfig, judge: Judge | None = None, clock: Callable[[], float] = time.monotonic
) -> AsyncIterator[Team]:
    """The team's orchestrator in this process; its members are processes of their own, and end with the test."""
    team = Team(await assemble(config, _launch(config)), judge, clock)
    async with team.running():
        yield team
    team.context.store.close()


async def end_members(home: Path) -> None:
    """kill -9 for every daemon of this home, and for what it started."""
    for file in list(home.glob("inbox/*.db")):  # noqa: ASYNC240
        note = pidfile.running(file.stem)
        if note is not None:
            with suppress(ProcessLookupError):
                os.kill(note.pid, signal.SIGKILL)
        with closing(sqlite3.connect(file)) as records, suppress(sqlite3.OperationalError):
            row = records.execute("SELECT value FROM notes WHERE key = 'token'").fetchone()
            if row is not None:
                await end_all(str(row[0]), grace=0)
    for child in _children:
        await until(lambda child=child: child.poll() is not None)  # type: ignore[misc]
    _children.clear()
