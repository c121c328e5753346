"""Checks of what agents may do and who can reach them: trust, sandboxes, ways in."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from culture.bridge import access
from culture.cli.doctor.inventory import Inventory, LocalServer, display_path
from culture.cli.doctor.runner import Finding, error, hint, ok, warning
from culture.cli.team.select_team import TEAM
from culture.clients.shared import backends
from culture.clients.shared.backends import NoBackend, backend
from culture.clients.shared.errors import WrongConfiguration
from culture.clients.shared.sandbox import selection
from culture.clients.shared.sandbox.bubblewrap import obstacle
from culture.config import paths
from culture.config.agents import AgentConfig, ServerAddress, TrustConfig, Wake
from culture.config.listen_policy import is_loopback
from culture.config.sandbox import SandboxConfig, parse_host
from culture.config.team import ROLES, TeamConfig
from culture.protocol.vocabulary import UserClass

SCRIPTED = "scripted"


@dataclass(frozen=True, slots=True)
class AgentExposure:
    """How an agent, or several team members with one backend, can be reached and is limited."""

    name: str
    """Name, as the subject of a sentence."""
    is_several: bool
    backend: str
    options: Mapping[str, object]
    """Settings that only the backend understands."""
    directory: Path
    wake: Wake
    trust: TrustConfig | None
    sandbox: SandboxConfig
    server: ServerAddress
    file: Path
    """File that contains these settings."""
    user: str | None = None

    @property
    def never_asks(self) -> bool:
        """Whether this agent uses tools without asking for permission; False if it has no model.

        True if its backend is unknown.
        """
        try:
            kind = backends.backend(self.backend)
        except backends.NoBackend:
            return True
        return bool(kind.asks[0]) and backends.never_asks(kind, self.options)


def list_workers(inventory: Inventory) -> Iterator[AgentExposure]:
    """Yield all agents of agents.yaml, and entries for the members that the teams would hire."""
    if inventory.settings is not None:
        for agent in inventory.agents:
            yield _agent(agent, inventory.settings.server)
    for team in inventory.teams:
        yield from _members(team)


def join_names(workers: Sequence[AgentExposure]) -> str:
    """Return the names of agents, joined by commas, as the subject of a sentence."""
    return ", ".join(each.name for each in workers)


def is_plural(workers: Sequence[AgentExposure]) -> bool:
    """Whether a sentence with these agents as its subject needs a plural verb."""
    return len(workers) > 1 or any(each.is_several for each in workers)


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
    """Yield entries that stand for the members of a team.

    There is one for roles with a model that ask for permission, one for those that never ask, one for scripted roles;
    only those that the team has.
    """
    seen_kinds = set()
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
        if (key := (worker.backend == SCRIPTED, worker.never_asks)) not in seen_kinds:
            seen_kinds.add(key)
            yield worker


def find_ways_in(inventory: Inventory, address: ServerAddress) -> list[str]:
    """Return the ways, as phrases, by which others than the owner can reach an agent's server.

    ``address``: that of the server. There are none if nobody else can reach it.
    """
    server = inventory.server_at(address)
    if server is None:
        return [] if is_loopback(address.host) else [f"the server is another machine's, {address.host}"]
    return [*_by_listeners(server), *_by_links(inventory, server), *_by_the_bridge()]


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


def _by_links(inventory: Inventory, server: LocalServer) -> Iterator[str]:
    for link in inventory.good_links(server):
        yield f"the link to {link.name} (trust {link.trust})"


def _by_the_bridge() -> Iterator[str]:
    """Yield one phrase for the bridge as a way to reach agents: it names the valid tokens' nicks.

    Nothing is yielded if no token is valid.
    """
    try:
        tokens = access.BridgeAccess().grants()
    except access.BrokenAccessFile:
        return
    now = time.time()
    if nicks := sorted({each.names[0] for each in tokens if each.lasts_until > now}):
        yield f"tokens of the bridge ({', '.join(nicks)})"


def _people_at_their_word(inventory: Inventory, address: ServerAddress) -> Iterator[str]:
    """Yield phrases for the ways by which somebody counts as a person without a login.

    ``address``: that of the server. Nothing is yielded if the server has an account of a person.
    """
    server = inventory.server_at(address)
    if server is None or knows_people(inventory, server):
        return
    if server.config.local_users:
        yield f"local_users: {', '.join(server.config.local_users)}"
    if server.config.trusted_network:
        yield "trusted_network"
    for link in inventory.good_links(server):
        if link.trust == "full":
            yield f"the link to {link.name} (trust full)"


def knows_people(inventory: Inventory, server: LocalServer) -> bool:
    """Whether a server has an account of a person; True if its accounts file cannot be read."""
    try:
        return any(each.kind is UserClass.HUMAN for each in inventory.accounts(server).accounts.values())
    except (OSError, ValueError):
        return True


def check_openings(inventory: Inventory) -> Iterator[Finding]:
    """Report agents that never ask for permission and can be reached by strangers."""
    files: dict[Path, list[AgentExposure]] = {}
    for worker in list_workers(inventory):
        if worker.never_asks:
            files.setdefault(worker.file, []).append(worker)
    for group in files.values():
        if ways := find_ways_in(inventory, group[0].server):
            yield from _reached(inventory, group, "; ".join(ways))


def _reached(inventory: Inventory, group: Sequence[AgentExposure], ways: str) -> Iterator[Finding]:
    """Report agents that never ask for permission although others can reach them.

    ``group``: agents that use the same server. ``ways``: how they can be reached, as a phrase.
    """
    for worker in group:
        if worker.wake == "anybody":
            takes = _verb([worker], "takes", "take")
            yield warning(
                f"{_subject([worker])}, {takes} work from anybody, and can be reached: {ways}",
                "whoever comes by one of these ways runs what they like as the agent's user",
                f"leave out `wake: anybody` in {display_path(worker.file)}, or have the agent ask for permission",
            )
    limited = [worker for worker in group if worker.wake != "anybody"]
    if not limited:
        return
    if at_their_word := list(_people_at_their_word(inventory, limited[0].server)):
        yield warning(
            f"{_subject(limited)}, and strangers count as people: {'; '.join(at_their_word)}",
            "no person has an account on the server: whoever comes by one of these ways without a login is taken for "
            "a person, and runs what they like as the agent's user",
            "`culture account add NAME` for yourself (`culture up` does it, too)",
        )
        return
    yield hint(
        f"{_subject(limited)}, and can be reached: {ways}",
        "whoever has an account there, or is a person of a server linked with trust full, runs what they like as "
        "the agent's user; what everybody else says is held",
        f"`wake: humans`, a mode in which the agent asks, `sandbox:` or `user:` in {display_path(limited[0].file)}",
    )


def _subject(group: Sequence[AgentExposure]) -> str:
    return f"{join_names(group)} never {_verb(group, 'asks', 'ask')} for permission"


def _verb(group: Sequence[AgentExposure], one: str, several: str) -> str:
    return several if is_plural(group) else one


def check_trust(inventory: Inventory) -> Iterator[Finding]:
    """Report agents without the setting ``trust``, which says who may answer their questions."""
    files: dict[Path, list[AgentExposure]] = {}
    for worker in list_workers(inventory):
        files.setdefault(worker.file, []).append(worker)
    for file, those in files.items():
        if without := [worker for worker in those if worker.trust is None]:
            yield hint(
                f"no `trust:` block says who may answer the questions of {join_names(without)}",
                "without a trust block the first answer counts, an agent's too, and after 5 minutes there is none; "
                "only permission to use a tool is given by people alone",
                f"write `trust: {{humans: always, agents: never}}` into {display_path(file)}",
            )
        shells = [each for each in those if each.backend != SCRIPTED and each.sandbox.kind != "bwrap"]
        server = inventory.server_at(those[0].server)
        if shells and server is not None and not knows_people(inventory, server):
            yield hint(
                f"no person has an account on {server.config.name}",
                f"whoever comes from this machine without a login counts as a person, the shells of "
                f"{join_names(shells)} too: an agent could answer its own questions, and release what is held",
                "`culture account add NAME` for yourself (`culture up` does it, too)",
            )


def check_boundary(inventory: Inventory) -> Iterator[Finding]:
    """Report which files and networks each agent with a model can reach."""
    for worker in list_workers(inventory):
        if worker.backend == SCRIPTED or worker.user is not None:
            continue
        several = worker.is_several
        runs, reaches, asks, it = ("run", "reach", "ask", "they") if several else ("runs", "reaches", "asks", "it")
        if worker.sandbox.kind == "bwrap":
            yield ok(f"{worker.name} {reaches} {_reach_inside(worker)}")
            continue
        how = f"never {asks} for permission" if worker.never_asks else f"{asks} for permission, and people may give it"
        place = f"in {display_path(worker.file)}"
        yield hint(
            f"{worker.name} {runs} as you and {how}",
            f"{it} could reach {_reach(inventory, worker)}",
            f"{_way_to_a_sandbox()}{f' {place}' if several else f', or `user: NAME`, under the agent {place}'}",
        )


def check_sandboxes(inventory: Inventory) -> Iterator[Finding]:
    """Report agents that cannot start because their sandbox cannot be made."""
    for agent in inventory.agents:
        try:
            selection.check(agent, backend(agent.agent))
        except NoBackend:
            continue  # reported by the check of the programs
        except WrongConfiguration as wrong:
            yield error(
                str(wrong),
                f"{agent.nick} does not start, rather than run without a sandbox",
                f"fix that, or correct `sandbox:` in {display_path(paths.agents_file())}",
            )
    for team in inventory.teams:
        why = obstacle() if team.sandbox.kind == "bwrap" else ""
        if team.sandbox.kind == "user":
            why = "members of a team run as its own user: run the whole team as another one"
        if why:
            yield error(
                f"the team {team.slug}: sandbox: {team.sandbox.kind}: {why}",
                "its members do not start, rather than run without a sandbox",
                f"fix that, or correct `sandbox:` in {display_path(paths.team_dir(team.slug) / TEAM)}",
            )


def _reach(inventory: Inventory, worker: AgentExposure) -> str:
    """Return, as a phrase, what an agent without a sandbox can reach: all that its user can."""
    secrets = [display_path(each) for each in (Path.home() / ".ssh", inventory.home) if each.exists()]
    port = f"the IRC server at {worker.server.host}:{worker.server.port}"
    return f"your home{f' with {_listed(secrets)}' if secrets else ''}, {port}, your processes and every network"


def _reach_inside(worker: AgentExposure) -> str:
    """Return, as a phrase, the folders and hosts that an agent's sandbox lets the agent reach."""
    places = [worker.directory, *worker.sandbox.read, *worker.sandbox.write]
    rules: list[str] = []
    if worker.sandbox.network == "on":
        with suppress(NoBackend):
            needs = selection.needs_of(backend(worker.backend), worker.options)
            rules = [str(rule) for rule in (*worker.sandbox.rules, *map(parse_host, needs.hosts))]
    return f"{_listed([display_path(each) for each in places])} and {_listed(rules) or 'no network'}"


def _listed(words: Sequence[str]) -> str:
    return ", ".join(words)


def _way_to_a_sandbox() -> str:
    why = obstacle()
    return f"`sandbox: bwrap` ({why})" if why else "`sandbox: bwrap`"
