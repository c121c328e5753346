"""Checks of the network: ports of servers, TLS certificates, and links."""

import socket
import ssl
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import Any

from culture.cli.doctor.inventory import Inventory, LocalServer, display_path
from culture.cli.doctor.runner import Finding, error, hint, warning
from culture.cli.mesh import links as figures
from culture.cli.server import certificate
from culture.config import paths
from culture.config.agents import ServerAddress
from culture.config.links import LinkConfig
from culture.config.listen_policy import Tls, is_loopback
from culture.config.values import Misfit
from culture.federation import book
from culture.federation.book import UnreadableBook
from culture.protocol.names import fold, owner
from culture.server.net.port_conflict import explain
from culture.server.net.port_conflict import owner as process_at


def check_answering(inventory: Inventory) -> Iterator[Finding]:
    """Report servers that run but do not answer, or could not start."""
    for server in inventory.servers:
        if server.note is None:
            yield from _not_running(server, inventory)
            continue
        for listener, host, port in server.listeners:
            answer = inventory.probe(host, port, listener.tls is not None)
            is_there = answer.reached if listener.websocket else answer.speaks
            if not is_there and not answer.held:
                yield error(
                    f"{server.config.name} (pid {server.note.pid}) does not answer at {host} port {port}: "
                    f"{answer.failure}",
                    "it runs, but nobody can connect there",
                    f"`culture server restart --name {server.config.name}`; its log is "
                    f"{display_path(paths.log_file(server.config.name))}",
                )


def check_held_ports(inventory: Inventory) -> Iterator[Finding]:
    """Report ports that our programs connect to and on which another user's program listens."""
    users: dict[tuple[str, int], set[str]] = {}
    for user, address in _dialled_addresses(inventory):
        if not address.tls and address.fingerprint is None and is_loopback(address.host):
            users.setdefault((address.host, address.port), set()).add(user)
    for (host, port), names in users.items():
        answer = inventory.probe(host, port, tls=False)
        if answer.held:
            trouble = f"{', '.join(sorted(names))} cannot connect, and go on trying"
            yield error(answer.held.problem, trouble, answer.held.remedy)


def _dialled_addresses(inventory: Inventory) -> Iterator[tuple[str, ServerAddress]]:
    """Yield a phrase that names a program of ours, and an address that the program connects to."""
    if inventory.settings is not None and inventory.settings.agents:
        yield "the agents", inventory.settings.server
    for team in inventory.teams:
        yield f"the team {team.slug}", team.server
    for server in inventory.servers:
        for listener, host, port in server.listeners:
            if listener.tls is None and listener.websocket is None:
                yield "the page and the command line", ServerAddress(host=host, port=port)
        for link in inventory.good_links(server):
            if link.endpoint is not None and not link.encrypted:
                yield f"the link to {link.name}", ServerAddress(host=link.endpoint[0], port=link.endpoint[1])


def check_pages(inventory: Inventory) -> Iterator[Finding]:
    """Report web pages that are not connected to their server."""
    # Takes long to load, and the other checks do not need it.
    webpage = import_module("culture.cli.web.process")
    for server in inventory.servers:
        note = webpage.running(server.config.name)
        if note is not None and note.problem:
            yield error(
                f"the web page of {server.config.name} is not connected to it: {note.problem}",
                "it shows nothing new, and nobody can log in; it keeps trying",
                f"`culture server status`; `culture web stop` and `culture web start`, where the server moved; "
                f"what the page said is in {display_path(webpage.log_file(server.config.name))}",
            )


def _not_running(server: LocalServer, inventory: Inventory) -> Iterator[Finding]:
    blocked = [wrong for listener, _, port in server.listeners if (wrong := _blocked(listener.host, port))]
    for wrong in blocked:
        what, _, remedy = wrong.partition("\n")
        yield error(what, f"{server.config.name} cannot start there", remedy or "choose another in `listen:`")
    if blocked:
        return
    needy = [nick for nick in inventory.daemons if fold(owner(nick)) == fold(server.config.short_name)]
    say = error if needy else hint
    yield say(
        f"{server.config.name} is not running",
        f"{', '.join(needy)} wait for it" if needy else "its agents and people cannot talk",
        "`culture server start`, or `culture up` in a terminal of its own",
    )


def _blocked(host: str, port: int) -> str:
    """Return why no server could listen at a host and port, or "" if one could."""
    try:
        addresses = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as wrong:
        return f"{host} is no address of this machine: {wrong.strerror}"
    family, kind, protocol, _, address = addresses[0]
    with socket.socket(family, kind, protocol) as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind(address)
        except OSError as wrong:
            return explain(wrong, host, port)
    return ""


