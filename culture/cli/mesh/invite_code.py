"""The code of an invitation: one word with everything that the other side has to know."""

import base64
from dataclasses import astuple, dataclass, field, fields
from hashlib import sha256

from culture.config.links import endpoint
from culture.config.values import fingerprint, server_name
from culture.server.auth.accounts import AccountRefused, account_name
from culture.server.auth.invitations import Kind

_MARK = "inv1_"
_CHECK = 4
_KINDS = ("machine", "person")


class NoCode(Exception):
    """It is no code of ours, or not all of it."""


@dataclass(frozen=True, slots=True)
class InviteCode:
    """Who invites, where it is found and by what it is known; whom it invites; the one-time key."""

    kind: Kind
    server: str
    address: str
    """``host:port``."""
    fingerprint: str
    """Of its certificate; empty where the address is this machine's own and speaks without TLS."""
    name: str
    key: str = field(repr=False)

    def __str__(self) -> str:
        text = "\n".join(astuple(self)).encode()
        return _MARK + base64.urlsafe_b64encode(text + _check(text)).decode().rstrip("=")

    @classmethod
    def parse(cls, word: str) -> "InviteCode":
        """Read it back; raises NoCode, also where a letter is missing."""
        try:
            if not word.startswith(_MARK):
                raise ValueError(f"each begins with {_MARK}")
            kind, *rest = _decoded(word.removeprefix(_MARK)).decode().split("\n")
            if kind not in _KINDS or len(rest) != len(fields(cls)) - 1:
                raise ValueError("it is of another version")
            code = cls(kind, *rest)  # type: ignore[arg-type]
            code._verify()
        except AccountRefused:
            raise NoCode("it names nobody who could have an account") from None
        except ValueError as error:
            # Never what was given: it may still be good for somebody else.
            raise NoCode(str(error) if not isinstance(error, UnicodeError) else "it is no text") from None
        return code

    def _verify(self) -> None:
        """Anybody can make a code, and what it says is shown and written down."""
        server_name(self.server)
        endpoint(self.address)
        if self.fingerprint:
            fingerprint(self.fingerprint)
        if self.kind == "person":
            account_name(self.name)
        elif self.name:
            server_name(self.name)


def _decoded(data: str) -> bytes:
    """What the letters behind the mark stand for; ValueError in words for whoever copied them."""
    try:
        raw = base64.b64decode(data + "=" * (-len(data) % 4), b"-_", validate=True)
    except ValueError:
        raw = b""
    text, check = raw[:-_CHECK], raw[-_CHECK:]
    if _check(text) != check:
        raise ValueError("letters are missing, or are not those that it was made with")
    return text


def _check(text: bytes) -> bytes:
    return sha256(text).digest()[:_CHECK]
