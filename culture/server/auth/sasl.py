"""The SASL mechanisms as state machines without I/O: bytes in, the next step out.

An exchange takes the client's messages one by one and answers each with a step: ``Challenge`` (send this and wait),
``CredentialCheck`` (run this in a thread), ``Done`` or ``LoginFailed``. No message makes it raise.
"""

import base64
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, Protocol

from culture.lib.secret_compare import same_secret
from culture.protocol.names import fold
from culture.protocol.vocabulary import LoginProof
from culture.runtime import REAL, Runtime
from culture.server.auth.account_store import AccountStore
from culture.server.auth.credential_check import (
    WRONG,
    CredentialCheck,
    Done,
    LoginFailed,
    check_acting,
    check_password,
    verifier_of,
)
from culture.server.auth.password import PasswordVerifier
from culture.server.auth.sasl_framing import LONGEST_MESSAGE, LONGEST_TOKEN


class BadMessage(ValueError):
    """A SASL message of the client is not what the mechanism's RFC demands."""


class Opened(NamedTuple):
    """The client's first message in a SASL exchange (GS2): header, wanted account, and rest.

    ``authzid``: the account that the client wants to log in to, "" for its own.
    """

    header: str
    authzid: str
    rest: str

    @classmethod
    def parse(cls, data: bytes) -> "Opened":
        """Parse a client's first message in a SASL exchange, ``n,a=user,rest``; raises BadMessage."""
        parts = text(data).split(",", 2)
        if len(parts) < 3:
            raise BadMessage("no GS2 header")
        flag, authzid, rest = parts
        if flag not in ("n", "y"):
            raise BadMessage("channel binding is not offered")
        return cls(f"{flag},{authzid},", saslname(value(authzid, "a")) if authzid else "", rest)


def text(data: bytes) -> str:
    """Return a SASL message as text; raises BadMessage if it is not UTF-8 or contains NUL."""
    try:
        decoded = data.decode()
    except UnicodeDecodeError as error:
        raise BadMessage("not UTF-8") from error
    if "\0" in decoded:
        raise BadMessage("NUL in the message")
    return decoded


def value(attribute: str, name: str) -> str:
    """Return the value of an attribute ``name=value``; raises BadMessage if it has another name."""
    if not attribute.startswith(f"{name}="):
        raise BadMessage(f"expected {name}=")
    return attribute[2:]


def saslname(quoted: str) -> str:
    """Return a SCRAM name unquoted: ``=2C`` is a comma, ``=3D`` is ``=`` (RFC 5802 §5.1)."""
    if not quoted or re.search("=(?!2C|3D)", quoted):
        raise BadMessage("not a name")
    return quoted.replace("=2C", ",").replace("=3D", "=")


_NONCE_BYTES = 18
# Printable ASCII except the comma, which separates attributes.
_NONCE = re.compile(r"[\x21-\x2b\x2d-\x7e]{1,512}")


class ClientFirst(NamedTuple):
    """The client's first SCRAM message."""

    header: str
    """The GS2 header, which the client's last message must repeat."""
    authzid: str
    bare: str
    username: str
    nonce: str

    @classmethod
    def parse(cls, data: bytes) -> "ClientFirst":
        """Parse the client's first SCRAM message, ``n,,n=user,r=nonce``; raises BadMessage."""
        header, authzid, bare = Opened.parse(data)
        attributes = bare.split(",")
        if len(attributes) < 2:
            raise BadMessage("name or nonce is missing")
        # A mandatory extension (m=) would come first; this refuses it, as the RFC demands.
        username, nonce = value(attributes[0], "n"), value(attributes[1], "r")
        if not _NONCE.fullmatch(nonce):
            raise BadMessage("not a nonce")
        return cls(header, authzid, bare, saslname(username), nonce)


class ClientFinal(NamedTuple):
    """The client's last SCRAM message, with the proof."""

    binding: bytes
    nonce: str
    proof: bytes
    without_proof: str

    @classmethod
    def parse(cls, data: bytes) -> "ClientFinal":
        """Parse the client's last SCRAM message, ``c=…,r=…,p=…``; raises BadMessage."""
        without_proof, _, proof = text(data).rpartition(",")
        attributes = without_proof.split(",")
        if len(attributes) < 2:
            raise BadMessage("binding, nonce or proof is missing")
        binding, nonce = _base64(value(attributes[0], "c")), value(attributes[1], "r")
        return cls(binding, nonce, _base64(value(proof, "p")), without_proof)


