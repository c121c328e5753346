"""`culture down` and `culture up` where a team is at work: nothing runs, nothing is lost, and it goes on."""

import json
import re
from pathlib import Path

import pytest

from culture.clients.shared import pidfile as daemons
from tests.cli.shell import Shell
from tests.cli.team.test_overview import is_done, pm, shop
from tests.orchestrator.conftest import git_in
from tests.orchestrator.crew import COMMIT, book
from tests.support.waiting import until

__all__ = ["pm", "shop"]
WORKER = [
    {
        "when": r"wants this of you, in #work-(?P<id>\S+):",
        "steps": [
            {"run": "echo hello > hello.txt"},
            {"wait": {"until": "../go", "timeout": 60}},
            {"run": f"git add hello.txt && {COMMIT} -m hello"},
            {"send": {"to": "#work-{id}", "text": "@spark-Ramona it is written"}},
            {"say": "done"},
        ],
    }
]
MANAGER = [
    {
        "when": r"Your task is (?P<id>\S+), from",
        "steps": [{"send": {"to": "#work-{id}", "text": "TASK: implementer: write hello.txt"}}, {"say": "planned"}],
    },
    {
        "when": r"in #work-(?P<id>\S+)\].*it is written",
        "steps": [{"send": {"to": "#standup-shop", "text": "TASK: {id} done: hello is there"}}, {"say": "reported"}],
    },
]


@pytest.mark.timeout(180)
async def test_a_team_stops_with_everything_and_goes_on_where_it_was(pm: Shell, shop: Path) -> None:
    first = await pm.run("up", "-d", "--no-web", "--no-agent")
    assert first.code == 0, first.err
    assert (await pm.run("team", "init", str(shop), "--agent", "scripted")).code == 0
    file = pm.home / "team" / "shop" / "team.yaml"
    roles = {
        role: {"agent": "scripted", "options": {"playbook": book(pm.folder, role, rules), "cool_down": 0}}
        for role, rules in {"em": [], "manager": MANAGER, "implementer": WORKER}.items()
    }
    # The port of the first start is the server's from now on, as it is on a machine of one's own.
    port = re.search(r'"port": (\d+)', file.read_text())
    assert port is not None
    pm.write(f"name: spark\nlisten:\n  - port: {port[1]}\n")
    lines = [line for line in file.read_text().splitlines() if not line.startswith("roles")]
    file.write_text("\n".join([*lines, f"roles: {json.dumps(roles)}", "supervisor: {agent: none}", ""]))
    up = await pm.run("team", "up", "-d", "--team", "shop")
    assert up.code == 0, up.err
    assert "Ramona takes it on" in (await pm.run("team", "task", "say hello", "--team", "shop")).out
    tree = shop / ".worktrees" / "agent-task-shop-1"
    await until((tree / "hello.txt").exists)

    down = await pm.run("down")
    assert down.code == 0, down.err
    assert down.out.startswith("The team shop has stopped.")
    assert down.out.endswith("Nothing is left running.\n")
    assert daemons.all_running() == {}
    assert (tree / "hello.txt").read_text() == "hello\n"

    again = await pm.run("up", "-d", "--no-web", "--no-agent")
    assert again.code == 0, again.err
    up = await pm.run("team", "up", "-d", "--team", "shop")
    assert up.code == 0, up.err
    (tree.parent / "go").touch()
    await until(lambda: is_done(pm))
    assert git_in(shop, "show", "task/shop-1:hello.txt") == "hello\n"
    down = await pm.run("down")
    assert (down.code, daemons.all_running()) == (0, {}), down.err
