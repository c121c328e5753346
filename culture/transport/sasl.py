"""SASL, the client's side: PLAIN, EXTERNAL, SCRAM-SHA-256, and the choice between them."""

import base64
import hashlib
import hmac
from collections.abc import Collection
from typing import Protocol

from culture.runtime import REAL, Runtime
from culture.transport.types import ClientIdentity, Hopeless

PIECE = 400
_ITERATIONS = 10_000_000


class ClientMechanism(Protocol):
    """One SASL mechanism: computes the client's responses to the challenges of the server."""

    name: str

    def answer(self, challenge: bytes) -> bytes:
        """Return the client's response to a challenge of the server, both without base64."""


class PlainLogin:
    """SASL PLAIN (RFC 4616): sends the account and its password or token."""

    name = "PLAIN"

    def __init__(self, account: str, secret: str, on_behalf: str | None = None) -> None:
        self._response = f"{on_behalf or ''}\0{account}\0{secret}".encode()

    def answer(self, challenge: bytes) -> bytes:
        """Return account to log in to, account that logs in and its secret; ``challenge`` is empty."""
        return self._response


class ExternalLogin:
    """SASL EXTERNAL (RFC 4422, appendix A): the client certificate proves the identity."""

    name = "EXTERNAL"

    def __init__(self, account: str) -> None:
        self._response = account.encode()

    def answer(self, challenge: bytes) -> bytes:
        """Return the name of the account, which is all that EXTERNAL sends."""
        return self._response


class ScramLogin:
    """SASL SCRAM-SHA-256 (RFC 5802): proves that we know the password without sending it."""

    name = "SCRAM-SHA-256"

    def __init__(self, account: str, secret: str, nonce: str | None = None, *, runtime: Runtime = REAL) -> None:
        self._nonce = nonce or runtime.token_urlsafe(24)
        name = account.replace("=", "=3D").replace(",", "=2C")
        self._bare = f"n={name},r={self._nonce}"
        self._secret = secret
        self._signature = b""
        self._step = 0

    def answer(self, challenge: bytes) -> bytes:
        """Return the client's next message: the first one, then the proof, then an empty one.

        The empty one, which ends the login, is returned only after the server's own proof was checked. ``challenge``:
        the server's message.
        """
        self._step += 1
        if self._step == 1:
            return f"n,,{self._bare}".encode()
        if self._step == 2:
            return self._proof(challenge.decode())
        if dict(_attributes(challenge.decode())).get("v") != base64.b64encode(self._signature).decode():
            raise Hopeless("the server does not know the password it asks for")
        return b""

    def _proof(self, first: str) -> bytes:
        fields = dict(_attributes(first))
        nonce, rounds = fields.get("r", ""), fields.get("i", "")
        if not nonce.startswith(self._nonce) or not rounds.isdigit() or not 0 < int(rounds) <= _ITERATIONS:
            raise Hopeless("the server's side of SCRAM makes no sense")
        salted = hashlib.pbkdf2_hmac("sha256", self._secret.encode(), base64.b64decode(fields["s"]), int(rounds))
        final = f"c=biws,r={nonce}"
        message = f"{self._bare},{first},{final}".encode()
        client = hmac.digest(salted, b"Client Key", "sha256")
        signature = hmac.digest(hashlib.sha256(client).digest(), message, "sha256")
        self._signature = hmac.digest(hmac.digest(salted, b"Server Key", "sha256"), message, "sha256")
        proof = bytes(one ^ other for one, other in zip(client, signature, strict=True))
        return f"{final},p={base64.b64encode(proof).decode()}".encode()


def choose(
    identity: ClientIdentity, offered: Collection[str], private: bool, certificate: bool, *, runtime: Runtime = REAL
) -> ClientMechanism:
    """Return the SASL mechanism to log in with; ``Hopeless`` if none can be used.

    ``offered``: names of the server's mechanisms, empty if it lists none. ``private``: nobody else can read the
    connection. ``certificate``: we have shown a client certificate.
    """
    account = identity.account or identity.nick
    if identity.on_behalf is not None:
        return _choose_on_behalf(identity, account, offered, private)
    if certificate and (not offered or ExternalLogin.name in offered):
        return ExternalLogin(account)
    if identity.secret is None:
        raise Hopeless(f"there is no password for the account {account}")
    if private and (not offered or PlainLogin.name in offered):
        return PlainLogin(account, identity.secret)
    if ScramLogin.name in offered:
        return ScramLogin(account, identity.secret, runtime=runtime)
    if not private:
        raise Hopeless("the password is not sent where others could read it: use TLS")
    raise Hopeless(f"no way to log in that we know: the server has {', '.join(sorted(offered))}")


def _choose_on_behalf(identity: ClientIdentity, account: str, offered: Collection[str], private: bool) -> PlainLogin:
    """Return a login by a program's account for the person whom ``identity`` names.

    ``account``: the program's, whose secret is sent. The login is always PLAIN, which alone can name both accounts;
    ``Hopeless`` is raised if it cannot be used: not ``offered`` by the server, or the connection not ``private``.
    """
    if identity.secret is None:
        raise Hopeless(f"there is no token for the account {account}, which acts for {identity.on_behalf}")
    if not private:
        raise Hopeless("nobody logs in for somebody else where others could read it: use TLS")
    if offered and PlainLogin.name not in offered:
        raise Hopeless(f"this server lets nobody log in for {identity.on_behalf}: it has no SASL PLAIN")
    return PlainLogin(account, identity.secret, identity.on_behalf)


def pieces(data: bytes) -> list[str]:
    """Return a response in base64, cut into the parameters of its AUTHENTICATE lines."""
    encoded = base64.b64encode(data).decode()
    parts = [encoded[start : start + PIECE] for start in range(0, len(encoded), PIECE)]
    return parts if parts and len(parts[-1]) < PIECE else [*parts, "+"]


def _attributes(text: str) -> list[tuple[str, str]]:
    return [(part[:1], part[2:]) for part in text.split(",")]
