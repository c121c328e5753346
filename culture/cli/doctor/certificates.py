"""TLS: certificates that are good, keys that fit them, and fingerprints that others have pinned."""

import ssl
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import Any

from culture.cli import fingerprint
from culture.cli.doctor.finding import Finding, error, warning
from culture.cli.doctor.scene import Scene, Server, shown
from culture.config import paths
from culture.config.exposure import Tls

_SOON = timedelta(days=21)
_RENEW = "`culture server cert --force` makes a new one, and whoever pinned the old one must be told; then SIGHUP"


def dates(scene: Scene) -> Iterator[Finding]:
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


def shown_ones(scene: Scene) -> Iterator[Finding]:
    """What a running server shows is what is in its file."""
    for server in scene.servers:
        for listener, host, port in server.listeners if server.note else ():
            if listener.tls is None:
                continue
            kept, seen = fingerprint.of(listener.tls.certificate), scene.probe(host, port, tls=True).fingerprint
            if kept and seen and kept != seen and server.note:
                yield warning(
                    f"{server.config.name} shows another certificate at port {port} than the one in its file",
                    "the file was replaced, and the server has not read it again",
                    f"kill -HUP {server.note.pid}",
                )


def pins(scene: Scene) -> Iterator[Finding]:
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


def _filed(server: Server | None, port: int) -> str | None:
    """What a server that does not run would show."""
    for listener, _, its_port in server.listeners if server else ():
        if its_port == port and listener.tls is not None:
            return fingerprint.of(listener.tls.certificate)
    return None
