"""Agents that never ask for permission, together with the ways by which strangers may reach them."""

from collections.abc import Iterator

from culture.cli.doctor.finding import Finding, hint, warning
from culture.cli.doctor.scene import Scene, Server, shown
from culture.clients.shared import backends
from culture.config import paths
from culture.config.agents import AgentConfig
from culture.config.exposure import is_loopback
from culture.protocol.vocabulary import UserClass


def never_asks(agent: AgentConfig) -> bool:
    """Whether an agent does what it likes without asking people; one without a model does what its playbook says."""
    try:
        kind = backends.backend(agent.agent)
    except backends.NoBackend:
        return True
    return bool(kind.asks[0]) and backends.never_asks(kind, agent.backend_options)


def ways_in(scene: Scene) -> list[str]:
    """How somebody who is not the owner may come to the server of the agents, in a few words each."""
    if scene.settings is None:
        return []
    address = scene.settings.server
    server = scene.server_at(address)
    if server is None:
        return [] if is_loopback(address.host) else [f"the server is another machine's, {address.host}"]
    return [*_by_listeners(server), *_by_links(scene, server)]


def _by_listeners(server: Server) -> Iterator[str]:
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


def _by_links(scene: Scene, server: Server) -> Iterator[str]:
    for link in scene.good_links(server):
        yield f"the link to {link.name} (trust {link.trust})"


def _people_at_their_word(scene: Scene) -> Iterator[str]:
    """The ways by which somebody without a login is taken for a person, as no person has an account."""
    server = scene.server_at(scene.settings.server) if scene.settings is not None else None
    if server is None or knows_people(scene, server):
        return
    if server.config.local_users:
        yield f"local_users: {', '.join(server.config.local_users)}"
    if server.config.trusted_network:
        yield "trusted_network"
    for link in scene.good_links(server):
        if link.trust == "full":
            yield f"the link to {link.name} (trust full)"


def knows_people(scene: Scene, server: Server) -> bool:
    """Whether some person has an account; a file that cannot be read has a finding of its own."""
    try:
        return any(each.kind is UserClass.HUMAN for each in scene.accounts(server).accounts.values())
    except (OSError, ValueError):
        return True


def openings(scene: Scene) -> Iterator[Finding]:
    """Who may speak to such an agent runs code as its owner."""
    ways = ways_in(scene)
    bold = [agent for agent in scene.agents if never_asks(agent)]
    if not ways or not bold:
        return
    for agent in bold:
        if agent.wake == "anybody":
            yield warning(
                f"{agent.nick} never asks for permission, takes work from anybody, and can be reached: "
                f"{'; '.join(ways)}",
                "whoever comes by one of these ways runs what they like as the agent's user",
                f"leave out `wake: anybody` in {shown(paths.agents_file())}, or have the agent ask for permission",
            )
    careful = [agent.nick for agent in bold if agent.wake != "anybody"]
    at_their_word = list(_people_at_their_word(scene))
    if careful and at_their_word:
        yield warning(
            f"{', '.join(careful)} never ask{'s' if len(careful) == 1 else ''} for permission, and strangers count as "
            f"people: {'; '.join(at_their_word)}",
            "no person has an account on the server: whoever comes by one of these ways without a login is taken for "
            "a person, and runs what they like as the agent's user",
            "`culture account add NAME` for yourself (`culture up` does it, too)",
        )
    elif careful:
        yield hint(
            f"{', '.join(careful)} never ask{'s' if len(careful) == 1 else ''} for permission, and can be reached: "
            f"{'; '.join(ways)}",
            "whoever has an account there, or is a person of a server linked with trust full, runs what they like as "
            "the agent's user; what everybody else says is held",
            f"`wake: humans`, a mode in which the agent asks, `sandbox:` or `user:` in {shown(paths.agents_file())}",
        )
