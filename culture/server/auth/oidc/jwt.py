"""A token as it is written: a signed JWT in compact form (RFC 7515 §7.1, RFC 7519)."""

from dataclasses import dataclass, field

from culture.server.auth.oidc.errors import Rejected
from culture.server.auth.oidc.keys import Key
from culture.server.auth.oidc.strict import json_object, unarmoured
from culture.server.shapes import Json

LONGEST = 8192
_LONGEST_KID = 256
# RFC 8725 §3.11: other kinds of token of the same issuer, such as those for logging out, mean something else.
_TYPES = frozenset({"jwt", "at+jwt"})


@dataclass(frozen=True, slots=True)
class Jwt:
    """A token that nobody has checked yet."""

    algorithm: str
    kid: str = field(repr=False)
    signed: bytes = field(repr=False)
    signature: bytes = field(repr=False)
    _payload: bytes = field(repr=False)

    @classmethod
    def parse(cls, text: str) -> "Jwt":
        """Read ``header.payload.signature``; raises Rejected."""
        if len(text) > LONGEST:
            raise Rejected("it is too long")
        parts = text.split(".")
        if len(parts) != 3:
            raise Rejected("it is no signed JWT")
        try:
            header, payload, signature = map(unarmoured, parts)
            algorithm, kid = _header(json_object(header))
        except ValueError as error:
            raise Rejected("it is garbled") from error
        return cls(algorithm, kid, f"{parts[0]}.{parts[1]}".encode(), signature, payload)

    def claims(self, key: Key) -> Json:
        """What the token says, once the key has shown that the issuer said it; raises Rejected."""
        if key.algorithm != self.algorithm or not key.signed(self.signature, self.signed):
            raise Rejected("its signature is wrong")
        try:
            return json_object(self._payload)
        except ValueError as error:
            raise Rejected("its claims are garbled") from error


def _header(header: Json) -> tuple[str, str]:
    algorithm, kid, kind = header.get("alg"), header.get("kid"), header.get("typ", "JWT")
    if "crit" in header:
        raise Rejected("it demands extensions that nobody here knows")
    if not isinstance(kind, str) or kind.lower().removeprefix("application/") not in _TYPES:
        raise Rejected("it is another kind of token")
    if not isinstance(algorithm, str):
        raise Rejected("it has no algorithm")
    if not isinstance(kid, str) or not 0 < len(kid) <= _LONGEST_KID:
        raise Rejected("it does not name its key")
    return algorithm, kid
