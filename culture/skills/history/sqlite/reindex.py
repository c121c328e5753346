"""The step of the schema from words that had invisible characters in them to words without."""

import re
import sqlite3

from culture.skills.history.entry import Sort
from culture.skills.history.words import fold_letters, indexed, plain, words_in

PLACE_WORD = "\ue000"
"""Begins the word that stands for a place in the index; no text has it there."""
_AT_ONCE = 1000
_FORGET = "INSERT INTO words (words, rowid, text) VALUES ('delete', ?, ?)"
_INDEX = "INSERT INTO words (rowid, text) VALUES (?, ?)"
_HEX = "[0-9A-Fa-f]{6}"
_FORMAT = re.compile(
    rf"\x03(?:[0-9]{{1,2}}(?:,[0-9]{{1,2}})?)?|\x04(?:{_HEX}(?:,{_HEX})?)?|[\x02\x0f\x11\x16\x1d-\x1f]"
)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def reindex(connection: sqlite3.Connection) -> None:
    """Index the messages anew whose words differ; the index has to be told the old words to forget them."""
    rows = connection.execute("SELECT position, place, text FROM entries WHERE sort = ?", (Sort.MESSAGE,))
    while some := rows.fetchmany(_AT_ONCE):
        for position, place, text in some:
            if text.isprintable() and plain(text) == text:
                continue
            old, new = _indexed_before(text), indexed(text)
            if old != new:
                connection.execute(_FORGET, (position, f"{PLACE_WORD}{place} {old}"))
                connection.execute(_INDEX, (position, f"{PLACE_WORD}{place} {new}"))


def _indexed_before(text: str) -> str:
    """What the index was told of a message before this step."""
    bare = text if text.isprintable() else _CONTROL.sub(" ", _FORMAT.sub("", text))
    return bare if text.isascii() else " ".join(words_in(fold_letters(bare)))
