"""TLS: certificates that are good, keys that fit them, and fingerprints that others have pinned."""

import ssl
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import Any

from culture.cli.doctor.inventory import Inventory, LocalServer, shown
from culture.cli.doctor.runner import Finding, error, hint, warning
from culture.cli.mesh import link_status as figures
from culture.cli.server import certificate
from culture.config import paths
from culture.config.links import LinkConfig
from culture.config.listen_policy import Tls
from culture.config.values import Misfit
from culture.federation import book
from culture.federation.book import UnreadableBook

_SOON = timedelta(days=21)
_RENEW = "`culture server cert --force` makes a new one, and whoever pinned the old one must be told; then SIGHUP"


def dates(scene: Inventory) -> Iterator[Finding]:
    """The certificates that listeners show."""
    listeners = [each for server in scene.servers for each in server.config.listen]
    for tls in {each.tls.certificate: each.tls for each in listeners if each.tls}.values():
        yield from _certificate(tls)


def _certificate(tls: Tls) -> Iterator[Finding]:
    place = shown(tls.certificate)
    try:
        # What reads certificates takes long to load, and most servers have none.
        x509: Any = import_module("cryptography.x509")
        found = x509.load_pem_x509_certificate(tls.certificate.read_bytes())
    except OSError as wrong:
        yield error(f"{place} cannot be read: {wrong.strerror}", "the server does not start", "`culture server cert`")
        return
    except ValueError:
        yield error(f"{place} is no certificate", "the server does not start", "`culture server cert --force`")
        return
    now, first, last = datetime.now(UTC), found.not_valid_before_utc, found.not_valid_after_utc
    if now > last:
        yield error(f"the certificate {place} ended on {last:%Y-%m-%d}", "clients refuse it", _RENEW)
    elif now > last - _SOON:
        yield warning(f"the certificate {place} ends on {last:%Y-%m-%d}", "clients refuse it then", _RENEW)
    elif now < first:
        yield error(
            f"the certificate {place} is good from {first:%Y-%m-%d} on",
            "clients refuse it until then; or this machine's clock is wrong",
            "`timedatectl` shows the time",
        )
    yield from _key(tls)


def _key(tls: Tls) -> Iterator[Finding]:
    try:
        # An empty password, so that nobody is asked for one.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(tls.certificate, tls.key, password="")
    except OSError as wrong:
        why = "it is not the one of the certificate" if isinstance(wrong, ssl.SSLError) else wrong.strerror
        yield error(
            f"the key {shown(tls.key)} cannot be used: {why}",
            "the server does not start",
            "correct `tls:` in culture.yaml, or `culture server cert --force`",
        )


def shown_ones(scene: Inventory) -> Iterator[Finding]:
    """What a running server shows is what is in its file."""
    for server in scene.servers:
        for listener, host, port in server.listeners if server.note else ():
            if listener.tls is None:
                continue
            kept, seen = certificate.of(listener.tls.certificate), scene.probe(host, port, tls=True).fingerprint
            if kept and seen and kept != seen and server.note:
                yield warning(
                    f"{server.config.name} shows another certificate at port {port} than the one in its file",
                    "the file was replaced, and the server has not read it again",
                    f"kill -HUP {server.note.pid}",
                )


def pins(scene: Inventory) -> Iterator[Finding]:
    """The fingerprint in agents.yaml is that of the server."""
    settings = scene.settings
    if settings is None or settings.server.fingerprint is None:
        return
    address = settings.server
    seen = scene.probe(address.host, address.port, tls=True).fingerprint or _filed(
        scene.server_at(address), address.port
    )
    if seen and seen != address.fingerprint:
        yield error(
            f"{address.host} port {address.port} shows another certificate than agents.yaml expects",
            "agents do not connect: somebody may have taken the server's place, or it has a new certificate",
            f"if it is new: `fingerprint: {seen}` in {shown(paths.agents_file())}",
        )


def _filed(server: LocalServer | None, port: int) -> str | None:
    """What a server that does not run would show."""
    for listener, _, its_port in server.listeners if server else ():
        if its_port == port and listener.tls is not None:
            return certificate.of(listener.tls.certificate)
    return None


_SHORT = 16
_LINKED = frozenset({"linked", "syncing"})


def readable(scene: Inventory) -> Iterator[Finding]:
    """What the command line has written of them."""
    for server in scene.servers:
        file = shown(book.path_of(server.config))
        try:
            scene.links(server)
        except (UnreadableBook, OSError):
            yield error(
                f"{file} cannot be read",
                "it is not known which links there shall be",
                f"mv {file} {file}.old; then `culture mesh link` each once more",
            )
        except Misfit as wrong:
            yield error(f"{file}: {wrong}", "the server does not take such links", "`culture mesh unlink NAME`")


def secrets(scene: Inventory) -> Iterator[Finding]:
    """Each link has a secret of its own, and one only."""
    for server in scene.servers:
        same = defaultdict(list)
        for link in scene.good_links(server):
            same[link.secret].append(link.name)
            yield from _secret(link)
        for names in same.values():
            if len(names) > 1:
                yield warning(
                    f"{' and '.join(names)} have the same secret",
                    "whoever knows it of one of them can pass for the other",
                    f"`culture mesh rotate {names[1]} --new-secret FILE`, on both sides",
                )


def _secret(link: LinkConfig) -> Iterator[Finding]:
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


def certificates(scene: Inventory) -> Iterator[Finding]:
    """The peers show the certificates that are expected of them."""
    for server in scene.servers:
        for link in scene.good_links(server):
            if link.endpoint is None or link.fingerprint is None:
                continue
            seen = scene.probe(*link.endpoint, tls=True).fingerprint
            if seen is not None and seen != link.fingerprint:
                yield error(
                    f"{link.name} shows another certificate at {link.address} than its link expects",
                    "they do not link: somebody may have taken its place, or it has a new certificate",
                    f"if it is new: `culture mesh link {link.name} --fingerprint {seen}`",
                )


def states(scene: Inventory) -> Iterator[Finding]:
    """Those of running servers are there."""
    for server in scene.servers:
        for row in figures.figures(server.config) if server.note else ():
            if row["state"] in _LINKED:
                yield from _standing(row)
            else:
                yield _missing(server, str(row["name"]), str(row["state"]), str(row.get("problem") or ""))


def _standing(row: dict[str, object]) -> Iterator[Finding]:
    if row.get("secret") == "old":
        yield hint(
            f"{row['name']} is linked by its old secret",
            "the other side does not know the new one yet",
            f"there: `culture mesh rotate {row['name']}` with the new one",
        )


def _missing(server: LocalServer, name: str, state: str, problem: str) -> Finding:
    what = f"{server.config.name} is not linked to {name}{f': {problem}' if problem else f' ({state})'}"
    if "secret" in problem.lower() or "password" in problem.lower():
        why = "the two sides have different secrets for this link"
        return error(what, why, f"`culture mesh link {name} --secret-file FILE`, with the same secret on both sides")
    if "certificate" in problem.lower():
        return error(what, "the two sides do not know each other's certificates", "`culture server cert` prints them")
    why = "what is said is kept for it, and told when it is back"
    return warning(what, why, f"look at {name}: `culture mesh list` there; `culture mesh unlink {name}` for good")
