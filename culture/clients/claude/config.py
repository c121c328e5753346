"""Documented import path of the agents' configuration."""

from culture.config.agents import AgentConfig, AgentsConfig
from culture.config.load import load_agents

__all__ = ["AgentConfig", "AgentsConfig", "load_agents"]
