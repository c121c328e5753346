"""Where servers listen: whether they answer, who else has the port, and who can reach it."""

import socket
from collections.abc import Iterator
from importlib import import_module

from culture.cli.doctor.inventory import Inventory, LocalServer, shown
from culture.cli.doctor.runner import Finding, error, hint, warning
from culture.config import paths
from culture.config.agents import ServerAddress
from culture.config.listen_policy import is_loopback
from culture.protocol.names import fold, owner
from culture.server.net.port_conflict import explain
from culture.server.net.port_conflict import owner as process_at


def answering(scene: Inventory) -> Iterator[Finding]:
    """Every server that runs answers; one that does not could start."""
    for server in scene.servers:
        if server.note is None:
            yield from _not_running(server, scene)
            continue
        for listener, host, port in server.listeners:
            answer = scene.probe(host, port, listener.tls is not None)
            is_there = answer.reached if listener.websocket else answer.speaks
            if not is_there and not answer.held:
                yield error(
                    f"{server.config.name} (pid {server.note.pid}) does not answer at {host} port {port}: "
                    f"{answer.failure}",
                    "it runs, but nobody gets in there",
                    f"`culture server restart --name {server.config.name}`; what it said is in "
                    f"{shown(paths.log_file(server.config.name))}",
                )


def held(scene: Inventory) -> Iterator[Finding]:
    """No other user of this machine listens where programs of ours look for a server."""
    users: dict[tuple[str, int], set[str]] = {}
    for user, address in _addresses(scene):
        if not address.tls and address.fingerprint is None and is_loopback(address.host):
            users.setdefault((address.host, address.port), set()).add(user)
    for (host, port), names in users.items():
        answer = scene.probe(host, port, tls=False)
        if answer.held:
            what, _, remedy = answer.held.partition(": nothing was said to them. ")
            yield error(what, f"{', '.join(sorted(names))} cannot connect, and go on trying", remedy)


def _addresses(scene: Inventory) -> Iterator[tuple[str, ServerAddress]]:
    """Each address that something of ours dials, with what it is for."""
    if scene.settings is not None and scene.settings.agents:
        yield "the agents", scene.settings.server
    for team in scene.teams:
        yield f"the team {team.slug}", team.server
    for server in scene.servers:
        for listener, host, port in server.listeners:
            if listener.tls is None and listener.websocket is None:
                yield "the page and the command line", ServerAddress(host=host, port=port)
        for link in scene.good_links(server):
            if link.endpoint is not None and not link.encrypted:
                yield f"the link to {link.name}", ServerAddress(host=link.endpoint[0], port=link.endpoint[1])


def pages(scene: Inventory) -> Iterator[Finding]:
    """Every web page that is shown is connected to its server."""
    # Its modules take long to load, and the other checks do without.
    webpage = import_module("culture.cli.web.process")
    for server in scene.servers:
        note = webpage.running(server.config.name)
        if note is not None and note.problem:
            yield error(
                f"the page of {server.config.name} is not connected to it: {note.problem}",
                "it shows nothing new, and nobody gets in; it goes on trying",
                f"`culture server status`; `culture web stop` and `culture web start`, where the server moved; "
                f"what the page said is in {shown(webpage.log_file(server.config.name))}",
            )


def _not_running(server: LocalServer, scene: Inventory) -> Iterator[Finding]:
    blocked = [wrong for listener, _, port in server.listeners if (wrong := _blocked(listener.host, port))]
    for wrong in blocked:
        what, _, remedy = wrong.partition("\n")
        yield error(what, f"{server.config.name} cannot start there", remedy or "choose another in `listen:`")
    if blocked:
        return
    needy = [nick for nick in scene.daemons if fold(owner(nick)) == fold(server.config.short_name)]
    say = error if needy else hint
    yield say(
        f"{server.config.name} is not running",
        f"{', '.join(needy)} wait for it" if needy else "its agents and people cannot talk",
        "`culture server start`, or `culture up` in a terminal of its own",
    )


