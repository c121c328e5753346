"""``culture agents``: what is written into agents.yaml."""

import json
import os
import stat
import sys
from pathlib import Path

import pytest

from culture.cli.agents import agents_yaml
from culture.cli.agents.select_agents import load
from culture.clients.shared.assembly import make_runner
from culture.clients.shared.backends import backend
from culture.clients.shared.queued import QueuedRunner
from culture.config.agents import BACKEND_FIELDS, AgentConfig
from culture.lib.git import IDENTITY_VARIABLES
from tests.cli.agents.conftest import NICK, Machine
from tests.cli.shell import Shell
from tests.support.agents import playbook


@pytest.mark.requirement("K01", "K10")
async def test_the_first_agent_makes_the_file_and_runs(machine: Machine) -> None:
    """The server, the rules of trust and the agent; it can be started at once."""
    added = await machine.run("agents", "add", "bee", "--backend", "scripted", "--channel", "#tea")
    assert added.code == 0, added.err
    assert added.out.startswith(f"{NICK} (scripted) is in {machine.home / 'agents.yaml'}.")
    file = machine.home / "agents.yaml"
    text = file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert f"port: {machine.port}" in text and "trust: {humans: always, agents: never}" in text
    assert 'channels: ["#tea"]' in text and text.startswith("# The agents on this machine")
    assert (await machine.run("start", NICK)).code == 0
    assert (await machine.run("agents", "list")).out.split() == [NICK, "scripted", str(machine.shell.folder), "#tea"]


async def test_what_else_is_in_the_file_stays(at_home: Shell) -> None:
    before = """\
# Ours.
server: {host: irc.example.org, port: 6697, tls: true}   # far away
agents:
  # The first.
  - nick: thor-one
    directory: ~/git   # everything
    channels: ["#general", '#tea']

# The end.
"""
    at_home.write(before, "agents.yaml").chmod(0o640)
    added = await at_home.run("agents", "add", "two")
    assert added.code == 0 and "thor-two (claude)" in added.out and "skills install" not in added.out
    after = (at_home.home / "agents.yaml").read_text()
    assert [line for line in before.splitlines() if line not in after.splitlines()] == []
    assert "- nick: thor-two" in after
    assert stat.S_IMODE((at_home.home / "agents.yaml").stat().st_mode) == 0o640


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("two", "--backend", "nonsense"), "is no backend"),
        (("two", "--directory", "/nowhere"), "is not a folder"),
        (("two", "--channel", "tea"), "is not a channel"),
        (("one",), "agents.yaml already: `culture start thor-one` starts it"),
        (("Thor-One",), "type `culture agents remove thor-one` first"),
        (("a b",), "cannot be a name"),
    ],
)
async def test_what_cannot_be_is_refused_and_nothing_written(at_home: Shell, words: tuple[str, ...], said: str) -> None:
    text = "agents:\n  - {nick: thor-one, directory: /, channels: ['#general']}\n"
    at_home.write(text, "agents.yaml")
    refused = await at_home.run("agents", "add", *words)
    assert refused.code != 0 and said in refused.err
    assert (at_home.home / "agents.yaml").read_text() == text
    assert [file.name for file in at_home.home.iterdir()] == ["agents.yaml"]


async def test_nothing_is_added_to_a_file_that_is_wrong(at_home: Shell) -> None:
    at_home.write("agents: [{nick: thor-one}]\n", "agents.yaml")
    refused = await at_home.run("agents", "add", "two")
    assert refused.code == 78 and "agents.yaml:1: agents[0].directory: is missing" in refused.err


