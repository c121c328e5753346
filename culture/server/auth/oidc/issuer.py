"""The issuer: asks it over HTTP, reads its answers strictly, and holds its keys (RFC 7517).

The keys are fetched again when they are old or a token names a new one.

PyJWT has a client for this as well. It follows redirections to any address, waits for whoever asks first, and asks the
issuer for every token that names an unknown key: here the address must be trusted, who has a key never waits, and keys
that are known stay good for a day while the issuer is down.
"""

import json
import logging
import ssl
from collections.abc import Mapping
from http.client import HTTPException
from typing import NamedTuple, NoReturn

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from jwt import PyJWK
from jwt.exceptions import PyJWTError

from culture.config.oidc import Oidc, trusted_address
from culture.config.peer_uid import check_peer
from culture.lib.http import HttpAccess, HttpRequest
from culture.lib.ssrf_guard import HttpTarget, TargetRefused
from culture.runtime import REAL, Runtime
from culture.server.shapes import Json, items, mapping, text

log = logging.getLogger(__name__)

PAUSE = 30.0
"""Between two questions to the issuer: tokens that name keys at random must not make us bother it."""

LONGEST = 86400.0
"""How long keys are good while the issuer cannot be asked whether they still are."""


_MOST_KEYS = 100
_RSA_BITS = range(2048, 8192 + 1)
_ALGORITHMS = {("RSA", None): "RS256", ("EC", "P-256"): "ES256", ("OKP", "Ed25519"): "EdDSA"}
"""The one algorithm that a key of this type and curve is for: a token cannot choose another."""
_PUBLIC = ("kty", "crv", "n", "e", "x", "y")
_MOST_BYTES = 256 << 10
_SETTING = "oidc.user: {user} in culture.yaml"


def read_keys(document: Json) -> Mapping[str, PyJWK]:
    """Return the keys of a JSON Web Key Set by their ids, without those of unsupported kinds.

    Raises ValueError if the document is no key set.
    """
    keys: dict[str, PyJWK] = {}
    for item in items(document.get("keys"))[:_MOST_KEYS]:
        try:
            kid, key = _key(mapping(item))
        except (
            ValueError,
            KeyError,
            PyJWTError,
            UnsupportedAlgorithm,
        ):  # RFC 7517 §5: pass over what is not understood
            continue
        keys.setdefault(kid, key)
    return keys


def _key(item: Json) -> tuple[str, PyJWK]:
    if item.get("use", "sig") != "sig" or "verify" not in items(item.get("key_ops", ["verify"])):
        raise ValueError("not for signatures")
    # The private parts of a key, should an issuer publish them, are none of our business.
    public = {name: text(item[name]) for name in _PUBLIC if name in item}
    algorithm = _ALGORITHMS[public["kty"], public.get("crv")]
    if item.get("alg", algorithm) != algorithm:
        raise ValueError("for another algorithm")
    key = PyJWK(public, algorithm)
    if isinstance(key.key, RSAPublicKey) and key.key.key_size not in _RSA_BITS:
        raise ValueError("too short or too long")
    return text(item["kid"]), key


class _StoredKeys(NamedTuple):
    keys: Mapping[str, PyJWK]
    since: float


