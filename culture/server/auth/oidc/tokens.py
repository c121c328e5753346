"""Logs in the bearer of an issuer's token (JWT): from the token to an account of this server.

A signed JWT in compact form (RFC 7515 §7.1, RFC 7519) is verified with PyJWT. Then its claims are checked, and mapped
to an account name and class.

A token names its key (``kid``) and its algorithm. The key is looked up first, and a key is for one algorithm: PyJWT is
given the key together with that algorithm, so a token cannot choose another (none, or HMAC with the public key).
"""

import base64
import logging
from dataclasses import dataclass
from typing import NamedTuple

from jwt import PyJWK, PyJWS
from jwt.exceptions import PyJWTError

from culture.config.oidc import Oidc
from culture.protocol.vocabulary import LoginProof, UserClass
from culture.runtime import REAL, Runtime
from culture.server.auth.account_store import AccountStore
from culture.server.auth.accounts import Account, AccountRefused, AccountsError, NameTaken, Revoked, Subject
from culture.server.auth.credential_check import Done, LoginFailed
from culture.server.auth.oidc.issuer import Jwks, json_object
from culture.server.shapes import Json, UnreadableJson, number

LONGEST = 8192
_LONGEST_KID = 256
# RFC 8725 §3.11: other kinds of token of the same issuer, such as those for logging out, mean something else.
_TYPES = frozenset({"jwt", "at+jwt"})
_JWS = PyJWS(options={"enforce_minimum_key_length": True})
_LONGEST_SUBJECT = 255
log = logging.getLogger(__name__)


class Rejected(Exception):
    """The token is not accepted here; the exception's text says why without quoting the token."""


@dataclass(frozen=True, slots=True)
class JwtHeader:
    """The header of a token that is not verified yet: what it says about its signature."""

    algorithm: str
    kid: str


def read_header(token: str) -> JwtHeader:
    """Return the header of a token ``header.payload.signature``; raises Rejected if it is unfit."""
    if len(token) > LONGEST:
        raise Rejected("it is too long")
    if token.count(".") != 2:
        raise Rejected("it is no signed JWT")
    if "=" in token:  # PyJWT takes padding; there is one way to write a token
        raise Rejected("it is garbled")
    try:
        _JWS.get_unverified_header(token.encode("ascii"))
        # Read again, strictly: PyJWT takes a key that is there twice, and other encodings than UTF-8.
        header = json_object(base64.urlsafe_b64decode(token.partition(".")[0] + "==="))
    except (PyJWTError, ValueError) as error:
        raise Rejected("it is garbled") from error
    algorithm, kid, kind = header.get("alg"), header.get("kid"), header.get("typ", "JWT")
    if "crit" in header:
        raise Rejected("it demands extensions that nobody here knows")
    if not isinstance(kind, str) or kind.lower().removeprefix("application/") not in _TYPES:
        raise Rejected("it is another kind of token")
    if not isinstance(algorithm, str):
        raise Rejected("it has no algorithm")
    if not isinstance(kid, str) or not 0 < len(kid) <= _LONGEST_KID:
        raise Rejected("it does not name its key")
    return JwtHeader(algorithm, kid)


def verified_claims(token: str, key: PyJWK) -> Json:
    """Return the claims of a token that this key has signed; raises Rejected for any other."""
    try:
        payload = _JWS.decode(token, key, algorithms=[key.algorithm_name])
    except (PyJWTError, ValueError) as error:
        raise Rejected("its signature is wrong") from error
    try:
        return json_object(payload)
    except ValueError as error:
        raise Rejected("its claims are garbled") from error


class Bearing(NamedTuple):
    """The user whom a valid token names: the issuer's id of the user, name here, and class."""

    subject: Subject
    name: str
    kind: UserClass


