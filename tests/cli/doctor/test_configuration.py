"""What is wrong in the configuration files, and what YAML makes of them that nobody meant."""

import json
from typing import Any

import pytest

from culture.cli.doctor import exposure
from culture.cli.doctor.runner import FindingSeverity
from culture.clients.shared.sandbox import bubblewrap
from tests.cli.doctor.conftest import NICK, Patient
from tests.support.people import accounts_of

HEAD = "name: spark\n"


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("channels:\n  - #general\n", 3, '"#general"'),
        ("channels: [#general]\n", 3, '"#general"'),
        ("password: #x\n", 2, "quote"),
        ("trusted_network: on\n", 2, "true and false"),
        ("trusted_network: no\n", 2, "true and false"),
        ("listen:\n\t- port: 1\n", 3, "spaces"),
        ("name: thor\n", 2, "keep one"),
        ("pasword: x\n", 2, "did you mean password?"),
        ("skills: {dice: {}}\n", 2, "dice"),
        ("links:\n  - {name: thor}\n", 3, "secret"),
    ],
    ids=["comment", "comment in brackets", "password", "on", "no", "tab", "twice", "unknown", "skill", "no secret"],
)
def test_what_keeps_culture_yaml_from_being_used(patient: Patient, text: str, line: int, said: str) -> None:
    patient.file("culture.yaml", HEAD + text)
    finding = patient.one("configuration.files")
    assert finding.severity is FindingSeverity.ERROR
    assert f"culture.yaml line {line}" in finding.what
    assert said in finding.what + finding.next and "culture config check" in finding.next


def test_agents_and_teams_have_files_too(patient: Patient) -> None:
    patient.file("agents.yaml", "agents:\n  - nick: bee\n")
    patient.file("team/shop/team.yaml", "slug: Shop\nproject_dir: /tmp\n")
    places = [finding.what for finding in patient.found("configuration.files")]
    assert any("agents.yaml line 2" in place for place in places)
    assert any("team.yaml line 1" in place for place in places)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("motd: Say hello in #general", "the value of motd ends before the #"),
        ("password: hunter2#2 #3", "the value of password ends before the #"),
        ("  nick_length: 032", "begins with 0"),
        ("description: “our server”", "typographic quote"),
        ("description: our\u00a0server", "a space that is none"),
    ],
    ids=["cut off", "cut off password", "octal", "quotes", "space"],
)
def test_what_yaml_reads_and_nobody_meant(patient: Patient, line: str, said: str) -> None:
    text = f"{HEAD}limits:\n{line}\n" if line.startswith(" ") else f"{HEAD}{line}\n"
    patient.file("culture.yaml", text)
    assert patient.found("configuration.files") == []
    finding = next(each for each in patient.found("configuration.traps") if said in each.what)
    assert finding.severity is FindingSeverity.WARNING and finding.why and "edit" in finding.next
    assert "hunter2" not in str(finding)


@pytest.mark.parametrize(
    "line",
    [
        "motd: hello # a comment",
        "motd: hello # see #general",
        'motd: "Say hello in #general"',
        "motd: |\n  Say hello in #general\n  010\n",
        "# motd: Say hello in #general",
        "description: a#b",
        'channels: ["#general", "#work"]',
        "limits: {nick_length: 30}",
    ],
)
def test_what_is_as_it_looks_is_left_alone(patient: Patient, line: str) -> None:
    patient.file("culture.yaml", f"{HEAD}{line}\n")
    assert patient.found("configuration.traps") == []


def test_agents_without_rules_for_answers_are_told(patient: Patient) -> None:
    patient.agents()
    finding = patient.one("configuration.trust")
    assert finding.severity is FindingSeverity.HINT and NICK in finding.what
    assert (
        "the first answer counts, an agent's too" in finding.why
        and "people alone" in finding.why.partition("permission")[2]
    )
    patient.agents(trust={"humans": "always"})
    assert patient.found("configuration.trust") == []


def test_an_agent_s_shell_that_passes_for_a_person_is_told(patient: Patient) -> None:
    patient.server()
    agent = {"agent": "claude", "trust": {"humans": "always"}}
    patient.agents(agent)
    finding = patient.one("configuration.trust")
    assert finding.severity is FindingSeverity.HINT and f"the shells of {NICK}" in finding.why
    patient.agents({**agent, "sandbox": "bwrap"})
    assert patient.found("configuration.trust") == [], "it does not reach the server's port"
    patient.agents(agent)
    accounts_of(patient.home, "spark-ori")
    assert patient.found("configuration.trust") == []


def test_an_agent_that_runs_as_its_owner_is_told(patient: Patient) -> None:
    patient.agents({"agent": "claude"})
    finding = patient.one("configuration.boundary")
    assert (
        finding.severity is FindingSeverity.HINT and "user: NAME" in finding.next and "sandbox: bwrap" in finding.next
    )
    assert f"{NICK} runs as you and never asks" in finding.what
    assert "your home with " in finding.why and "IRC server at " in finding.why
    patient.agents({"agent": "claude", "permission_mode": "default"})
    assert "asks for permission" in patient.one("configuration.boundary").what
    patient.agents({"agent": "claude", "sandbox": {"kind": "bwrap", "hosts": ["git.example.com"]}})
    assert patient.found("configuration.boundary") == [], "it reaches what the sandbox opens"
    patient.agents()
    assert patient.found("configuration.boundary") == [], "a playbook does what it says and no more"


def team(patient: Patient, **settings: Any) -> None:
    """A team called shop whose members nobody has hired yet."""
    said = {"slug": "shop", "project_dir": str(patient.shell.folder), "server": {"port": 6667}, **settings}
    patient.file("team/shop/team.yaml", json.dumps(said))


def test_members_of_a_team_that_run_as_its_owner_are_told(patient: Patient) -> None:
    patient.server()
    team(patient, trust={"humans": "always"})
    finding = patient.one("configuration.boundary")
    assert finding.what == "the members of the team shop run as you and never ask for permission"
    assert "they could reach your home" in finding.why and "team/shop/team.yaml" in finding.next
    assert "the shells of the members of the team shop" in patient.one("configuration.trust").why
    team(patient, trust={"humans": "always"}, sandbox="bwrap")
    assert patient.found("configuration.boundary") == patient.found("configuration.trust") == []


@pytest.mark.parametrize("kind", ["bwrap", "user"])
def test_a_team_that_cannot_have_its_sandbox_is_told(
    patient: Patient, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exposure, "obstacle", lambda: "bubblewrap is not installed")
    team(patient, sandbox=kind)
    finding = patient.one("configuration.sandboxes")
    assert finding.severity is FindingSeverity.ERROR and f"the team shop: sandbox: {kind}" in finding.what


@pytest.mark.parametrize(
    ("sandbox", "said"),
    [
        ("bwrap", "bubblewrap is not installed: install bubblewrap"),
        ("user", "name that in `user:`"),
        ("none", ""),
    ],
)
def test_an_agent_that_cannot_have_its_sandbox_is_told(
    patient: Patient, sandbox: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bubblewrap, "obstacle", lambda: "bubblewrap is not installed: install bubblewrap")
    patient.agents({"agent": "claude", "sandbox": sandbox})
    findings = patient.found("configuration.sandboxes")
    assert [finding.severity for finding in findings] == [FindingSeverity.ERROR] * bool(said)
    assert all(said in finding.what and "does not start" in finding.why for finding in findings)
