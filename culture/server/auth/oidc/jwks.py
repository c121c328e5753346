"""The issuer's keys, remembered: asked for again after a while, and when a token names one that is new."""

import logging
import time
from collections.abc import Callable, Mapping
from threading import Lock
from typing import NamedTuple

from culture.config.oidc import Oidc, trusted_address
from culture.server.auth.oidc.errors import IssuerUnreachable
from culture.server.auth.oidc.fetch import fetch
from culture.server.auth.oidc.keys import Key, read_keys

log = logging.getLogger(__name__)

PAUSE = 30.0
"""Between two questions to the issuer: tokens that name keys at random must not make us bother it."""

LONGEST = 86400.0
"""How long keys are good while the issuer cannot be asked whether they still are."""


class _Held(NamedTuple):
    keys: Mapping[str, Key]
    since: float


class Jwks:
    """Keys by their ids; used by several threads at a time."""

    def __init__(self, settings: Oidc, clock: Callable[[], float]) -> None:
        self._settings = settings
        self._clock = clock
        self._turn = Lock()
        self._held = _Held({}, float("-inf"))
        self._asked = float("-inf")

    def key(self, kid: str) -> Key | None:
        """The key of that id, asked for where it is not known; None when the issuer has none."""
        known = self._known(kid)
        # Whoever has a key does not wait for somebody else's question.
        if not (known and self._is_fresh()) and self._turn.acquire(blocking=known is None):
            try:
                self._look(kid)
            finally:
                self._turn.release()
        return self._known(kid)

    def _known(self, kid: str) -> Key | None:
        keys, since = self._held
        return keys.get(kid) if self._clock() - since <= LONGEST else None

    def _is_fresh(self) -> bool:
        return 0 <= self._clock() - self._held.since < self._settings.refresh

    def _look(self, kid: str) -> None:
        """Ask, unless somebody just has."""
        now = self._clock()
        if (self._known(kid) and self._is_fresh()) or 0 <= now - self._asked < PAUSE:
            return
        self._asked = now
        try:
            self._held = _Held(self._ask(), now)
        except IssuerUnreachable as error:
            log.warning("the keys of %s could not be read: %s", self._settings.issuer, error)

    def _ask(self) -> Mapping[str, Key]:
        end = time.monotonic() + self._settings.timeout
        url = self._settings.jwks_url or self._discovered(end)
        try:
            keys = read_keys(fetch(url, end, self._settings.user))
        except ValueError as error:
            raise IssuerUnreachable(f"{url}: the answer is no set of keys") from error
        if not keys:
            log.warning("%s has no key that is of use: RSA from 2048 bits, P-256 or Ed25519, with a kid", url)
        return keys

    def _discovered(self, end: float) -> str:
        """Where the keys are (OpenID Connect Discovery 1.0 §4.3: it must be this issuer that says so)."""
        document = fetch(self._settings.configuration, end, self._settings.user)
        url = document.get("jwks_uri")
        if document.get("issuer") != self._settings.issuer:
            raise IssuerUnreachable(f"{self._settings.configuration} speaks of another issuer")
        if not isinstance(url, str) or not _may_lead_to(self._settings.issuer, url):
            raise IssuerUnreachable(f"{self._settings.configuration} names no address of keys that can be trusted")
        return url


def _may_lead_to(issuer: str, url: str) -> bool:
    """An issuer with https does not lead to keys without it, not even on this machine."""
    try:
        trusted_address(url)
    except ValueError:
        return False
    return url.lower().startswith("https://") or issuer.lower().startswith("http://")
