"""The IRC tools as functions, for Python code of the agent."""

from culture.clients.shared.skill.irc import *  # noqa: F403
