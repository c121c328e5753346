"""The SASL mechanisms as state machines: bytes in, the next step out, no socket and no waiting."""

import base64
import json
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, Protocol

from culture.config.secret_compare import same_secret
from culture.protocol.names import fold
from culture.protocol.vocabulary import LoginProof
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
    """The client's message is not what the RFC asks for."""


class Opened(NamedTuple):
    """A client's first message: its header, whom it wants to act as ("" for itself), and the rest."""

    header: str
    authzid: str
    rest: str

    @classmethod
    def parse(cls, data: bytes) -> "Opened":
        """Read ``n,a=user,rest``."""
        parts = text(data).split(",", 2)
        if len(parts) < 3:
            raise BadMessage("no GS2 header")
        flag, authzid, rest = parts
        if flag not in ("n", "y"):
            raise BadMessage("channel binding is not offered")
        return cls(f"{flag},{authzid},", saslname(value(authzid, "a")) if authzid else "", rest)


def text(data: bytes) -> str:
    """The message as text."""
    try:
        decoded = data.decode()
    except UnicodeDecodeError as error:
        raise BadMessage("not UTF-8") from error
    if "\0" in decoded:
        raise BadMessage("NUL in the message")
    return decoded


def value(attribute: str, name: str) -> str:
    """What ``name=value`` says."""
    if not attribute.startswith(f"{name}="):
        raise BadMessage(f"expected {name}=")
    return attribute[2:]


def saslname(quoted: str) -> str:
    """``=2C`` is a comma and ``=3D`` an equals sign; no other ``=`` may be there (RFC 5802 §5.1)."""
    if not quoted or re.search("=(?!2C|3D)", quoted):
        raise BadMessage("not a name")
    return quoted.replace("=2C", ",").replace("=3D", "=")


# Printable ASCII except the comma, which parts the attributes.
_NONCE = re.compile(r"[\x21-\x2b\x2d-\x7e]{1,512}")


class ClientFirst(NamedTuple):
    """Who wants to log in."""

    header: str
    """The GS2 header, which the client must repeat in its last message."""
    authzid: str
    bare: str
    username: str
    nonce: str

    @classmethod
    def parse(cls, data: bytes) -> "ClientFirst":
        """Read ``n,,n=user,r=nonce``."""
        header, authzid, bare = Opened.parse(data)
        attributes = bare.split(",")
        if len(attributes) < 2:
            raise BadMessage("name or nonce is missing")
        # A mandatory extension (m=) would come first, and is refused by this, as it has to be.
        username, nonce = value(attributes[0], "n"), value(attributes[1], "r")
        if not _NONCE.fullmatch(nonce):
            raise BadMessage("not a nonce")
        return cls(header, authzid, bare, saslname(username), nonce)


class ClientFinal(NamedTuple):
    """The proof."""

    binding: bytes
    nonce: str
    proof: bytes
    without_proof: str

    @classmethod
    def parse(cls, data: bytes) -> "ClientFinal":
        """Read ``c=…,r=…,p=…``."""
        without_proof, _, proof = text(data).rpartition(",")
        attributes = without_proof.split(",")
        if len(attributes) < 2:
            raise BadMessage("binding, nonce or proof is missing")
        binding, nonce = _base64(value(attributes[0], "c")), value(attributes[1], "r")
        return cls(binding, nonce, _base64(value(proof, "p")), without_proof)


def server_first(nonce: str, salt: bytes, iterations: int) -> str:
    """What the client needs to make its proof."""
    return f"r={nonce},s={base64.b64encode(salt).decode()},i={iterations}"


def server_final(signature: bytes) -> bytes:
    """Our proof that we know the password as well."""
    return b"v=" + base64.b64encode(signature)


def _base64(encoded: str) -> bytes:
    try:
        return base64.b64decode(encoded, validate=True)
    except ValueError as error:
        raise BadMessage("not base64") from error


_PART = "\x01"
_SCHEME = "bearer"


class Tokens(Protocol):
    """Knows what a token is worth."""

    @property
    def configuration(self) -> str:
        """Where clients read how to get a token."""

    def check(self, token: str, authzid: str) -> Done | LoginFailed:
        """Whose token it is, in a thread; ``authzid`` is whom the client wants to be, "" for whoever it is."""


class BearerExchange:
    """One message with the token; who fails is told why in JSON before."""

    def __init__(self, tokens: Tokens | None) -> None:
        self._tokens = tokens

    def step(self, data: bytes) -> CredentialCheck | LoginFailed:
        """Read ``n,a=user,`` and behind it ``key=value`` pairs, each begun and the last ended with 0x01."""
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
    """RFC 7628 §3.2.2"""
    said = {"status": status, "openid-configuration": tokens.configuration}
    return LoginFailed(failed.reason, json.dumps(said, separators=(",", ":")).encode())


