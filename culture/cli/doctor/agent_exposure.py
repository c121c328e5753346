"""Agents that never ask for permission, together with the ways by which strangers may reach them."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from culture.bridge import access
from culture.cli.doctor.inventory import Inventory, LocalServer, shown
from culture.cli.doctor.runner import Finding, hint, warning
from culture.cli.team.select_team import TEAM
from culture.clients.shared import backends
from culture.config import paths
from culture.config.agents import AgentConfig, ServerAddress, TrustConfig, Wake
from culture.config.listen_policy import is_loopback
from culture.config.sandbox import SandboxConfig
from culture.config.team import ROLES, TeamConfig
from culture.protocol.vocabulary import UserClass

SCRIPTED = "scripted"


@dataclass(frozen=True, slots=True)
class AgentExposure:
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


def workers(scene: Inventory) -> Iterator[AgentExposure]:
    """All of them, as the files say it; a team's members are known before they are hired."""
    if scene.settings is not None:
        for agent in scene.agents:
            yield _agent(agent, scene.settings.server)
    for team in scene.teams:
        yield from _members(team)


def listed(found: Sequence[AgentExposure]) -> str:
    """Their names, as the subject of a sentence."""
    return ", ".join(each.name for each in found)


def are_several(found: Sequence[AgentExposure]) -> bool:
    """Whether a verb behind these names is in the plural."""
    return len(found) > 1 or any(each.is_several for each in found)


def _agent(agent: AgentConfig, server: ServerAddress) -> AgentExposure:
    return AgentExposure(
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


def _members(team: TeamConfig) -> Iterator[AgentExposure]:
    """One for each program and way of asking that the team's roles have."""
    shown = set()
    for role in map(team.role, ROLES):
        worker = AgentExposure(
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


def ways_in(scene: Inventory, address: ServerAddress) -> list[str]:
    """How somebody who is not the owner may come to the server of an agent, in a few words each."""
    server = scene.server_at(address)
    if server is None:
        return [] if is_loopback(address.host) else [f"the server is another machine's, {address.host}"]
    return [*_by_listeners(server), *_by_links(scene, server), *_by_the_bridge()]


def _by_listeners(server: LocalServer) -> Iterator[str]:
    config = server.config
    for listener in config.listen:
        if listener.websocket is not None:
            yield f"pages in a browser (port {listener.port})"
        elif not listener.is_loopback:
            yield f"a listener beyond this machine (port {listener.port})"
    if config.self_registration != "off":
        yield f"self_registration: {config.self_registration}"
    if config.local_users:
        yield f"local_users: {', '.join(config.local_users)}"
    if config.trusted_network:
        yield "trusted_network"
    if config.web.is_exposed:
        yield f"the web page beyond this machine (port {config.web.port})"


def _by_links(scene: Inventory, server: LocalServer) -> Iterator[str]:
    for link in scene.good_links(server):
        yield f"the link to {link.name} (trust {link.trust})"


def _by_the_bridge() -> Iterator[str]:
    """A token of the bridge speaks as a nick with an account of class agent."""
    try:
        tokens = access.BridgeAccess().grants()
    except access.BrokenAccessFile:
        return
    now = time.time()
    if nicks := sorted({each.names[0] for each in tokens if each.lasts_until > now}):
        yield f"tokens of the bridge ({', '.join(nicks)})"


def _people_at_their_word(scene: Inventory, address: ServerAddress) -> Iterator[str]:
    """The ways by which somebody without a login is taken for a person, as no person has an account."""
    server = scene.server_at(address)
    if server is None or knows_people(scene, server):
        return
    if server.config.local_users:
        yield f"local_users: {', '.join(server.config.local_users)}"
    if server.config.trusted_network:
        yield "trusted_network"
    for link in scene.good_links(server):
        if link.trust == "full":
            yield f"the link to {link.name} (trust full)"


def knows_people(scene: Inventory, server: LocalServer) -> bool:
    """Whether some person has an account; a file that cannot be read has a finding of its own."""
    try:
        return any(each.kind is UserClass.HUMAN for each in scene.accounts(server).accounts.values())
    except (OSError, ValueError):
        return True


def openings(scene: Inventory) -> Iterator[Finding]:
    """Who may speak to such an agent runs code as its owner."""
    files: dict[Path, list[AgentExposure]] = {}
    for worker in workers(scene):
        if worker.never_asks:
            files.setdefault(worker.file, []).append(worker)
    for bold in files.values():
        if ways := ways_in(scene, bold[0].server):
            yield from _reached(scene, bold, "; ".join(ways))


def _reached(scene: Inventory, bold: Sequence[AgentExposure], ways: str) -> Iterator[Finding]:
    """What is to be told of those of one file, which have one server."""
    for worker in bold:
        if worker.wake == "anybody":
            takes = _verb([worker], "takes", "take")
            yield warning(
                f"{_subject([worker])}, {takes} work from anybody, and can be reached: {ways}",
                "whoever comes by one of these ways runs what they like as the agent's user",
                f"leave out `wake: anybody` in {shown(worker.file)}, or have the agent ask for permission",
            )
    careful = [worker for worker in bold if worker.wake != "anybody"]
    if not careful:
        return
    if at_their_word := list(_people_at_their_word(scene, careful[0].server)):
        yield warning(
            f"{_subject(careful)}, and strangers count as people: {'; '.join(at_their_word)}",
            "no person has an account on the server: whoever comes by one of these ways without a login is taken for "
            "a person, and runs what they like as the agent's user",
            "`culture account add NAME` for yourself (`culture up` does it, too)",
        )
        return
    yield hint(
        f"{_subject(careful)}, and can be reached: {ways}",
        "whoever has an account there, or is a person of a server linked with trust full, runs what they like as "
        "the agent's user; what everybody else says is held",
        f"`wake: humans`, a mode in which the agent asks, `sandbox:` or `user:` in {shown(careful[0].file)}",
    )


def _subject(bold: Sequence[AgentExposure]) -> str:
    return f"{listed(bold)} never {_verb(bold, 'asks', 'ask')} for permission"


def _verb(bold: Sequence[AgentExposure], one: str, several: str) -> str:
    return several if are_several(bold) else one
