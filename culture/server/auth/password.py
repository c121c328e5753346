"""Passwords (SASLprep, RFC 4013; SCRAM verifiers) and tokens."""

import hashlib
import hmac
import stringprep
import unicodedata
from dataclasses import dataclass, field
from typing import Self

from culture.lib.secret_compare import same_secret
from culture.runtime import REAL, Runtime

LONGEST_PASSWORD = 1024
"""Bytes; a longer password is a mistake or an attack."""

_TOKEN_BYTES = 32

_PROHIBITED = (
    stringprep.in_table_c12,
    stringprep.in_table_c21_c22,
    stringprep.in_table_c3,
    stringprep.in_table_c4,
    stringprep.in_table_c5,
    stringprep.in_table_c6,
    stringprep.in_table_c7,
    stringprep.in_table_c8,
    stringprep.in_table_c9,
    stringprep.in_table_a1,
)


class UnfitPassword(ValueError):
    """The text cannot be a password; the exception's text says why and does not quote it."""


def prepare(password: str) -> bytes:
    """Return the bytes of a password for hashing (SASLprep); raises UnfitPassword.

    They are the same for all ways to type its characters.
    """
    if len(password) > LONGEST_PASSWORD:
        raise UnfitPassword(f"a password has at most {LONGEST_PASSWORD} bytes")
    text = password if password.isascii() and password.isprintable() else _saslprep(password)
    data = text.encode()
    if not data:
        raise UnfitPassword("a password cannot be empty")
    if len(data) > LONGEST_PASSWORD:
        raise UnfitPassword(f"a password has at most {LONGEST_PASSWORD} bytes")
    return data


def new_token(*, runtime: Runtime = REAL) -> str:
    """Return a random secret for use in place of a password."""
    return runtime.token_urlsafe(_TOKEN_BYTES)


def token_digest(token: str) -> str:
    """Return the digest under which a token is stored: its SHA-256 in hex.

    A plain hash is enough, since a token is long and random.
    """
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def _saslprep(password: str) -> str:
    mapped = "".join(
        " " if stringprep.in_table_c12(character) else character
        for character in password
        if not stringprep.in_table_b1(character)
    )
    text = unicodedata.ucd_3_2_0.normalize("NFKC", mapped)
    if any(prohibited(character) for character in text for prohibited in _PROHIBITED):
        raise UnfitPassword("a password cannot have control characters, or characters that are too new for SASLprep")
    _check_direction(text)
    return text


def _check_direction(text: str) -> None:
    """Raise UnfitPassword for text that mixes right-to-left with other text (RFC 3454 §6)."""
    if not any(map(stringprep.in_table_d1, text)):
        return
    ends = stringprep.in_table_d1(text[0]) and stringprep.in_table_d1(text[-1])
    if not ends or any(map(stringprep.in_table_d2, text)):
        raise UnfitPassword("a password cannot mix text from right to left with other text")


ITERATIONS = 600_000
"""Rounds of hashing for a new password: about 0.2 s of one core, in a thread."""

_SALT_BYTES = 16


@dataclass(frozen=True, slots=True)
class PasswordVerifier:
    """Stored in place of a password: checks it, and proves to a client that we know it.

    It is useless for logging in elsewhere (SCRAM, RFC 5802).
    """

    salt: bytes = field(repr=False)
    iterations: int
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)

    @classmethod
    def of(
        cls, password: str, *, salt: bytes | None = None, iterations: int = ITERATIONS, runtime: Runtime = REAL
    ) -> Self:
        """Return the verifier of a new password; raises UnfitPassword.

        The hashing is slow: call this in a thread. ``salt`` None makes a random one.
        """
        chosen = salt or runtime.token_bytes(_SALT_BYTES)
        return cls(chosen, iterations, *_keys(prepare(password), chosen, iterations))

    @classmethod
    def fake(cls, key: bytes, name: str) -> Self:
        """Return a verifier that no password fits; for a given key and name it is always the same."""
        salt, stored_key, server_key = (
            hmac.digest(key, f"{use}\0{name}".encode(), "sha256") for use in ("salt", "stored", "server")
        )
        return cls(salt[:_SALT_BYTES], ITERATIONS, stored_key, server_key)

    def fits(self, password: bytes) -> bool:
        """Return whether a password, prepared by ``prepare``, is the right one.

        The hashing is slow: call this in a thread.
        """
        stored_key, _ = _keys(password, self.salt, self.iterations)
        return same_secret(stored_key, self.stored_key)

    def proved_by(self, proof: bytes, exchange: bytes) -> bool:
        """Return whether the client's SCRAM proof shows that it knows the password.

        ``exchange``: the messages of the exchange that both sides sign (RFC 5802: AuthMessage).
        """
        signature = hmac.digest(self.stored_key, exchange, "sha256")
        if len(proof) != len(signature):
            return False
        client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
        return same_secret(hashlib.sha256(client_key).digest(), self.stored_key)

    def signature(self, exchange: bytes) -> bytes:
        """Return the SCRAM signature over ``exchange``, which proves that we know the password."""
        return hmac.digest(self.server_key, exchange, "sha256")


def _keys(password: bytes, salt: bytes, iterations: int) -> tuple[bytes, bytes]:
    salted = hashlib.pbkdf2_hmac("sha256", password, salt, iterations)
    client_key = hmac.digest(salted, b"Client Key", "sha256")
    return hashlib.sha256(client_key).digest(), hmac.digest(salted, b"Server Key", "sha256")
