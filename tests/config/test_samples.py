"""The YAML samples of the founding documents load as they are written there."""

from pathlib import Path

import pytest

from culture.config.agents import ALERT_EVENTS, AgentsConfig
from culture.config.load import load_agents

SAMPLES = Path(__file__).parent / "samples"


def sample(name: str) -> AgentsConfig:
    return load_agents(SAMPLES / f"{name}.yaml").config


@pytest.mark.parametrize("file", sorted(SAMPLES.glob("*.yaml")), ids=lambda file: file.stem)
@pytest.mark.requirement("K16")
def test_every_sample_loads(file: Path) -> None:
    """K16"""
    assert load_agents(file).config


@pytest.mark.requirement("K02", "K04", "K06", "K07", "K08", "K16")
def test_the_first_sample_says_what_it_means() -> None:
    """K16, S0: no server.name, no agent."""
    config = sample("s0-harness")
    assert (config.server.host, config.server.port, config.server.name) == ("localhost", 6667, None)
    supervisor = config.supervisor
    assert (supervisor.model, supervisor.thinking) == ("claude-sonnet-4-6", "medium")
    assert (supervisor.window_size, supervisor.eval_interval, supervisor.escalation_threshold) == (20, 5, 3)
    assert config.webhooks.url == "https://discord.com/api/webhooks/..."
    assert config.webhooks.irc_channel == "#alerts"
    assert set(config.webhooks.events) == set(ALERT_EVENTS)
    assert config.buffer_size == 500
    (agent,) = config.agents
    assert (agent.nick, agent.channels, agent.agent) == ("spark-culture", ("#general",), "claude")
    assert (agent.model, agent.thinking, agent.directory.name) == ("claude-opus-4-6", "medium", "git")


@pytest.mark.requirement("K03", "K05", "K09", "K13", "K16")
def test_the_contract_sample_has_three_backends() -> None:
    """K16, S1: an ACP model has a provider's prefix, and its own field comes through."""
    config = sample("s1-contract")
    assert config.server.name == "spark"
    assert config.supervisor.agent == "claude"
    assert [agent.agent for agent in config.agents] == ["claude", "codex", "acp"]
    assert [agent.model for agent in config.agents] == ["claude-opus-4-6", "o3", "anthropic/claude-sonnet-4-6"]
    assert [dict(agent.backend_options) for agent in config.agents] == [{}, {}, {"acp_command": ("cline", "--acp")}]


@pytest.mark.requirement("K15", "K16", "K17")
def test_the_trust_and_webhook_samples_load() -> None:
    """K15, K17: each event may have an address of its own; a timeout is written 30m."""
    trust = sample("s2-trust").trust
    assert trust is not None
    assert (trust.humans, trust.agents, trust.timeout, trust.timeout_action) == ("always", "vote", 1800.0, "pause")
    webhooks = sample("s2-webhooks").webhooks
    assert webhooks.on_question == webhooks.on_spiraling == webhooks.on_timeout is not None
    assert webhooks.url is None
