"""``culture server cert``: makes a self-signed certificate; also reads fingerprints."""

import os
import socket
import ssl
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from culture.config import paths
from culture.config.errors import ConfigError
from culture.config.load import load_server
from culture.protocol.vocabulary import Exit

_END = "-----END CERTIFICATE-----"


def fingerprint_of(certificate: Path) -> str | None:
    """Return the SHA-256 (hex) of the first certificate in a PEM file; None if it has none."""
    try:
        first = certificate.read_text(encoding="ascii").partition(_END)[0] + _END
        return sha256(ssl.PEM_cert_to_DER_cert(first[first.index("-----BEGIN") :])).hexdigest()
    except (OSError, ValueError):
        return None


Names = Annotated[
    list[str] | None,
    typer.Option("--name", metavar="HOST", help="A name or address that clients use for this host; may be repeated."),
]
Days = Annotated[int, typer.Option("--days", min=1, max=36500, metavar="N", help="Days that it is valid.")]
Force = Annotated[bool, typer.Option("--force", help="Replace an existing certificate.")]


def cert(name: Names = None, days: Days = 825, force: Force = False) -> None:
    """Make a self-signed certificate, and print how to use it.

    It is stored in ~/.culture/tls; only you can read its key.
    """
    names = name or [socket.gethostname()]
    certificate, key = (paths.tls_file(names[0], kind) for kind in ("pem", "key"))
    if not force and (certificate.exists() or key.exists()):
        existing = fingerprint_of(certificate)
        typer.echo(
            f"{certificate} is there already{f', SHA-256 {existing}' if existing else ''}: "
            "--force replaces it; then tell everybody who pinned it.",
            err=True,
        )
        raise typer.Exit(Exit.FAILED)
    # Takes long to load, and only this needs it.
    make = import_module("culture.server.net.certificates").make
    try:
        fingerprint: str = make(names, days, certificate, key)
    except ValueError as error:
        typer.echo(f"no certificate for {', '.join(names)}: {error}", err=True)
        raise typer.Exit(Exit.FAILED) from None
    typer.echo(_explained(certificate, key, fingerprint))


def _plain_port() -> int:
    """Return the configured port of the server's listener without TLS; 6667 if there is none.

    It is used in the lines for culture.yaml that are printed, so that they keep the port.
    """
    try:
        listeners = load_server().config.listen
    except ConfigError:
        return 6667
    return next((each.port for each in listeners if each.tls is None), 6667)


def _explained(certificate: Path, key: Path, fingerprint: str) -> str:
    return os.linesep.join(
        [
            f"certificate  {certificate}",
            f"key          {key}",
            f"SHA-256      {fingerprint}",
            "",
            f"In {paths.server_file()}:",
            "",
            "listen:",
            f"  - port: {_plain_port()}",
            '  - host: "0.0.0.0"',
            "    port: 6697",
            "    tls:",
            f"      certificate: {certificate}",
            f"      key: {key}",
            "",
            "A new listener needs `culture server restart`; a renewed certificate of an existing one only SIGHUP.",
        ]
    )
