"""agents.yaml: defaults, what is required, what is refused."""

from pathlib import Path
from typing import get_args

import pytest

from culture.config.agents import AgentsConfig, AlertEvent, SupervisorConfig, WebhookConfig
from culture.config.errors import ConfigError
from culture.config.load import load_agents
from culture.config.provenance import effective
from tests.config.conftest import Write

AGENT = """
agents:
  - nick: spark-culture
    directory: ~/git
    channels: ["#general"]
"""


def problems(file: Path) -> list[str]:
    with pytest.raises(ConfigError) as error:
        load_agents(file)
    return [str(problem).removeprefix(str(file)) for problem in error.value.problems]


@pytest.mark.requirement("K01")
def test_the_file_is_agents_yaml_in_the_home_folder(home: Path) -> None:
    """K01"""
    home.mkdir()
    (home / "agents.yaml").write_text("buffer_size: 7", encoding="utf-8")
    assert load_agents().config.buffer_size == 7


def test_no_file_means_defaults() -> None:
    assert load_agents().config == AgentsConfig()


@pytest.mark.requirement("K02", "K04", "K06", "K07")
def test_defaults_are_the_founding_ones(write: Write) -> None:
    """K02, K04, K06, K07"""
    config = load_agents(write(AGENT)).config
    assert (config.server.host, config.server.port) == ("localhost", 6667)
    assert config.supervisor == SupervisorConfig(
        model="claude-sonnet-4-6", thinking="medium", window_size=20, eval_interval=5, escalation_threshold=3
    )
    assert config.webhooks == WebhookConfig(irc_channel="#alerts", events=get_args(AlertEvent))
    assert len(config.webhooks.events) == 5
    assert config.buffer_size == 500


@pytest.mark.requirement("K08", "K09", "K10")
def test_an_agent_without_a_backend_is_claude(write: Write) -> None:
    """K09, K10"""
    (agent,) = load_agents(write(AGENT)).config.agents
    assert (agent.agent, agent.thinking, agent.tags, agent.model) == ("claude", "medium", (), None)
    assert agent.directory == Path.home() / "git"


@pytest.mark.parametrize("backend", ["claude", "codex", "acp", "copilot"])
@pytest.mark.requirement("K09")
def test_four_backends_are_known(write: Write, backend: str) -> None:
    """K09"""
    assert load_agents(write(f"{AGENT}    agent: {backend}")).config.agents[0].agent == backend


@pytest.mark.parametrize("missing", ["nick", "directory", "channels"])
@pytest.mark.requirement("K10")
def test_an_agent_needs_a_nick_a_directory_and_channels(write: Write, missing: str) -> None:
    """K10"""
    agent = {"nick": "spark-culture", "directory": "/srv", "channels": '["#general"]'}
    del agent[missing]
    file = write("agents:\n  - " + "\n    ".join(f"{key}: {value}" for key, value in agent.items()))
    assert problems(file) == [f":2: agents[0].{missing}: is missing and has no default"]


@pytest.mark.parametrize("nick", ["culture", "spark-", "Spark-culture", "spark-cul ture", "spark-" + "x" * 27])
@pytest.mark.requirement("K10")
def test_a_nick_is_server_and_name(write: Write, nick: str) -> None:
    """K10"""
    (problem,) = problems(write(AGENT.replace("spark-culture", nick)))
    assert problem.startswith(":3: agents[0].nick: ") and "<server>-<name>" in problem


@pytest.mark.requirement("K03")
def test_a_nick_begins_with_the_server_s_name(write: Write) -> None:
    """K03: the first label where the name is dotted."""
    assert load_agents(write(AGENT + "server: {name: spark.local}")).config.agents
    (problem,) = problems(write(AGENT + "server: {name: thor}"))
    assert problem == ":3: agents[0].nick: spark-culture must begin with thor-, the server's name"


