"""``culture backends``, and agents whose program or login is missing."""

import json
import os
import shlex
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from culture.clients.claude import detect as claude
from culture.clients.codex import detect as codex
from tests.cli.agents.conftest import NICK, Machine, answer
from tests.cli.shell import Shell
from tests.support.acpprograms import AGENTS
from tests.support.agents import playbook
from tests.support.client import registered
from tests.support.waiting import until
from tests.support.without import python_without
from tests.test_repository import ROOT

SDKS = {
    "acp": ["agent-client-protocol"],
    "claude": ["claude-agent-sdk"],
    "codex": ["openai-codex", "openai-codex-cli-bin"],
    "copilot": ["github-copilot-sdk"],
}
SECRETS = {
    name: f"sk-very-secret-{number}"
    for number, name in enumerate(
        [
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "CLAUDE_CODE_OAUTH_TOKEN",
            "OPENAI_API_KEY",
            "CODEX_API_KEY",
            "GH_TOKEN",
            "GITHUB_TOKEN",
            "COPILOT_GITHUB_TOKEN",
            "COPILOT_PROVIDER_API_KEY",
            "CLINE_API_KEY",
            "GEMINI_API_KEY",
        ]
    )
}


async def test_every_backend_has_its_line_and_no_secret_is_shown(at_home: Shell) -> None:
    folder = at_home.folder / ".claude"
    folder.mkdir()
    (folder / ".credentials.json").write_text(json.dumps({"claudeAiOauth": {"accessToken": "sk-very-secret-file"}}))
    at_home.environment |= SECRETS
    shown, told = await at_home.run("backends"), await at_home.run("backends", "--json")
    assert (shown.code, told.code) == (0, 0), shown.err + told.err
    lines = shown.out.splitlines()
    assert lines[0].split() == ["BACKEND", "PROGRAM", "VERSION", "LOGIN", "TO", "TYPE"]
    rows = json.loads(told.out)
    assert [line.split()[0] for line in lines[1:]] == [row["backend"] for row in rows]
    assert {*SDKS, "scripted"} <= {row["backend"] for row in rows}
    (claude,) = [row for row in rows if row["backend"] == "claude"]
    assert (claude["login"], claude["how"]) == ("ready", "ANTHROPIC_API_KEY")
    for said in (shown, told):
        assert "secret" not in said.out + said.err


@pytest.mark.parametrize(
    ("file", "said", "how"),
    [
        (
            ".claude/.credentials.json",
            {"claudeAiOauth": {"accessToken": "sk-very-secret"}},
            "~/.claude/.credentials.json",
        ),
        (".claude.json", {"primaryApiKey": "sk-very-secret"}, "~/.claude.json"),
        (".claude/settings.json", {"apiKeyHelper": "cat sk-very-secret"}, "~/.claude/settings.json"),
        (".claude/settings.json", {"env": {"ANTHROPIC_API_KEY": "sk-very-secret"}}, "~/.claude/settings.json"),
    ],
    ids=["credentials", "console", "helper", "variable"],
)
async def test_a_login_of_claude_is_found_in_its_files(
    at_home: Shell, file: str, said: dict[str, object], how: str
) -> None:
    missing = await at_home.run("backends", "claude")
    assert missing.code == 1 and "missing" in missing.out and "/login` as the user who runs the agent" in missing.out
    (at_home.folder / file).parent.mkdir(exist_ok=True)
    (at_home.folder / file).write_text(json.dumps(said))
    there = await at_home.run("backends", "claude")
    assert there.code == 0 and f"ready ({how})" in there.out
    assert "secret" not in there.out + there.err


async def test_a_backend_that_is_none_is_named(at_home: Shell) -> None:
    asked = await at_home.run("backends", "cluade")
    assert asked.code == 2 and "'cluade' is no backend" in asked.err


async def test_no_sdk_is_loaded_for_it(at_home: Shell) -> None:
    """Each of them takes longer than all the rest."""
    at_home.environment["PYTHONPROFILEIMPORTTIME"] = "1"
    imported = (await at_home.run("backends")).err
    for module in ("claude_agent_sdk", "openai_codex", "copilot.client", "acp.schema"):
        assert f" {module}\n" not in imported


