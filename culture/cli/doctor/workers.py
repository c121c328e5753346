"""What may work as this user: each agent of agents.yaml, and the members that each team hires by itself."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from culture.cli.doctor.scene import Scene
from culture.cli.team.place import TEAM
from culture.clients.shared import backends
from culture.config import paths
from culture.config.agents import AgentConfig, ServerAddress, TrustConfig, Wake
from culture.config.sandbox import SandboxConfig
from culture.config.team import ROLES, TeamConfig

SCRIPTED = "scripted"


@dataclass(frozen=True, slots=True)
class Worker:
    """An agent, or all members of a team whose program is the same."""

    name: str
    """As the subject of a sentence."""
    is_several: bool
    backend: str
    options: Mapping[str, object]
    """The settings that only the backend understands."""
    directory: Path
    wake: Wake
    trust: TrustConfig | None
    sandbox: SandboxConfig
    server: ServerAddress
    file: Path
    """Where all this is set."""
    user: str | None = None

    @property
    def never_asks(self) -> bool:
        """Whether it does what it likes without asking people; one without a model does what its playbook says."""
        try:
            kind = backends.backend(self.backend)
        except backends.NoBackend:
            return True
        return bool(kind.asks[0]) and backends.never_asks(kind, self.options)


def workers(scene: Scene) -> Iterator[Worker]:
    """All of them, as the files say it; a team's members are known before they are hired."""
    if scene.settings is not None:
        for agent in scene.agents:
            yield _agent(agent, scene.settings.server)
    for team in scene.teams:
        yield from _members(team)


def listed(found: Sequence[Worker]) -> str:
    """Their names, as the subject of a sentence."""
    return ", ".join(each.name for each in found)


def are_several(found: Sequence[Worker]) -> bool:
    """Whether a verb behind these names is in the plural."""
    return len(found) > 1 or any(each.is_several for each in found)


def _agent(agent: AgentConfig, server: ServerAddress) -> Worker:
    return Worker(
        name=agent.nick,
        is_several=False,
        backend=agent.agent,
        options=agent.backend_options,
        directory=agent.directory,
        wake=agent.wake,
        trust=agent.trust,
        sandbox=agent.sandbox,
        server=server,
        file=paths.agents_file(),
        user=agent.user,
    )


def _members(team: TeamConfig) -> Iterator[Worker]:
    """One for each program and way of asking that the team's roles have."""
    shown = set()
    for role in map(team.role, ROLES):
        worker = Worker(
            name=f"the members of the team {team.slug}",
            is_several=True,
            backend=role.agent,
            options=role.options,
            directory=team.project_dir,
            wake=team.wake,
            trust=team.trust,
            sandbox=team.sandbox,
            server=team.server,
            file=paths.team_dir(team.slug) / TEAM,
        )
        if (key := (worker.backend == SCRIPTED, worker.never_asks)) not in shown:
            shown.add(key)
            yield worker
