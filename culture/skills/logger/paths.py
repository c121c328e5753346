"""Where a channel's log is: its name as the name of a folder, and its day as that of a file."""

import hashlib
import string
import unicodedata
from functools import lru_cache
from pathlib import Path

from culture.protocol.names import fold

_KEPT = frozenset(string.ascii_lowercase + string.digits + "_-+.")
_NOT_FIRST = frozenset("-.")  # an option, a hidden folder, a way up
_LONGEST = 255  # bytes in the name of a file
_HEAD = 200


@lru_cache(maxsize=4096)
def file_of(folder: Path, channel: str, day: str) -> Path:
    """The log of a channel's day (``2026-11-16``)."""
    return folder / folder_of(channel) / f"{day}.log"


def folder_of(channel: str) -> str:
    """The name, folded, without its first ``#``, everything unusual as %XX; equal for equal channels only.

    ``urllib.parse.unquote`` reads it back. Where that would be too long for a file system, the end is a digest.
    """
    name = fold(channel)[1:]
    escaped = "".join(_escaped(character, at == 0) for at, character in enumerate(name))
    if len(escaped.encode()) <= _LONGEST:
        return escaped
    digest = hashlib.sha256(name.encode()).hexdigest()[:32]
    return f"{escaped.encode()[:_HEAD].decode(errors='ignore')}%+{digest}"


def _escaped(character: str, first: bool) -> str:
    if _is_plain(character) and not (first and character in _NOT_FIRST):
        return character
    return "".join(f"%{byte:02X}" for byte in character.encode())


def _is_plain(character: str) -> bool:
    """Does it read well, and is it the same on file systems that fold or normalise names in ways that IRC does not?"""
    if character.isascii():
        return character in _KEPT
    return character.isalnum() and unicodedata.normalize("NFKD", character.casefold()) == character