def _blocked(host: str, port: int) -> str:
    """Why one cannot listen there; empty when one can."""
    try:
        found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as wrong:
        return f"{host} is no address of this machine: {wrong.strerror}"
    family, kind, protocol, _, address = found[0]
    with socket.socket(family, kind, protocol) as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind(address)
        except OSError as wrong:
            return explain(wrong, host, port)
    return ""


def exposure(scene: Inventory) -> Iterator[Finding]:
    """Who can reach a server, and what protects it."""
    for server in scene.servers:
        config = server.config
        wide = [each for each in config.listen if not each.is_loopback]
        for listener in wide:
            if listener.tls is None:
                yield warning(
                    f"{config.name} listens on {listener.host or 'every address'} port {listener.port} without TLS",
                    "trusted_network allows it; whoever is on that network can read and change what is said",
                    "`culture server cert` makes a certificate, and says how to use it",
                )
        if wide and config.oidc is None and not scene.accounts(server).accounts:
            say = warning if config.trusted_network else error
            yield say(
                f"{config.name} listens beyond this machine, and nobody has an account",
                "everybody gets in as whom they like" if config.trusted_network else "it does not start so",
                "`culture account add NAME`",
            )
        if config.metrics.leaves_the_machine:
            yield warning(
                f"{config.name} shows its figures at {config.metrics.listen} to everybody",
                "nobody is asked who they are there",
                f"`metrics: {{listen: 127.0.0.1:9464}}` in {shown(paths.server_file())}",
            )


def agents(scene: Inventory) -> Iterator[Finding]:
    """The agents knock at a door behind which somebody is, and it is the right one."""
    settings = scene.settings
    if settings is None or not settings.agents:
        return
    address = settings.server
    own = scene.server_at(address)
    if own is not None:
        yield from _fits(scene, own, address)
        return
    answer = scene.probe(address.host, address.port, address.tls)
    if answer.speaks or answer.held:
        return
    # One that runs is meant rather than one that does not.
    ours = sorted((each for each in scene.servers if each.listeners), key=lambda each: each.note is None)
    file = shown(paths.agents_file())
    if not is_loopback(address.host):
        yield error(
            f"{address.host} port {address.port} does not answer: {answer.failure}",
            "the agents cannot be on that server",
            f"start the server there, or correct `server:` in {file}",
        )
    elif ours:
        _, host, port = ours[0].listeners[0]
        who = process_at(address.port)
        yield error(
            f"the agents look for the server at port {address.port}, and {ours[0].config.name} is at {port}",
            f"process {who} has that port" if who else "nobody has that port",
            f"`server: {{host: {host}, port: {port}}}` in {file}, or `culture server restart --port {address.port}`",
        )


def _fits(scene: Inventory, server: LocalServer, address: ServerAddress) -> Iterator[Finding]:
    """The listener speaks what the agents speak, and the nicks are this server's."""
    file = shown(paths.agents_file())
    listener = next(each for each, _, port in server.listeners if port == address.port)
    wants = address.tls or address.fingerprint is not None
    if listener.websocket is not None or (listener.tls is not None) != wants:
        kind = "WebSocket" if listener.websocket else "TLS" if listener.tls else "no TLS"
        yield error(
            f"port {address.port} of {server.config.name} speaks {kind}, and the agents {'TLS' if wants else 'none'}",
            "they cannot connect",
            f"correct `server:` in {file}: its port, or tls",
        )
    prefix = server.config.account_prefix
    strangers = [each.nick for each in scene.agents if prefix and fold(owner(each.nick)) != fold(prefix)]
    if strangers:
        yield error(
            f"{', '.join(strangers)} cannot be on {server.config.name}",
            f"every nick there begins with {prefix}-",
            f"correct the nicks in {file}, or the server that it names",
        )