async def test_status_shows_no_figure_that_nobody_told(machine: Machine, tmp_path: Path) -> None:
    """Neither nought tokens nor nought dollars: nobody knows."""
    spent = [{"usage": {"tokens": 0, "cost_usd": 0}}, {"say": "done"}]
    machine.agents({"nick": NICK, "playbook": playbook(tmp_path, [], spent)})
    async with registered(machine.port, "spark-ori") as ori:
        await ori.join("#general")
        assert (await machine.run("start", NICK)).code == 0
        assert (await machine.run("status", NICK)).out.splitlines()[1].split()[5:7] == ["0", "0.00"]
        ori.send(f"PRIVMSG #general :@{NICK} hello")
        assert await answer(ori) == "done"
        await until(lambda: machine.turns() == 1)
        said = await machine.status()
        assert (said["turns_today"], said["cannot"]) == (1, [])
        assert (await machine.run("status", NICK)).out.splitlines()[1].split()[5:7] == ["-", "-"]
        assert (await machine.run("stop", NICK)).code == 0
        assert (await machine.run("status", NICK)).out.splitlines()[1].split()[5:7] == ["-", "-"]


def agents(machine: Machine, *kinds: str) -> list[str]:
    """An agent of each kind, in agents.yaml."""
    nicks = [f"spark-{kind}" for kind in kinds]
    quiet = {"supervisor": {"agent": "none"}}
    machine.agents(*({"nick": nick, "agent": kind, **quiet} for nick, kind in zip(nicks, kinds, strict=True)))
    if os.getuid() == 0:
        machine.shell.environment["IS_SANDBOX"] = "1"
    return nicks


async def refused(machine: Machine, nick: str) -> str:
    """Start an agent that cannot be: it ends for good, at once, and leaves nothing; what it said."""
    started = await machine.run("start", nick)
    assert started.code == 78, started.err
    assert f"{nick} did not start (exit code 78)" in started.err
    assert machine.daemon(nick) is None
    log = (machine.home / "log" / f"{nick}.log").read_text()
    assert "Traceback" not in log and "crashed" not in log
    return started.err


@pytest.mark.fault("E3")
async def test_without_its_packages_a_backend_says_what_to_install(machine: Machine, tmp_path: Path) -> None:
    machine.shell.python = python_without(tmp_path / "bare", *(name for names in SDKS.values() for name in names))
    rows = json.loads((await machine.run("backends", "--json")).out)
    assert [row["backend"] for row in rows if row["ready"]] == ["scripted"]
    for kind, nick in zip(SDKS, agents(machine, *SDKS), strict=True):
        install = f"{machine.shell.python} -m pip install --editable {shlex.quote(f'{ROOT}[{kind}]')}"
        said = await refused(machine, nick)
        assert install in said and "needs culture." not in said
        assert [row["remedy"] for row in rows if row["backend"] == kind] == [install]


def test_a_command_to_log_in_can_be_typed_where_folders_have_spaces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "a clone"
    monkeypatch.setattr(claude, "program", lambda: folder / "claude")
    monkeypatch.setattr(claude, "located", lambda name: None)
    monkeypatch.setattr(codex, "find_spec", lambda name: ModuleSpec(name, None, origin=str(folder / "__init__.py")))
    for told, words in (
        (claude.to_log_in(), [f"{folder}/claude", "/login"]),
        (codex.to_log_in(), [f"{folder}/bin/codex", "login"]),
    ):
        assert shlex.split(told.split("`")[1]) == words


@pytest.mark.fault("E3")
@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("acp", "npm install -g opencode-ai@1.18"),
        ("copilot", "npm install -g @github/copilot"),
    ],
    ids=["acp", "copilot"],
)
async def test_without_its_program_a_backend_says_what_to_install(machine: Machine, kind: str, says: str) -> None:
    """Nothing but the system's own programs is on PATH."""
    (nick,) = agents(machine, kind)
    listed = await machine.run("backends", kind)
    assert listed.code == 1 and "not installed" in listed.out and says in listed.out
    assert says in await refused(machine, nick)


@pytest.mark.fault("E3")
@pytest.mark.parametrize(
    ("kind", "says", "remedy"),
    [
        ("claude", "Claude Code is not logged in", "/login` as the user who runs the agent"),
        ("codex", "Codex is not logged in", "login"),
        ("copilot", "not logged in", "copilot login"),
    ],
    ids=["claude", "codex", "copilot"],
)
async def test_without_a_login_a_backend_says_how_to_get_one(
    machine: Machine, kind: str, says: str, remedy: str
) -> None:
    if kind == "copilot":
        machine.shell.environment["COPILOT_CLI_PATH"] = program("copilot")
    (nick,) = agents(machine, kind)
    listed = await machine.run("backends", kind)
    assert listed.code == 1 and "missing" in listed.out and remedy in listed.out
    said = await refused(machine, nick)
    assert says in said and remedy in said


def program(name: str) -> str:
    """An agent program that the tests have installed."""
    path = AGENTS / "core" / "node_modules" / ".bin" / name
    if not path.exists():
        pytest.skip(f"not installed: {name} (make agents)")
    return str(path)
