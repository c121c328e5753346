"""``culture team`` as a person types it: a team is made, works, is killed, goes on, and stops."""

import asyncio
import json
import os
import signal
import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from culture.lib.files import note_of_holder
from culture.orchestrator.prompts import IRC
from culture.protocol.vocabulary import Exit
from tests.cli.agents.conftest import Machine, at_home, machine
from tests.cli.shell import Result
from tests.orchestrator.conftest import git_in
from tests.orchestrator.crew import COMMIT, book
from tests.support.waiting import until

__all__ = ["at_home", "machine"]
SPAWN = f"{IRC} spawn implementer 'write hello.txt'"
MANAGER = [
    {"when": "Your task is", "steps": [{"run": {"command": SPAWN, "timeout": 60}}, {"say": "{output}"}]},
    {
        "when": r"in #work-(?P<id>\S+)\].*it is written",
        "steps": [{"send": {"to": "#standup-demo", "text": "TASK: {id} done: hello is there"}}, {"say": "reported"}],
    },
]
WORKER = [
    {
        "when": r"(?P<by>\S+) wants this of you, in #work-(?P<id>\S+):",
        "steps": [
            {"run": f"echo hello > hello.txt && git add . && {COMMIT} -m hello"},
            {"send": {"to": "#work-{id}", "text": "@{by} it is written"}},
            {"say": "done"},
        ],
    }
]


async def status(machine: Machine) -> dict[str, Any]:
    found = json.loads((await machine.run("team", "status", "--team", "demo", "--json")).out)
    assert isinstance(found, dict)
    return found


def written(machine: Machine, slug: str) -> None:
    """The file that `init` made, with playbooks in place of models."""
    file = machine.home / "team" / slug / "team.yaml"
    said = {
        line.partition(": ")[0]: json.loads(line.partition(": ")[2])
        for line in file.read_text().splitlines()
        if not line.startswith("#")
    }
    rules = {"em": [], "manager": MANAGER, "implementer": WORKER}
    for role, each in rules.items():
        said["roles"][role]["options"] = {"playbook": book(machine.home, role, each), "cool_down": 0}  # type: ignore[arg-type]
    said["supervisor"] = {"agent": "none"}
    said["heartbeat"] = 1
    file.write_text(json.dumps(said))


@pytest.fixture
async def project(machine: Machine) -> AsyncIterator[Path]:
    folder = machine.shell.folder / "project"
    folder.mkdir()
    git_in(folder, "init", "--quiet")
    (folder / "README.md").write_text("# demo\n")
    git_in(folder, "add", ".")
    git_in(folder, "commit", "--quiet", "-m", "the beginning")
    for name, value in (("user.name", "ori"), ("user.email", "ori@example.org")):
        git_in(folder, "config", name, value)
    yield folder
    await machine.run("team", "down", "--team", "demo")


async def made(machine: Machine, project: Path, slug: str = "demo") -> Result:
    result = await machine.run("team", "init", str(project), "--slug", slug, "--agent", "scripted")
    written(machine, slug)
    return result


@pytest.mark.timeout(120)
@pytest.mark.requirement("O01", "O02", "O18", "O22", "O33", "L12")
@pytest.mark.fault("I22")
async def test_a_team_works_is_killed_goes_on_and_stops(machine: Machine, project: Path) -> None:
    assert "Check it, then type: culture team up" in (await made(machine, project)).out
    assert (await machine.run("team", "init", str(project), "--slug", "demo")).code == Exit.USAGE
    begun = await machine.run("team", "up", "-d", "--team", "demo")
    assert begun.code == 0, begun.err
    assert "running already" in (await machine.run("team", "up", "--team", "demo")).err
    await made(machine, project, "other")
    refused = await machine.run("team", "up", "--team", "other")
    assert (refused.code, "the orchestrator of demo" in refused.err) == (Exit.FAILED, True)

    taken = await machine.run("team", "task", "--team", "demo", "say", "hello")
    assert taken.out == "[demo-1] Ramona takes it on, in #work-demo-1: say hello\n"
    await until(lambda: _is_done(machine))
    now = await status(machine)
    assert [(task["id"], task["stage"], task["by"]) for task in now["tasks"]] == [("demo-1", "done", "spark-ori")]
    assert [(member["nick"], member["running"]) for member in now["members"]] == [("spark-Harper", True)]

    harper = machine.daemon("spark-Harper")
    assert harper is not None
    os.kill(now["pid"], signal.SIGKILL)
    await until(lambda: _is_gone(machine))
    again = machine.daemon("spark-Harper")
    assert again == harper
    assert (await machine.run("team", "up", "-d", "--team", "demo")).code == 0
    assert machine.daemon("spark-Harper") == harper

    assert "hello.txt | 1 +" in (await machine.run("team", "diff", "demo-1", "--team", "demo")).out
    machine.shell.environment["CULTURE_NICK"] = "spark-Harper"
    assert (await machine.run("team", "merge", "demo-1", "--team", "demo")).code == Exit.DENIED
    for words in (("start", "spark-Kim"), ("stop", "spark-Harper"), ("team", "retire", "Harper", "--team", "demo")):
        assert (await machine.run(*words)).code == Exit.DENIED, words
    del machine.shell.environment["CULTURE_NICK"]
    await _goes_on_with_its_session(machine)
    assert (await machine.run("team", "merge", "demo-1", "--team", "demo")).out.startswith("demo-1 is in main (")
    assert (project / "hello.txt").read_text() == "hello\n"

    assert "budget is for people, and you are spark-Harper" in await _allow_oneself_more(machine)
    allowed = await machine.run("team", "budget", "--team", "demo", "--usd", "5")
    assert "may use $5.00" in allowed.out
    down = await machine.run("team", "down", "--team", "demo")
    assert down.out == "The orchestrator has stopped.\nspark-Harper has stopped.\n"
    assert machine.daemon("spark-Harper") is None
    assert "not running: culture team up" in (await machine.run("team", "status", "--team", "demo")).out


