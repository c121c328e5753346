"""Path of a channel's log: a folder per channel (name escaped), a file per day."""

import hashlib
import string
import unicodedata
from functools import lru_cache
from pathlib import Path

from culture.protocol.names import fold

_UNESCAPED = frozenset(string.ascii_lowercase + string.digits + "_-+.")
_NOT_FIRST = frozenset("-.")  # would look like an option or a hidden folder, or be ".."
_LONGEST = 255  # bytes in the name of a file
_HEAD = 200  # bytes before the digest


@lru_cache(maxsize=4096)
def file_of(folder: Path, channel: str, day: str) -> Path:
    """Return the path of a channel's log for a day (``2026-11-16``)."""
    return folder / folder_of(channel) / f"{day}.log"


def folder_of(channel: str) -> str:
    """Return the folder name of a channel's logs, different for each channel.

    It is the name in lower case, without the first ``#``, escaped as %XX. ``urllib.parse.unquote`` reverses it,
    unless the name is too long for a file system: then it ends in a digest.
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
    """Return whether a character may stay unescaped in a folder name.

    That is if it is readable and survives file systems that normalise names.
    """
    if character.isascii():
        return character in _UNESCAPED
    return character.isalnum() and unicodedata.normalize("NFKD", character.casefold()) == character
