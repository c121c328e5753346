"""A server with TLS and accounts, set up as a person sets it up: with our own commands."""

import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from culture.config.listen_policy import Tls
from culture.config.model import Listen
from culture.server.ircd import IRCd
from tests.support.servers import serving

PASSWORD = "correct-horse-7"
_MAKE = ("openssl", "req", "-x509", "-newkey", "ed25519", "-nodes", "-days", "3650", "-subj", "/CN=ori")


class Household(NamedTuple):
    """What was made before the first start: accounts, a certificate of the server, and one of ori's with its key."""

    accounts: Path
    tls: Tls
    fingerprint: str
    mine: Path

    @property
    def pinned(self) -> str:
        """The server's fingerprint in pairs with colons, as irssi wants it."""
        return re.sub("(..)(?=.)", r"\1:", self.fingerprint.upper())


class Secure(NamedTuple):
    """A running server, and what whoever connects has to know."""

    ircd: IRCd
    made: Household

    @property
    def port(self) -> int:
        """The port with TLS; the other one is without."""
        return self.ircd.ports[1]


def household(folder: Path) -> Household:
    """The account ori, who may log in by password and by certificate."""
    home = folder / "culture-home"
    home.mkdir(mode=0o700)
    (home / "culture.yaml").write_text("name: spark\n")
    said = _culture(home, "server", "cert", "--name", "127.0.0.1")
    mine, fingerprint = _certificate(folder)
    _culture(home, "account", "add", "ori", "--certificate", fingerprint, "--password-stdin", typed=PASSWORD)
    tls = Tls(certificate=Path(_told(said, "certificate")), key=Path(_told(said, "key")))
    return Household(home / "accounts.json", tls, _told(said, "SHA-256"), mine)


@asynccontextmanager
async def secured(folder: Path, made: Household) -> AsyncIterator[Secure]:
    """A server on loopback, one port without TLS and one with it."""
    listen = (Listen(port=0), Listen(port=0, tls=made.tls))
    async with serving(folder, listen=listen, accounts_file=made.accounts) as ircd:
        yield Secure(ircd, made)


def _culture(home: Path, *words: str, typed: str = "") -> str:
    environment = {"PATH": os.defpath, "HOME": str(home), "CULTURE_HOME": str(home)}
    return _run(sys.executable, "-m", "culture", *words, typed=f"{typed}\n", environment=environment)


def _run(*command: str, typed: str = "", environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(command, env=environment, input=typed, capture_output=True, text=True, timeout=50)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _told(said: str, what: str) -> str:
    found = re.search(rf"^{what} +(\S+)$", said, re.MULTILINE)
    assert found is not None, said
    return found[1]


def _certificate(folder: Path) -> tuple[Path, str]:
    """A certificate and its key in one file, made as docs/clients/people.md says, and its fingerprint."""
    file = folder / "ori.pem"
    _run(*_MAKE, "-keyout", str(file), "-out", str(folder / "certificate.pem"))
    file.write_text(file.read_text() + (folder / "certificate.pem").read_text())
    return file, _run("openssl", "x509", "-in", str(file), "-noout", "-fingerprint", "-sha256").partition("=")[
        2
    ].strip()
