"""SASL OAUTHBEARER: a token of an issuer that the server trusts (RFC 7628)."""

import json
from typing import Protocol

from culture.server.accounts.gs2 import BadMessage, Opened
from culture.server.accounts.login import Check, Done, Failed

_PART = "\x01"
_SCHEME = "bearer"


class Tokens(Protocol):
    """Knows what a token is worth."""

    @property
    def configuration(self) -> str:
        """Where clients read how to get a token."""

    def check(self, token: str, authzid: str) -> Done | Failed:
        """Whose token it is, in a thread; ``authzid`` is whom the client wants to be, "" for whoever it is."""


class Bearer:
    """One message with the token; who fails is told why in JSON before."""

    def __init__(self, tokens: Tokens | None) -> None:
        self._tokens = tokens

    def step(self, data: bytes) -> Check | Failed:
        """Read ``n,a=user,`` and behind it ``key=value`` pairs, each begun and the last ended with 0x01."""
        tokens = self._tokens
        if tokens is None:
            return Failed("there is no issuer whose tokens are taken")
        try:
            authzid, token = _parse(data)
        except BadMessage as bad:
            return _told(Failed(str(bad)), "invalid_request", tokens)

        def run() -> Done | Failed:
            outcome = tokens.check(token, authzid)
            return _told(outcome, "invalid_token", tokens) if isinstance(outcome, Failed) else outcome

        return Check(run, asks_elsewhere=True)


def _told(failed: Failed, status: str, tokens: Tokens) -> Failed:
    """RFC 7628 §3.2.2"""
    said = {"status": status, "openid-configuration": tokens.configuration}
    return Failed(failed.reason, json.dumps(said, separators=(",", ":")).encode())


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