def server_first(nonce: str, salt: bytes, iterations: int) -> str:
    """Return the server's first SCRAM message, from which the client computes its proof.

    ``nonce``: that of client and server together; ``salt`` and ``iterations``: those of the password's hash.
    """
    return f"r={nonce},s={base64.b64encode(salt).decode()},i={iterations}"


def server_final(signature: bytes) -> bytes:
    """Return the server's last SCRAM message: the proof that it knows the password."""
    return b"v=" + base64.b64encode(signature)


def _base64(encoded: str) -> bytes:
    try:
        return base64.b64decode(encoded, validate=True)
    except ValueError as error:
        raise BadMessage("not base64") from error


_PART = "\x01"
_SCHEME = "bearer"


class Tokens(Protocol):
    """Logs users in by tokens of an OpenID issuer."""

    @property
    def configuration(self) -> str:
        """Return the URL of the issuer's metadata, where clients read how to get a token."""

    def check(self, token: str, authzid: str) -> Done | LoginFailed:
        """Log in the user whom a token names, in a thread, and return the result.

        ``authzid``: the account that the client wants, "" for the user's own.
        """


class BearerExchange:
    """OAUTHBEARER (RFC 7628): the client sends one message with a token.

    On failure the server sends the reason as JSON.
    """

    def __init__(self, tokens: Tokens | None) -> None:
        self._tokens = tokens

    def step(self, data: bytes) -> CredentialCheck | LoginFailed:
        """Parse the client's message and return the check of its token, or the failure.

        The message is ``n,a=user,`` and ``key=value`` pairs, each begun and the last ended by the byte 0x01.
        """
        tokens = self._tokens
        if tokens is None:
            return LoginFailed("there is no issuer whose tokens are taken")
        try:
            authzid, token = _parse(data)
        except BadMessage as bad:
            return _told(LoginFailed(str(bad)), "invalid_request", tokens)

        def run() -> Done | LoginFailed:
            outcome = tokens.check(token, authzid)
            return _told(outcome, "invalid_token", tokens) if isinstance(outcome, LoginFailed) else outcome

        return CredentialCheck(run, asks_elsewhere=True)


def _told(failed: LoginFailed, status: str, tokens: Tokens) -> LoginFailed:
    """Return a failed login with JSON that tells the client the reason (RFC 7628 §3.2.2).

    ``status``: the error code of the RFC, such as ``invalid_token``; ``tokens``: knows where clients get a token.
    """
    answer = {"status": status, "openid-configuration": tokens.configuration}
    return LoginFailed(failed.reason, json.dumps(answer, separators=(",", ":")).encode())


def _parse(data: bytes) -> tuple[str, str]:
    """Return the wanted account and the token of an OAUTHBEARER message; raises BadMessage.

    The other pairs of the message, such as host and port, are ignored.
    """
    _, authzid, rest = Opened.parse(data)
    if not rest.startswith(_PART) or not rest.endswith(_PART * 2):
        raise BadMessage("not an OAUTHBEARER message")
    pairs = [pair.partition("=") for pair in rest[1:-2].split(_PART)]
    tokens = [value for key, _, value in pairs if key == "auth"]
    if len(tokens) != 1:
        raise BadMessage("no token, or several")
    scheme, _, token = tokens[0].partition(" ")
    if scheme.lower() != _SCHEME or not token:
        raise BadMessage("not a bearer token")
    return authzid, token


class SaslMechanism(StrEnum):
    """The SASL mechanisms that the server knows, best first."""

    SCRAM_SHA_256 = "SCRAM-SHA-256"
    EXTERNAL = "EXTERNAL"
    OAUTHBEARER = "OAUTHBEARER"
    PLAIN = "PLAIN"

    @property
    def longest(self) -> int:
        """Return the longest message, in characters, that a client may send in this mechanism."""
        return LONGEST_TOKEN if self is SaslMechanism.OAUTHBEARER else LONGEST_MESSAGE


@dataclass(frozen=True, slots=True)
class Challenge:
    """The step that sends ``data`` to the client and waits for its answer."""

    data: bytes = field(repr=False)


Step = Challenge | CredentialCheck | Done | LoginFailed


class Exchange(Protocol):
    """One attempt to log in, message by message; any step but a Challenge ends it."""

    def step(self, data: bytes) -> Step:
        """Handle a message of the client (``data``) and return the next step; never raises.

        The message is decoded from base64.
        """


