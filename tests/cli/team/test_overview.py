"""The PM's page, typed: from nothing to a merged task."""

import json
import re
import shlex
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from culture.config.team import ROLES
from tests.cli.shell import ROOT, Shell
from tests.orchestrator.conftest import git_in
from tests.orchestrator.crew import EM, MANAGER, WORKER, book, end_members
from tests.support.waiting import until

PAGE = (ROOT / "docs" / "team" / "overview.md").read_text(encoding="utf-8")
# It asks for a password, on a terminal.
OTHERWISE = {"account add ori": "account add ori --no-password"}


def typed() -> Iterator[str]:
    """What the page has its reader type, of ours."""
    for block in re.findall(r"^```console\n(.*?)^```", PAGE, re.M | re.S):
        for line in re.findall(r"^\$ culture (.*)$", block, re.M):
            yield re.sub(r"\s+#.*", "", line)


@pytest.fixture
def shop(project: Path) -> Path:
    """A project of that name, and somebody who commits to it."""
    git_in(project, "config", "user.name", "ori")
    git_in(project, "config", "user.email", "ori@example.org")
    return project.rename(project.with_name("shop"))


@pytest.fixture
async def pm(shell: Shell, shop: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Shell]:
    """Somebody with a project, and nothing else."""
    runtime = shell.folder / "run"
    runtime.mkdir(mode=0o700)
    shell.write("name: spark\nlisten:\n  - port: 0\n")
    shell.environment |= {"XDG_RUNTIME_DIR": str(runtime), "LOGNAME": "ori"}
    monkeypatch.setenv("CULTURE_HOME", str(shell.home))
    yield shell
    await end_members(shell.home)
    await shell.run("team", "down", "--no-members", "--team", "shop")


def scripted(pm: Shell) -> None:
    """Have the team played by scripts."""
    rules = json.loads(json.dumps({"em": EM, "manager": MANAGER, "implementer": WORKER}).replace("-demo", "-shop"))
    roles = {
        role: {"agent": "scripted", "options": {"playbook": book(pm.folder, role, rules.get(role, WORKER))}}
        for role in ROLES
    }
    with (pm.home / "team" / "shop" / "team.yaml").open("a", encoding="utf-8") as file:
        file.write(f"roles: {json.dumps(roles)}\nsupervisor: {{agent: none}}\n")


async def is_done(pm: Shell) -> bool:
    said = json.loads((await pm.run("team", "status", "--team", "shop", "--json")).out)
    return bool(said["tasks"]) and said["tasks"][0]["stage"] == "done" and len(said["members"]) == 1


@pytest.mark.timeout(180)
async def test_everything_that_the_page_says_can_be_typed(pm: Shell, shop: Path) -> None:
    said: dict[str, str] = {}
    for line in typed():
        words, _, file = OTHERWISE.get(line, line).partition(" > ")
        if words.startswith("team diff"):
            await until(lambda: is_done(pm))
        place = [str(shop)] if words == "team init" else ["--team", "shop"] if words.startswith("team") else []
        done = await pm.run(*shlex.split(words), *place)
        assert done.code == 0, f"{line}: {done.err}"
        said[line] = done.out
        if words == "team init":
            assert 'branch: "main"' in (pm.home / "team" / "shop" / "team.yaml").read_text()
            scripted(pm)
        if file:
            (pm.home / Path(file).relative_to("~/.culture")).write_text(done.out)
    task = next(out for line, out in said.items() if line.startswith("team task"))
    assert task.startswith("[shop-1] Ramona takes it on, in #work-shop-1: the cart forgets")
    assert "hello.txt" in said["team diff shop-1"] and (shop / "hello.txt").read_text() == "hello\n"
    assert "shop-1 is in main" in said["team merge shop-1"]
    assert "Merge shop-1: the cart forgets" in git_in(shop, "log", "--format=%s")
    allowed = await pm.run("team", "budget", "shop-1", "--usd", "20", "--team", "shop")
    assert "may use $20.00" in allowed.out, allowed.err
    assert (await pm.run("team", "down", "--team", "shop")).code == 0
    # Who has left logs in no more; who is only at rest does.
    accounts = json.loads((await pm.run("account", "list", "--json")).out)
    assert {each["name"] for each in accounts if each["revoked"]} == {"spark-Ramona", "spark-Jules"}
    assert sorted(file.name for file in (pm.home / "secrets").glob("spark-*")) == [
        "spark-Harper",
        "spark-ori",
        "spark-team-shop",
    ]