def check_exposure(inventory: Inventory) -> Iterator[Finding]:
    """Report servers that other machines can reach without TLS or logins."""
    for server in inventory.servers:
        config = server.config
        wide = [each for each in config.listen if not each.is_loopback]
        for listener in wide:
            if listener.tls is None:
                yield warning(
                    f"{config.name} listens on {listener.host or 'every address'} port {listener.port} without TLS",
                    "trusted_network allows it; whoever is on that network can read and change what is said",
                    "`culture server cert` makes a certificate, and says how to use it",
                )
        if wide and config.oidc is None and not inventory.accounts(server).accounts:
            say = warning if config.trusted_network else error
            yield say(
                f"{config.name} listens beyond this machine, and nobody has an account",
                "everybody can connect under any name" if config.trusted_network else "it refuses to start",
                "`culture account add NAME`",
            )
        if config.metrics.leaves_the_machine:
            yield warning(
                f"{config.name} publishes its metrics at {config.metrics.listen} for everybody",
                "they can be read without a login",
                f"`metrics: {{listen: 127.0.0.1:9464}}` in {display_path(paths.server_file())}",
            )


def check_agents_address(inventory: Inventory) -> Iterator[Finding]:
    """Report agents for which agents.yaml has a wrong server address."""
    settings = inventory.settings
    if settings is None or not settings.agents:
        return
    address = settings.server
    own = inventory.server_at(address)
    if own is not None:
        yield from _check_listener(inventory, own, address)
        return
    answer = inventory.probe(address.host, address.port, address.tls)
    if answer.speaks or answer.held:
        return
    # Prefer a server that runs.
    ours = sorted((each for each in inventory.servers if each.listeners), key=lambda each: each.note is None)
    file = display_path(paths.agents_file())
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


def _check_listener(inventory: Inventory, server: LocalServer, address: ServerAddress) -> Iterator[Finding]:
    """Report how a listener differs from what agents.yaml says: TLS, WebSocket, nick prefix.

    ``address``: that of the agents' server in agents.yaml, at which ``server`` listens.
    """
    file = display_path(paths.agents_file())
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
    strangers = [each.nick for each in inventory.agents if prefix and fold(owner(each.nick)) != fold(prefix)]
    if strangers:
        yield error(
            f"{', '.join(strangers)} cannot be on {server.config.name}",
            f"every nick there begins with {prefix}-",
            f"correct the nicks in {file}, or the server that it names",
        )


_SOON = timedelta(days=21)
_RENEW = "`culture server cert --force` makes a new one; tell everybody who pinned the old one, then send SIGHUP"


def check_certificate_dates(inventory: Inventory) -> Iterator[Finding]:
    """Report certificates that have expired or soon will, or whose key does not fit."""
    listeners = [each for server in inventory.servers for each in server.config.listen]
    for tls in {each.tls.certificate: each.tls for each in listeners if each.tls}.values():
        yield from _check_certificate(tls)


def _check_certificate(tls: Tls) -> Iterator[Finding]:
    place = display_path(tls.certificate)
    try:
        # Takes long to load, and most servers have no certificate.
        x509: Any = import_module("cryptography.x509")
        certificate_data = x509.load_pem_x509_certificate(tls.certificate.read_bytes())
    except OSError as wrong:
        yield error(f"{place} cannot be read: {wrong.strerror}", "the server does not start", "`culture server cert`")
        return
    except ValueError:
        yield error(f"{place} is not a certificate", "the server does not start", "`culture server cert --force`")
        return
    now, first, last = datetime.now(UTC), certificate_data.not_valid_before_utc, certificate_data.not_valid_after_utc
    if now > last:
        yield error(f"the certificate {place} expired on {last:%Y-%m-%d}", "clients refuse it", _RENEW)
    elif now > last - _SOON:
        yield warning(f"the certificate {place} expires on {last:%Y-%m-%d}", "clients refuse it then", _RENEW)
    elif now < first:
        yield error(
            f"the certificate {place} is good from {first:%Y-%m-%d} on",
            "clients refuse it until then; or this machine's clock is wrong",
            "`timedatectl` shows the time",
        )
    yield from _check_key(tls)


def _check_key(tls: Tls) -> Iterator[Finding]:
    try:
        # An empty password, so that nobody is asked for one.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(tls.certificate, tls.key, password="")
    except OSError as wrong:
        why = "it is not the one of the certificate" if isinstance(wrong, ssl.SSLError) else wrong.strerror
        yield error(
            f"the key {display_path(tls.key)} cannot be used: {why}",
            "the server does not start",
            "correct `tls:` in culture.yaml, or `culture server cert --force`",
        )


def check_shown_certificates(inventory: Inventory) -> Iterator[Finding]:
    """Report servers that still use a certificate whose file has been replaced."""
    for server in inventory.servers:
        for listener, host, port in server.listeners if server.note else ():
            if listener.tls is None:
                continue
            expected, actual = (
                certificate.fingerprint_of(listener.tls.certificate),
                inventory.probe(host, port, tls=True).fingerprint,
            )
            if expected and actual and expected != actual and server.note:
                yield warning(
                    f"{server.config.name} shows another certificate at port {port} than the one in its file",
                    "the file was replaced, and the server has not read it again",
                    f"kill -HUP {server.note.pid}",
                )


