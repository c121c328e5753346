"""Verifies a signed JWT in compact form (RFC 7515 §7.1, RFC 7519) with PyJWT.

What its claims mean is in ``claims``.

A token names its key (``kid``) and its algorithm. The key is looked up first, and a key is for one algorithm: PyJWT is
given the key together with that algorithm, so a token cannot choose another (none, or HMAC with the public key).
"""

import base64
from dataclasses import dataclass

from jwt import PyJWK, PyJWS
from jwt.exceptions import PyJWTError

from culture.server.auth.oidc.errors import Rejected
from culture.server.auth.oidc.fetch import json_object
from culture.server.shapes import Json

LONGEST = 8192
_LONGEST_KID = 256
# RFC 8725 §3.11: other kinds of token of the same issuer, such as those for logging out, mean something else.
_TYPES = frozenset({"jwt", "at+jwt"})
_JWS = PyJWS(options={"enforce_minimum_key_length": True})


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
