"""Logs in the bearer of an issuer's token: from the token to an account of this server."""

import logging

from culture.config.oidc import Oidc
from culture.protocol.vocabulary import LoginProof
from culture.runtime import REAL, Runtime
from culture.server.auth.account_store import AccountStore
from culture.server.auth.accounts import Account, AccountRefused, AccountsError, NameTaken, Revoked
from culture.server.auth.credential_check import Done, LoginFailed
from culture.server.auth.oidc.claims import Bearing, judged
from culture.server.auth.oidc.errors import Rejected
from culture.server.auth.oidc.jwt import read_header, verified_claims
from culture.server.auth.oidc.keys import Jwks

log = logging.getLogger(__name__)


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