def check_pinned_fingerprints(inventory: Inventory) -> Iterator[Finding]:
    """Report a certificate fingerprint in agents.yaml that is not the server's."""
    settings = inventory.settings
    if settings is None or settings.server.fingerprint is None:
        return
    address = settings.server
    actual = inventory.probe(address.host, address.port, tls=True).fingerprint or _configured_fingerprint(
        inventory.server_at(address), address.port
    )
    if actual and actual != address.fingerprint:
        yield error(
            f"{address.host} port {address.port} shows another certificate than agents.yaml expects",
            "agents do not connect: somebody may have taken the server's place, or it has a new certificate",
            f"if it is new: `fingerprint: {actual}` in {display_path(paths.agents_file())}",
        )


def _configured_fingerprint(server: LocalServer | None, port: int) -> str | None:
    """Return the fingerprint of the certificate file for a server's TLS listener at ``port``.

    None if there is no such listener or the file cannot be read.
    """
    for listener, _, its_port in server.listeners if server else ():
        if its_port == port and listener.tls is not None:
            return certificate.fingerprint_of(listener.tls.certificate)
    return None


_SHORT = 16
_LINKED = frozenset({"linked", "syncing"})


def check_link_file(inventory: Inventory) -> Iterator[Finding]:
    """Report link files that cannot be read or are invalid."""
    for server in inventory.servers:
        file = display_path(book.path_of(server.config))
        try:
            inventory.links(server)
        except (UnreadableBook, OSError):
            yield error(
                f"{file} cannot be read",
                "its links are unknown",
                f"mv {file} {file}.old; then `culture mesh link` each once more",
            )
        except Misfit as wrong:
            yield error(f"{file}: {wrong}", "the server refuses such links", "`culture mesh unlink NAME`")


def check_link_secrets(inventory: Inventory) -> Iterator[Finding]:
    """Report links whose secret is short or used by several links, or still has a former one.

    The former secret stays valid until `culture mesh rotate --finish`.
    """
    for server in inventory.servers:
        same = defaultdict(list)
        for link in inventory.good_links(server):
            same[link.secret].append(link.name)
            yield from _check_link_secret(link)
        for names in same.values():
            if len(names) > 1:
                yield warning(
                    f"{' and '.join(names)} have the same secret",
                    "each of them can pose as the other",
                    f"`culture mesh rotate {names[1]} --new-secret FILE`, on both sides",
                )


def _check_link_secret(link: LinkConfig) -> Iterator[Finding]:
    if len(link.secret) < _SHORT:
        yield hint(
            f"the secret of the link to {link.name} is short",
            f"it has fewer than {_SHORT} characters, and can be guessed",
            f"`culture mesh rotate {link.name} --new-secret FILE`, on both sides",
        )
    if link.old_secret is not None:
        yield hint(
            f"the link to {link.name} still takes its old secret",
            "its change was begun and not finished",
            f"`culture mesh rotate {link.name} --finish`, on both sides",
        )


def check_peer_certificates(inventory: Inventory) -> Iterator[Finding]:
    """Report peers whose certificate is not the one that their link is configured for."""
    for server in inventory.servers:
        for link in inventory.good_links(server):
            if link.endpoint is None or link.fingerprint is None:
                continue
            actual = inventory.probe(*link.endpoint, tls=True).fingerprint
            if actual is not None and actual != link.fingerprint:
                yield error(
                    f"{link.name} shows another certificate at {link.address} than its link expects",
                    "they do not link: somebody may have taken its place, or it has a new certificate",
                    f"if it is new: `culture mesh link {link.name} --fingerprint {actual}`",
                )


def check_link_states(inventory: Inventory) -> Iterator[Finding]:
    """Report links of running servers that are down."""
    for server in inventory.servers:
        for row in figures.link_states(server.config) if server.note else ():
            if row["state"] in _LINKED:
                yield from _check_link_secret_in_use(row)
            else:
                yield _missing_link(server, str(row["name"]), str(row["state"]), str(row.get("problem") or ""))


def _check_link_secret_in_use(row: dict[str, object]) -> Iterator[Finding]:
    if row.get("secret") == "old":
        yield hint(
            f"{row['name']} is linked by its old secret",
            "the other side does not know the new one yet",
            f"there: `culture mesh rotate {row['name']}` with the new one",
        )


def _missing_link(server: LocalServer, name: str, state: str, problem: str) -> Finding:
    what = f"{server.config.name} is not linked to {name}{f': {problem}' if problem else f' ({state})'}"
    if "secret" in problem.lower() or "password" in problem.lower():
        why = "the two sides have different secrets for this link"
        return error(what, why, f"`culture mesh link {name} --secret-file FILE`, with the same secret on both sides")
    if "certificate" in problem.lower():
        return error(what, "the two sides do not know each other's certificates", "`culture server cert` prints them")
    why = "messages for it are kept, and sent when it is back"
    return warning(what, why, f"look at {name}: `culture mesh list` there; `culture mesh unlink {name}` for good")