def judged(claims: Json, settings: Oidc, now: float) -> Bearing:
    """Return the user whom a token's claims name: issuer's id, name here, and class.

    ``settings``: the issuer, and what its claims mean. Raises Rejected unless the token is valid at ``now`` (seconds
    since 1970) and was issued for this server.
    """
    if claims.get("iss") != settings.issuer:
        raise Rejected("it is another issuer's")
    if settings.audience not in _several(claims.get("aud")):
        raise Rejected("it is for somebody else (aud)")
    if "cnf" in claims:  # RFC 7800: whoever shows it would have to prove more than that they have it
        raise Rejected("it is bound to a key, which OAUTHBEARER cannot show")
    _check_time(claims, settings.clock_skew, now)
    subject = claims.get("sub")
    if not isinstance(subject, str) or not 0 < len(subject) <= _LONGEST_SUBJECT:
        raise Rejected("it does not say whom it is about (sub)")
    name = claims.get(settings.account_claim)
    if not isinstance(name, str):
        raise Rejected(f"it has no claim {settings.account_claim} that could name an account")
    return Bearing(Subject(settings.issuer, subject), name, _class(claims, settings))


def _check_time(claims: Json, skew: float, now: float) -> None:
    if _time(claims, "exp") <= now - skew:
        raise Rejected("it has expired")
    if "nbf" in claims and _time(claims, "nbf") > now + skew:
        raise Rejected("it is not valid yet")
    if "iat" in claims and _time(claims, "iat") > now + skew:
        raise Rejected("it was issued in the future: compare the clocks")


def _time(claims: Json, name: str) -> float:
    try:
        return number(claims.get(name))
    except UnreadableJson as error:
        raise Rejected(f"{name} is no time") from error


def _class(claims: Json, settings: Oidc) -> UserClass:
    """Return the user class that the token's class claim stands for, by the settings.

    If several classes match, a class of programs wins over human.
    """
    if settings.class_claim is None:
        return UserClass.UNKNOWN
    texts, classes = _several(claims.get(settings.class_claim)), settings.classes
    for kind, values in (
        (UserClass.AGENT, classes.agent),
        (UserClass.BOT, classes.bot),
        (UserClass.HUMAN, classes.human),
    ):
        if not texts.isdisjoint(values):
            return kind
    return UserClass.UNKNOWN


def _several(value: object) -> set[str]:
    """Return a claim's text or list of texts as a set; any other value as an empty set."""
    if isinstance(value, str):
        return {value}
    return {each for each in value if isinstance(each, str)} if isinstance(value, list) else set()


class IssuedTokens:
    """Logs users in by tokens of the configured issuer; a new user gets an account."""

    def __init__(self, settings: Oidc, accounts: AccountStore, *, runtime: Runtime = REAL) -> None:
        self._settings = settings
        self._accounts = accounts
        self._clock = runtime.now
        self._keys = Jwks(settings, runtime=runtime)

    @property
    def configuration(self) -> str:
        """Return the URL of the issuer's metadata, where clients read how to get a token."""
        return self._settings.configuration

    def check(self, token: str, authzid: str) -> Done | LoginFailed:
        """Log in the user whom a token names, and return the result of the login.

        ``authzid``: the account that the client wants, "" for the user's own. Waits for issuer and disk, so call it in
        a thread.
        """
        try:
            account = self._account(self._bearing(token))
            if authzid and self._accounts.bare(authzid) != self._accounts.bare(account.name):
                raise Rejected("nobody may act as another account")
        except Rejected as rejected:
            log.info("a token was refused: %s", rejected)
            return LoginFailed(str(rejected))
        except AccountsError as error:
            log.error("%s", error)
            return LoginFailed("the account could not be written")
        return Done(account.name, LoginProof.OIDC)

    def _bearing(self, token: str) -> Bearing:
        header = read_header(token)
        if header.algorithm not in self._settings.algorithms:
            raise Rejected("it is signed by an algorithm that is not allowed")
        key = self._keys.key(header.kid)
        if key is None:
            raise Rejected("its key is unknown")
        return judged(verified_claims(token, key), self._settings, self._clock())

    def _account(self, bearing: Bearing) -> Account:
        subject, name, kind = bearing
        try:
            return self._accounts.vouched(subject, name, kind)
        except NameTaken as taken:
            raise Rejected(f"{taken}, and its bearer is somebody else") from taken
        except Revoked as revoked:
            raise Rejected(str(revoked)) from revoked
        except AccountRefused as refused:
            raise Rejected(f"its claim {self._settings.account_claim} is no name that an account can have") from refused