async def test_an_agent_that_is_removed_stops_and_logs_in_no_more(machine: Machine) -> None:
    added = await machine.run("agents", "add", "bee", "--backend", "scripted")
    assert added.code == 0, added.err
    assert (await machine.run("start", NICK)).code == 0
    asked = await machine.run("agents", "remove", "bee")
    assert asked.code == 2 and "add --yes" in asked.err and machine.daemon() is not None
    removed = await machine.run("agents", "remove", "bee", "--yes")
    assert removed.code == 0, removed.err
    assert machine.daemon() is None and "no agents" in (await machine.run("agents", "list")).out
    [account] = json.loads((await machine.run("account", "list", "--json")).out)
    assert account["name"] == NICK and account["revoked"] and not account["tokens"]
    assert not (machine.home / "secrets" / NICK).exists() and (machine.home / "inbox" / f"{NICK}.db").exists()
    assert str(machine.shell.folder) in removed.out and "is revoked" in removed.out
    again = await machine.run("agents", "remove", "bee", "--yes")
    assert again.code == 2 and "there is no agent bee" in again.err


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "# Ours.\nagents:\n  # The first.\n  - nick: thor-two\n    # within it\n    directory: /   # all\n"
            "    channels: ['#a']\n\n  # The next.\n"
            "  - nick: thor-one\n    directory: /\n    channels: ['#a']\n# End.\n",
            "# Ours.\nagents:\n  # The first.\n\n  # The next.\n"
            "  - nick: thor-one\n    directory: /\n    channels: ['#a']\n# End.\n",
        ),
        (
            "agents:   # all of them\n-\n  nick: thor-two\n  directory: /\n  channels:\n  - '#a'\n\n"
            "trust: {humans: always}\n",
            "agents: []   # all of them\n\ntrust: {humans: always}\n",
        ),
        (
            "agents: [{nick: thor-one, directory: /, channels: ['#a']}, "
            "{nick: thor-two, directory: /, channels: ['#a']}]\n",
            "agents: [{nick: thor-one, directory: /, channels: ['#a']}]\n",
        ),
    ],
)
def test_what_else_is_in_the_file_stays_when_one_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str, after: str
) -> None:
    monkeypatch.setenv("CULTURE_HOME", str(tmp_path))
    (tmp_path / "agents.yaml").write_text(before)
    agents_yaml.remove("Thor-two")
    assert (tmp_path / "agents.yaml").read_text() == after


async def test_an_agent_that_systemd_runs_is_taken_from_it_first(at_home: Shell) -> None:
    text = "agents:\n  - {nick: thor-one, directory: /, channels: ['#general']}\n"
    at_home.write(text, "agents.yaml")
    units = at_home.folder / "units"
    at_home.environment["XDG_CONFIG_HOME"] = str(units)
    assert (await at_home.run("service", "install", "thor-one")).code == 0
    refused = await at_home.run("agents", "remove", "thor-one", "--yes")
    assert refused.code == 1 and "`culture service uninstall thor-one` first" in refused.err
    assert (at_home.home / "agents.yaml").read_text() == text


@pytest.mark.requirement("K11", "K14")
def test_what_only_a_backend_knows_reaches_its_runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """K11: what is left out has defaults; K14: what only the backend understands goes to its runner."""
    monkeypatch.setenv("CULTURE_HOME", str(tmp_path))
    rules = playbook(tmp_path, [])
    (tmp_path / "agents.yaml").write_text(
        f"""\
agents:
  - {{nick: spark-one, agent: scripted, directory: {tmp_path}, channels: ['#a'], playbook: {rules}}}
  - {{nick: spark-two, agent: acp, directory: {tmp_path}, channels: ['#a'], acp_command: [cline, --acp]}}
  - {{nick: spark-three, directory: {tmp_path}, channels: ['#a']}}
"""
    )
    one, two, three = (load().agent(nick) for nick in ("spark-one", "spark-two", "spark-three"))
    assert one is not None and two is not None and three is not None
    assert (three.model, three.thinking, three.tags) == (None, "medium", ())
    assert backend("claude").default_model == "claude-opus-4-6"
    assert two.backend_options == {"acp_command": ("cline", "--acp")}
    runner = make_runner(one, None, "a token")
    assert isinstance(runner, QueuedRunner) and runner.setup.options == {"playbook": rules}


@pytest.mark.parametrize("kind", sorted(BACKEND_FIELDS))
def test_model_default_leaves_the_model_to_the_program(kind: str, tmp_path: Path) -> None:
    options = {"scripted": {"playbook": playbook(tmp_path, [])}, "copilot": {"copilot_path": sys.executable}}
    options["acp"] = {"acp_command": [sys.executable]}
    words = {"nick": "spark-one", "agent": kind, "directory": tmp_path, "channels": ("#a",), **options.get(kind, {})}
    for said, used in (("default", None), (None, backend(kind).default_model), ("a-model", "a-model")):
        runner = make_runner(AgentConfig.model_validate({**words, "model": said}), None, "a token")
        assert isinstance(runner, QueuedRunner) and runner.setup.model == used


def test_an_agent_signs_its_commits_where_git_knows_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A person's name and address are used wherever git has them."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", os.devnull)
    for variable in IDENTITY_VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    agent = AgentConfig(nick="spark-one", agent="scripted", directory=tmp_path, channels=("#a",))
    own = make_runner(agent, None, "a token").setup.environment
    assert {own[variable] for variable in IDENTITY_VARIABLES} == {"spark-one", "spark-one@culture.invalid"}
    (tmp_path / ".gitconfig").write_text("[user]\n  name = Ori\n  email = ori@example.org\n")
    assert not set(IDENTITY_VARIABLES) & set(make_runner(agent, None, "a token").setup.environment)