def offered(*, private: bool, certificate: bool, tokens: bool = False) -> tuple[SaslMechanism, ...]:
    """Return the SASL mechanisms for a connection, best first.

    ``private``: nobody can read the connection; mechanisms that send a secret need this. ``certificate``: the client
    has shown one. ``tokens``: an issuer of tokens is configured.
    """
    possible = {
        SaslMechanism.SCRAM_SHA_256: True,
        SaslMechanism.EXTERNAL: certificate,
        SaslMechanism.OAUTHBEARER: tokens and private,
        SaslMechanism.PLAIN: private,
    }
    return tuple(mechanism for mechanism in SaslMechanism if possible[mechanism])


def begin(
    mechanism: SaslMechanism,
    store: AccountStore,
    certificate: str | None = None,
    tokens: Tokens | None = None,
    *,
    runtime: Runtime = REAL,
) -> Exchange:
    """Return a new exchange in this mechanism, which waits for the client's first message.

    ``store``: the accounts; ``certificate``: the fingerprint of the client's certificate; ``tokens``: the login by an
    issuer's tokens, if one is configured.
    """
    match mechanism:
        case SaslMechanism.PLAIN:
            return PlainExchange(store)
        case SaslMechanism.SCRAM_SHA_256:
            return ScramExchange(store, runtime=runtime)
        case SaslMechanism.EXTERNAL:
            return ExternalExchange(store, certificate)
        case SaslMechanism.OAUTHBEARER:
            return BearerExchange(tokens)


class PlainExchange:
    """PLAIN (RFC 4616): the client sends name and password in one message."""

    def __init__(self, store: AccountStore) -> None:
        self._store = store

    def step(self, data: bytes) -> Step:
        """Parse the client's message ``authzid NUL authcid NUL password``, and return the next step.

        That is the check of the password, or the failure if the message is wrong.
        """
        try:
            authzid, name, password = data.decode().split("\0")
        except ValueError:
            return LoginFailed("not a PLAIN message")
        if not name or not password:
            return LoginFailed("no name or no password")
        if authzid and fold(authzid) != fold(name):
            return check_acting(self._store, name, password, authzid)
        return check_password(self._store, name, password)


class ExternalExchange:
    """EXTERNAL (RFC 4422 appendix A): the TLS certificate names the account."""

    def __init__(self, store: AccountStore, certificate: str | None) -> None:
        self._store = store
        self._certificate = certificate

    def step(self, data: bytes) -> Step:
        """Log in to the account that lists the client's certificate, or return the failure.

        ``data`` names the wanted account; empty means any that lists the certificate.
        """
        account = self._store.by_certificate(self._certificate) if self._certificate else None
        try:
            requested = data.decode()
        except UnicodeDecodeError:
            return LoginFailed("not UTF-8")
        if account is None:
            return LoginFailed("no account has this certificate")
        if requested and self._store.get(requested) != account:
            return LoginFailed("the certificate is another account's")
        return Done(account.name, LoginProof.CERTIFICATE)


class ScramExchange:
    """SCRAM-SHA-256 (RFC 7677), without channel binding: the password never crosses the wire."""

    def __init__(self, store: AccountStore, *, runtime: Runtime = REAL) -> None:
        self._store = store
        self._runtime = runtime
        self._next: Callable[[bytes], Step] = self._first

    def step(self, data: bytes) -> Step:
        """Handle the client's next SCRAM message, and return the next step or the failure."""
        handle, self._next = self._next, _over
        try:
            return handle(data)
        except BadMessage as bad:
            return LoginFailed(str(bad))

    def _first(self, data: bytes) -> Step:
        client = ClientFirst.parse(data)
        if client.authzid and fold(client.authzid) != fold(client.username):
            return LoginFailed("nobody may act as another account")
        verifier = verifier_of(self._store, client.username)
        nonce = client.nonce + self._runtime.token_urlsafe(_NONCE_BYTES)
        server = server_first(nonce, verifier.salt, verifier.iterations)
        self._next = lambda answer: self._final(answer, client, verifier, server, nonce)
        return Challenge(server.encode())

    def _final(self, data: bytes, client: ClientFirst, verifier: PasswordVerifier, server: str, nonce: str) -> Step:
        answer = ClientFinal.parse(data)
        exchange = f"{client.bare},{server},{answer.without_proof}".encode()
        proved = verifier.proved_by(answer.proof, exchange)
        same_exchange = answer.binding == client.header.encode() and same_secret(answer.nonce, nonce)
        account = self._store.active(client.username)
        if not (proved and same_exchange and account):
            return WRONG
        name = account.name
        self._next = lambda empty: LoginFailed("nothing was left to say") if empty else Done(name, LoginProof.SCRAM)
        return Challenge(server_final(verifier.signature(exchange)))


def _over(data: bytes) -> Step:
    return LoginFailed("the exchange is over")
