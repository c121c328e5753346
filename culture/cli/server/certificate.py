"""``culture server cert``: a certificate of one's own."""

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


def of(certificate: Path) -> str | None:
    """SHA-256 of the first certificate in a file, in hexadecimal; None where there is none to be read."""
    try:
        first = certificate.read_text(encoding="ascii").partition(_END)[0] + _END
        return sha256(ssl.PEM_cert_to_DER_cert(first[first.index("-----BEGIN") :])).hexdigest()
    except (OSError, ValueError):
        return None


Names = Annotated[
    list[str] | None,
    typer.Option("--name", metavar="HOST", help="A name or address that clients use for this host; may be repeated."),
]
Days = Annotated[int, typer.Option("--days", min=1, max=36500, metavar="N", help="How long it is good for.")]
Force = Annotated[bool, typer.Option("--force", help="Replace the certificate that is there.")]


def cert(name: Names = None, days: Days = 825, force: Force = False) -> None:
    """Make a self-signed certificate and say how to use it.

    It is kept in ~/.culture/tls, its key readable for its owner alone.
    """
    names = name or [socket.gethostname()]
    certificate, key = (paths.tls_file(names[0], kind) for kind in ("pem", "key"))
    if not force and (certificate.exists() or key.exists()):
        shown = of(certificate)
        typer.echo(
            f"{certificate} is there already{f', SHA-256 {shown}' if shown else ''}: "
            "--force replaces it, and whoever pinned it must be told.",
            err=True,
        )
        raise typer.Exit(Exit.FAILED)
    # What makes certificates takes long to load, and no other command needs it.
    make = import_module("culture.server.net.certificates").make
    try:
        made: str = make(names, days, certificate, key)
    except ValueError as error:
        typer.echo(f"no certificate for {', '.join(names)}: {error}", err=True)
        raise typer.Exit(Exit.FAILED) from None
    typer.echo(_explained(certificate, key, made))


def _plain_port() -> int:
    """The port on loopback that the configuration has, so that whoever takes the printed lines over keeps it."""
    try:
        listeners = load_server().config.listen
    except ConfigError:
        return 6667
    return next((each.port for each in listeners if each.tls is None), 6667)


def _explained(certificate: Path, key: Path, shown: str) -> str:
    return os.linesep.join(
        [
            f"certificate  {certificate}",
            f"key          {key}",
            f"SHA-256      {shown}",
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
            "A new listener needs `culture server restart`; a new certificate for one that is there, only SIGHUP.",
        ]
    )