async def _goes_on_with_its_session(machine: Machine) -> None:
    """O02: a person starts no member, and stops a member's process alone: its session is the orchestrator's to end."""
    assert "names no agents" in (await machine.run("start", "spark-Harper")).err
    before, session = machine.daemon("spark-Harper"), _session(machine)
    assert before is not None and session
    assert (await machine.run("stop", "spark-Harper")).code == 0
    await until(lambda: (now := machine.daemon("spark-Harper")) is not None and now.ready and now.pid != before.pid)
    assert _session(machine) == session


def _session(machine: Machine, nick: str = "spark-Harper") -> str:
    """The session that the daemon of an agent goes on with."""
    with closing(sqlite3.connect(machine.home / "inbox" / f"{nick}.db")) as records:
        return str(records.execute("SELECT value FROM notes WHERE key = 'session'").fetchone()[0])


async def _allow_oneself_more(machine: Machine) -> str:
    """What the orchestrator answers to an agent that leaves the commands aside and asks its socket."""
    ask = "from culture.clients.shared.skill.call import call; call('team-demo', 'budget', {'whose': 'team', 'usd': 9})"
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",
        "-c",
        ask,
        env={
            **os.environ,
            "CULTURE_HOME": str(machine.shell.home),
            **machine.shell.environment,
            "CULTURE_NICK": "spark-Harper",
        },
        stderr=asyncio.subprocess.PIPE,
    )
    return (await process.communicate())[1].decode()


async def _is_done(machine: Machine) -> bool:
    now = await status(machine)
    return bool(now["tasks"]) and now["tasks"][0]["stage"] == "done" and len(now["members"]) == 1


async def _is_gone(machine: Machine) -> bool:
    return not note_of_holder(machine.home / "team" / "demo" / "lock")


async def test_what_is_wrong_is_said_before_anything_begins(machine: Machine, project: Path) -> None:
    assert "there is no team yet" in (await machine.run("team", "status")).err
    outside = machine.shell.folder / "plain"
    outside.mkdir()
    assert "not in a git repository" in (await machine.run("team", "init", str(outside))).err
    git_in(outside, "init", "--quiet")
    assert "make the first one" in (await machine.run("team", "init", str(outside))).err
    await made(machine, project)
    assert "did you mean demo?" in (await machine.run("team", "up", "--team", "dmo")).err
    assert "is not running" in (await machine.run("team", "retire", "Harper", "--team", "demo")).err
    assert "no branch task/demo-7" in (await machine.run("team", "merge", "demo-7", "--team", "demo")).err


async def test_what_was_kept_is_listed_and_dropped_by_people(machine: Machine, project: Path) -> None:
    await made(machine, project)
    tree = git_in(project, "write-tree").strip()
    commit = git_in(project, "commit-tree", tree, "-m", "[INCOMPLETE] ignored files: demo-1 ended as done").strip()
    for name in ("demo-1/1", "demo-1/2", "demo-2/1"):
        git_in(project, "update-ref", f"refs/culture/rescue/{name}", commit)
    listed = await machine.run("team", "rescue", "list", "--team", "demo")
    assert [line.split()[0] for line in listed.out.splitlines()[:3]] == ["demo-1/1", "demo-1/2", "demo-2/1"]
    assert "README.md; 1 file ignored by git" in listed.out
    machine.shell.environment["CULTURE_NICK"] = "spark-Harper"
    assert (await machine.run("team", "rescue", "drop", "demo-1", "--team", "demo")).code == Exit.DENIED
    del machine.shell.environment["CULTURE_NICK"]
    assert (await machine.run("team", "rescue", "drop", "demo-7", "--team", "demo")).code == Exit.USAGE
    dropped = await machine.run("team", "rescue", "drop", "demo-1", "--team", "demo")
    assert dropped.out.startswith(f"demo-1/1 is deleted (it was {commit[:12]})\ndemo-1/2 is deleted")
    assert "gc --prune=now" in dropped.out
    left = json.loads((await machine.run("team", "rescue", "list", "demo-2", "--team", "demo", "--json")).out)
    assert [(each["name"], each["task"], each["ignored"]) for each in left] == [("demo-2/1", "demo-2", ["README.md"])]


async def test_a_new_team_has_a_budget_and_says_so(machine: Machine, project: Path) -> None:
    made = await machine.run("team", "init", str(project), "--slug", "demo", "--agent", "scripted")
    assert "The team may use $20 and 50,000,000 tokens in all" in made.out
    file = (machine.home / "team" / "demo" / "team.yaml").read_text()
    assert "# What the whole team may use" in file and "culture team budget --usd N" in file
    shown = await machine.run("team", "budget", "--team", "demo")
    assert "may use $20.00 and 50000000 tokens" in shown.out
