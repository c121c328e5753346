"""The programs that agents need, as their backends find them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from culture.clients.shared.backends import NoBackend, backend, found
from culture.clients.shared.programs import Found
from culture.config.agents import AgentConfig
from culture.config.team import ROLES, TeamConfig

COMMAND = "acp_command"


@dataclass(frozen=True)
class Needed:
    """A backend that is used, what is installed of it, and who needs it."""

    backend: str
    programs: Sequence[Found]
    users: Sequence[str]


def needed(agents: Iterable[AgentConfig], teams: Iterable[TeamConfig]) -> list[Needed]:
    """What these agents and teams need; nothing of a backend that cannot tell what is installed."""
    users: dict[str, list[str]] = {}
    for agent in agents:
        if COMMAND not in agent.backend_options:
            users.setdefault(agent.agent, []).append(agent.nick)
    for team in teams:
        for name in sorted({team.role(role).agent for role in ROLES}):
            users.setdefault(name, []).append(f"the team {team.slug}")
    every = [Needed(name, _found(name), nicks) for name, nicks in users.items()]
    return [each for each in every if each.programs]


def _found(name: str) -> Sequence[Found]:
    try:
        return found(backend(name))
    except NoBackend:
        return (Found(name),)