def test_two_agents_cannot_share_a_nick(write: Write) -> None:
    again = "  - {nick: spark-CULTURE, directory: /srv, channels: []}\n"
    assert problems(write(AGENT + again)) == [":6: agents[1].nick: spark-CULTURE is there twice"]


def test_a_field_of_another_backend_is_refused(write: Write) -> None:
    """Decision 38: fields the backend's schema names are accepted, no others."""
    (problem,) = problems(write(AGENT + "    acp_command: [cline]"))
    assert problem == ":6: agents[0].acp_command: only for agents of backend acp, and this one is claude"
    assert problems(write(AGENT + "    dirctory: /srv")) == [
        ":6: agents[0].dirctory: unknown key (did you mean directory?)"
    ]
    (problem,) = problems(write(AGENT + "    agent: scripted\n    playbok: rules.yaml"))
    assert problem == ":7: agents[0].playbok: unknown key (did you mean playbook?)"


def test_a_new_backend_brings_its_own_fields(write: Write) -> None:
    """The table of backends is handed in, so a backend installed from elsewhere needs no change here."""
    file = write(AGENT + "    agent: myagent\n    flavour: {deep: [1, 2]}")
    (problem,) = problems(file)
    assert "'myagent' is no backend" in problem
    config = load_agents(file, {"myagent": frozenset({"flavour"}), "claude": frozenset()}).config
    assert config.agents[0].backend_options == {"flavour": {"deep": (1, 2)}}


def test_an_unknown_backend_is_named(write: Write) -> None:
    (problem,) = problems(write("supervisor: {agent: cladue}"))
    assert problem == ":1: supervisor.agent: 'cladue' is no backend; there are acp, claude, codex, copilot, scripted"


def test_an_unknown_backend_is_told_before_the_fields_it_would_have(write: Write) -> None:
    (problem,) = problems(write(AGENT + "    agent: scriptd\n    playbook: rules.yaml"))
    assert problem.startswith(":6: agents[0].agent: 'scriptd' is no backend")


def test_an_agent_s_own_word_goes_over_the_file_s_key_by_key(write: Write) -> None:
    """Decision 38: trust, webhooks, budget, supervisor and loop limits may be repeated under an agent."""
    text = f"""{AGENT}    supervisor: {{model: other}}
    max_hops: off
supervisor: {{window_size: 7}}
trust: {{agents: first}}
budget: {{usd_per_day: 5}}
pair_turns_per_hour: 9
"""
    agent = load_agents(write(text)).config.agent("SPARK-culture")
    assert agent is not None and agent.trust is not None
    assert (agent.supervisor.model, agent.supervisor.window_size) == ("other", 7)
    assert (agent.trust.agents, agent.budget.usd_per_day, agent.pair_turns_per_hour) == ("first", 5.0, 9)
    assert agent.max_hops is None
    assert load_agents(write(text)).config.agent("spark-nobody") is None


def test_a_low_escalation_threshold_counts_as_three(write: Write, caplog: pytest.LogCaptureFixture) -> None:
    """Decision 12: two interventions must have failed first."""
    config = load_agents(write("supervisor: {escalation_threshold: 1}")).config
    assert config.supervisor.escalation_threshold == 3
    assert "escalation_threshold 1 counts as 3" in caplog.text


def test_the_addresses_of_webhooks_are_secrets(write: Write) -> None:
    """Whoever knows such an address may post."""
    loaded = load_agents(write('webhooks: {url: "https://example.com/hook/s3cret"}'))
    shown = {row.key: row.value for row in effective(loaded)}
    assert shown["webhooks.url"] == "******" and shown["webhooks.on_error"] == "(not set)"
    assert "s3cret" not in repr(loaded.config)


def test_quiet_hours_are_a_span_of_the_day(write: Write) -> None:
    said = "quiet_hours: 22:00-07:00\nagents: []\n"
    assert load_agents(write(said)).config.quiet_hours == "22:00-07:00"
    with pytest.raises(ConfigError, match=r"not a span of the day such as 22:00-07:00"):
        load_agents(write("quiet_hours: late\n"))