def _parse(data: bytes) -> tuple[str, str]:
    """Whom the client wants to be, and its token; host, port and what else it may say change nothing."""
    _, authzid, rest = Opened.parse(data)
    if not rest.startswith(_PART) or not rest.endswith(_PART * 2):
        raise BadMessage("not an OAUTHBEARER message")
    pairs = [pair.partition("=") for pair in rest[1:-2].split(_PART)]
    found = [value for key, _, value in pairs if key == "auth"]
    if len(found) != 1:
        raise BadMessage("no token, or several")
    scheme, _, token = found[0].partition(" ")
    if scheme.lower() != _SCHEME or not token:
        raise BadMessage("not a bearer token")
    return authzid, token


class SaslMechanism(StrEnum):
    """The mechanisms, best first."""

    SCRAM_SHA_256 = "SCRAM-SHA-256"
    EXTERNAL = "EXTERNAL"
    OAUTHBEARER = "OAUTHBEARER"
    PLAIN = "PLAIN"

    @property
    def longest(self) -> int:
        """How many characters a message of it may have."""
        return LONGEST_TOKEN if self is SaslMechanism.OAUTHBEARER else LONGEST_MESSAGE


@dataclass(frozen=True, slots=True)
class Challenge:
    """Send this and wait for the client's answer."""

    data: bytes = field(repr=False)


Step = Challenge | CredentialCheck | Done | LoginFailed


class Exchange(Protocol):
    """One attempt to log in; it is over with anything but a Challenge."""

    def step(self, data: bytes) -> Step:
        """Take the client's message. Never raises, whatever the message is."""


def offered(*, private: bool, certificate: bool, tokens: bool = False) -> tuple[SaslMechanism, ...]:
    """What a connection may use: what shows a secret only where nobody can listen (TLS or loopback)."""
    possible = {
        SaslMechanism.SCRAM_SHA_256: True,
        SaslMechanism.EXTERNAL: certificate,
        SaslMechanism.OAUTHBEARER: tokens and private,
        SaslMechanism.PLAIN: private,
    }
    return tuple(mechanism for mechanism in SaslMechanism if possible[mechanism])


def begin(
    mechanism: SaslMechanism, store: AccountStore, certificate: str | None = None, tokens: Tokens | None = None
) -> Exchange:
    """Begin an exchange; in all of them the client speaks first."""
    match mechanism:
        case SaslMechanism.PLAIN:
            return PlainExchange(store)
        case SaslMechanism.SCRAM_SHA_256:
            return ScramExchange(store)
        case SaslMechanism.EXTERNAL:
            return ExternalExchange(store, certificate)
        case SaslMechanism.OAUTHBEARER:
            return BearerExchange(tokens)


class PlainExchange:
    """RFC 4616: name and password in one message."""

    def __init__(self, store: AccountStore) -> None:
        self._store = store

    def step(self, data: bytes) -> Step:
        """Read ``authzid NUL authcid NUL password``."""
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
    """RFC 4422 appendix A: the certificate of the connection says who it is."""

    def __init__(self, store: AccountStore, certificate: str | None) -> None:
        self._store = store
        self._certificate = certificate

    def step(self, data: bytes) -> Step:
        """Read the account that the client means; empty is the certificate's own."""
        account = self._store.by_certificate(self._certificate) if self._certificate else None
        try:
            wanted = data.decode()
        except UnicodeDecodeError:
            return LoginFailed("not UTF-8")
        if account is None:
            return LoginFailed("no account has this certificate")
        if wanted and self._store.get(wanted) != account:
            return LoginFailed("the certificate is another account's")
        return Done(account.name, LoginProof.CERTIFICATE)


class ScramExchange:
    """RFC 5802 with SHA-256 (RFC 7677), without channel binding: the password never crosses the wire."""

    def __init__(self, store: AccountStore, nonce: Callable[[], str] = lambda: secrets.token_urlsafe(18)) -> None:
        self._store = store
        self._make_nonce = nonce
        self._next: Callable[[bytes], Step] = self._first

    def step(self, data: bytes) -> Step:
        """Take the next message of the client."""
        now, self._next = self._next, _over
        try:
            return now(data)
        except BadMessage as bad:
            return LoginFailed(str(bad))

    def _first(self, data: bytes) -> Step:
        client = ClientFirst.parse(data)
        if client.authzid and fold(client.authzid) != fold(client.username):
            return LoginFailed("nobody may act as another account")
        verifier = verifier_of(self._store, client.username)
        nonce = client.nonce + self._make_nonce()
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