class Jwks:
    """The issuer's keys by their ids, fetched when they are needed; safe in several threads."""

    def __init__(self, settings: Oidc, *, runtime: Runtime = REAL) -> None:
        self._settings = settings
        self._runtime = runtime
        self._clock = runtime.now
        self._turn = runtime.lock()
        self._held = _StoredKeys({}, float("-inf"))
        self._asked = float("-inf")

    def key(self, kid: str) -> PyJWK | None:
        """Return the issuer's key with this id, after fetching the keys if they are old or lack it.

        None if the issuer has no such key, or cannot be reached and no recent copy has it.
        """
        known = self._known(kid)
        # Whoever has a key does not wait for somebody else's question.
        if not (known and self._is_fresh()) and self._turn.acquire(blocking=known is None):
            try:
                self._look(kid)
            finally:
                self._turn.release()
        return self._known(kid)

    def _known(self, kid: str) -> PyJWK | None:
        keys, since = self._held
        return keys.get(kid) if self._clock() - since <= LONGEST else None

    def _is_fresh(self) -> bool:
        return 0 <= self._clock() - self._held.since < self._settings.refresh

    def _look(self, kid: str) -> None:
        """Fetch the issuer's keys, unless ``kid`` is a fresh one or the last fetch was a moment ago."""
        now = self._clock()
        if (self._known(kid) and self._is_fresh()) or 0 <= now - self._asked < PAUSE:
            return
        self._asked = now
        try:
            self._held = _StoredKeys(self._ask(), now)
        except IssuerUnreachable as error:
            log.warning("the keys of %s could not be read: %s", self._settings.issuer, error)

    def _ask(self) -> Mapping[str, PyJWK]:
        end = self._runtime.monotonic() + self._settings.timeout
        url = self._settings.jwks_url or self._discovered(end)
        try:
            keys = read_keys(fetch(url, end, self._settings.user, runtime=self._runtime))
        except ValueError as error:
            raise IssuerUnreachable(f"{url}: the answer is no set of keys") from error
        if not keys:
            log.warning("%s has no key that is of use: RSA from 2048 bits, P-256 or Ed25519, with a kid", url)
        return keys

    def _discovered(self, end: float) -> str:
        """Return the URL of the issuer's keys, which is read from the issuer's metadata.

        ``end``: deadline by ``runtime.monotonic()``. Raises IssuerUnreachable if the metadata name another issuer or no
        trustworthy URL (OpenID Connect Discovery 1.0 §4.3).
        """
        document = fetch(self._settings.configuration, end, self._settings.user, runtime=self._runtime)
        url = document.get("jwks_uri")
        if document.get("issuer") != self._settings.issuer:
            raise IssuerUnreachable(f"{self._settings.configuration} speaks of another issuer")
        if not isinstance(url, str) or not _may_lead_to(self._settings.issuer, url):
            raise IssuerUnreachable(f"{self._settings.configuration} names no address of keys that can be trusted")
        return url


def _may_lead_to(issuer: str, url: str) -> bool:
    """Return whether the keys may be fetched from this URL.

    It must be https, unless the URL of the issuer itself is http.
    """
    try:
        trusted_address(url)
    except ValueError:
        return False
    return url.lower().startswith("https://") or issuer.lower().startswith("http://")


class IssuerUnreachable(Exception):
    """The issuer of tokens gave no usable answer, or none in time."""


def fetch(url: str, end: float, user: str | None = None, *, runtime: Runtime = REAL) -> Json:
    """Return the JSON object at a URL of the issuer; raises IssuerUnreachable if there is none.

    ``end``: deadline by ``runtime.monotonic()``. ``user``: the local user, besides root and ours, who may run an issuer
    that is reached without TLS on this machine. Redirections are not followed.
    """
    access = HttpAccess(
        trust=ssl.create_default_context,
        is_configured=True,
        check_plain=lambda connection: check_peer(connection, user, _SETTING, runtime=runtime),
    )
    try:
        request = HttpRequest(
            "GET", HttpTarget.parse(url), {"Accept": "application/json"}, access=access, max_body=_MOST_BYTES
        )
        answer = request.run(end - runtime.monotonic())
        if answer.status != 200:
            raise HTTPException(f"it answers {answer.status}")
        return json_object(answer.body)
    except (OSError, HTTPException, TargetRefused) as error:
        why = "it takes too long" if isinstance(error, TimeoutError) else str(error) or type(error).__name__
        raise IssuerUnreachable(f"{url}: {why}") from error
    except ValueError as error:
        raise IssuerUnreachable(f"{url}: the answer is no JSON object") from error


def json_object(data: bytes) -> Json:
    """Parse a JSON object; raises ValueError for anything else, for NaN and for a repeated key."""
    try:
        found = json.loads(data.decode(), object_pairs_hook=_once, parse_constant=_no_number)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if not isinstance(found, dict):
        raise ValueError("not an object")
    return found


def _once(pairs: list[tuple[str, object]]) -> Json:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is there twice")
    return found


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")
