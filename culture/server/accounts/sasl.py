"""The SASL mechanisms as state machines: bytes in, the next step out, no socket and no waiting."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from culture.config.compare import same_secret
from culture.protocol.names import fold
from culture.protocol.vocabulary import LoginProof
from culture.server.accounts import scram
from culture.server.accounts.bearer import Bearer, Tokens
from culture.server.accounts.framing import LONGEST_MESSAGE, LONGEST_TOKEN
from culture.server.accounts.gs2 import BadMessage
from culture.server.accounts.login import WRONG, Check, Done, Failed, check_acting, check_password, verifier_of
from culture.server.accounts.store import AccountStore
from culture.server.accounts.verifier import Verifier


class Mechanism(StrEnum):
    """The mechanisms, best first."""

    SCRAM_SHA_256 = "SCRAM-SHA-256"
    EXTERNAL = "EXTERNAL"
    OAUTHBEARER = "OAUTHBEARER"
    PLAIN = "PLAIN"

    @property
    def longest(self) -> int:
        """How many characters a message of it may have."""
        return LONGEST_TOKEN if self is Mechanism.OAUTHBEARER else LONGEST_MESSAGE


@dataclass(frozen=True, slots=True)
class Challenge:
    """Send this and wait for the client's answer."""

    data: bytes = field(repr=False)


Step = Challenge | Check | Done | Failed


class Exchange(Protocol):
    """One attempt to log in; it is over with anything but a Challenge."""

    def step(self, data: bytes) -> Step:
        """Take the client's message. Never raises, whatever the message is."""


def offered(*, private: bool, certificate: bool, tokens: bool = False) -> tuple[Mechanism, ...]:
    """What a connection may use: what shows a secret only where nobody can listen (TLS or loopback)."""
    possible = {
        Mechanism.SCRAM_SHA_256: True,
        Mechanism.EXTERNAL: certificate,
        Mechanism.OAUTHBEARER: tokens and private,
        Mechanism.PLAIN: private,
    }
    return tuple(mechanism for mechanism in Mechanism if possible[mechanism])


def begin(
    mechanism: Mechanism, store: AccountStore, certificate: str | None = None, tokens: Tokens | None = None
) -> Exchange:
    """Begin an exchange; in all of them the client speaks first."""
    match mechanism:
        case Mechanism.PLAIN:
            return Plain(store)
        case Mechanism.SCRAM_SHA_256:
            return Scram(store)
        case Mechanism.EXTERNAL:
            return External(store, certificate)
        case Mechanism.OAUTHBEARER:
            return Bearer(tokens)


class Plain:
    """RFC 4616: name and password in one message."""

    def __init__(self, store: AccountStore) -> None:
        self._store = store

    def step(self, data: bytes) -> Step:
        """Read ``authzid NUL authcid NUL password``."""
        try:
            authzid, name, password = data.decode().split("\0")
        except ValueError:
            return Failed("not a PLAIN message")
        if not name or not password:
            return Failed("no name or no password")
        if authzid and fold(authzid) != fold(name):
            return check_acting(self._store, name, password, authzid)
        return check_password(self._store, name, password)


class External:
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
            return Failed("not UTF-8")
        if account is None:
            return Failed("no account has this certificate")
        if wanted and self._store.get(wanted) != account:
            return Failed("the certificate is another account's")
        return Done(account.name, LoginProof.CERTIFICATE)


class Scram:
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
            return Failed(str(bad))

    def _first(self, data: bytes) -> Step:
        client = scram.ClientFirst.parse(data)
        if client.authzid and fold(client.authzid) != fold(client.username):
            return Failed("nobody may act as another account")
        verifier = verifier_of(self._store, client.username)
        nonce = client.nonce + self._make_nonce()
        server = scram.server_first(nonce, verifier.salt, verifier.iterations)
        self._next = lambda answer: self._final(answer, client, verifier, server, nonce)
        return Challenge(server.encode())

    def _final(self, data: bytes, client: scram.ClientFirst, verifier: Verifier, server: str, nonce: str) -> Step:
        answer = scram.ClientFinal.parse(data)
        exchange = f"{client.bare},{server},{answer.without_proof}".encode()
        proved = verifier.proved_by(answer.proof, exchange)
        same_exchange = answer.binding == client.header.encode() and same_secret(answer.nonce, nonce)
        account = self._store.active(client.username)
        if not (proved and same_exchange and account):
            return WRONG
        name = account.name
        self._next = lambda empty: Failed("nothing was left to say") if empty else Done(name, LoginProof.SCRAM)
        return Challenge(scram.server_final(verifier.signature(exchange)))


def _over(data: bytes) -> Step:
    return Failed("the exchange is over")
