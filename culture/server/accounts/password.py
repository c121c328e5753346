"""Passwords and tokens in the form they are hashed in (SASLprep, RFC 4013)."""

import hashlib
import secrets
import stringprep
import unicodedata

LONGEST_PASSWORD = 1024
"""In bytes; a longer one is a mistake or an attack."""

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
    """The text cannot be a password; the message says why and never repeats it."""


def prepare(password: str) -> bytes:
    """The bytes a password is hashed as; every way to type the same characters gives the same bytes."""
    if len(password) > LONGEST_PASSWORD:
        raise UnfitPassword(f"a password has at most {LONGEST_PASSWORD} bytes")
    text = password if password.isascii() and password.isprintable() else _saslprep(password)
    data = text.encode()
    if not data:
        raise UnfitPassword("a password cannot be empty")
    if len(data) > LONGEST_PASSWORD:
        raise UnfitPassword(f"a password has at most {LONGEST_PASSWORD} bytes")
    return data


def new_token() -> str:
    """A random secret that is used in place of a password."""
    return secrets.token_urlsafe(_TOKEN_BYTES)


def token_digest(token: str) -> str:
    """What is kept of a token. It is random and long, so one round of SHA-256 is enough (and no salt needed)."""
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
    """RFC 3454 §6: text from right to left begins and ends so, and has nothing from left to right in it."""
    if not any(map(stringprep.in_table_d1, text)):
        return
    ends = stringprep.in_table_d1(text[0]) and stringprep.in_table_d1(text[-1])
    if not ends or any(map(stringprep.in_table_d2, text)):
        raise UnfitPassword("a password cannot mix text from right to left with other text")
