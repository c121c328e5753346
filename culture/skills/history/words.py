"""What a text is found by: the words that are indexed, and what a question asks for."""

import re
import unicodedata
from typing import NamedTuple

# Scripts that are written without spaces: their words are found by pairs of characters.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u3100-\u31ff\u3400-\u4dbf"
_UNSPACED += "\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
_RUN = re.compile(f"[{_UNSPACED}]+")
_TOKEN = re.compile(rf"[{_UNSPACED}]+|[^\W_{_UNSPACED}]+")
_FORMAT = re.compile(r"\x03(?:\d{1,2}(?:,\d{1,2})?)?|\x04(?:[0-9A-Fa-f]{6})?|[\x00-\x1f\x7f]")
_PRIVATE = re.compile(r"[\ue000-\uf8ff]")
MOST_TERMS = 32


class Query(NamedTuple):
    """A question: every term must be in the text as a word, every needle somewhere."""

    terms: tuple[str, ...]
    needles: tuple[str, ...]


def plain(text: str) -> str:
    """The text without colours, bold and the like."""
    return text if text.isprintable() else _FORMAT.sub(" ", text)


def folded(text: str) -> str:
    """The text as it is compared: no case, no accents, no widths."""
    text = plain(text)
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text)
    return unicodedata.normalize("NFC", "".join(c for c in decomposed if not _is_accent(c))).casefold()


def _is_accent(character: str) -> bool:
    return "\u0300" <= character <= "\u036f"


def indexed(text: str) -> str:
    """What goes into the index: words, in which nothing looks like the marks that the index itself uses."""
    if text.isascii():
        return plain(text)
    text = _PRIVATE.sub(" ", folded(text))
    return _RUN.sub(lambda run: f" {' '.join(_pairs(run[0]))} ", text)


def _pairs(run: str) -> list[str]:
    """Each character with the next one, and the last by itself."""
    return [run[at : at + 2] for at in range(len(run))]


def query(text: str) -> Query:
    """Any text as a question: all its words, and those with other characters in them to the letter."""
    terms: dict[str, None] = {}
    needles: dict[str, None] = {}
    for word in folded(text).split():
        tokens = _TOKEN.findall(_PRIVATE.sub(" ", word))
        if len(tokens) != 1 or tokens[0] != word or _RUN.fullmatch(word):
            needles[word] = None
        for token in tokens:
            terms.update(dict.fromkeys(_terms(token)))
    return Query(tuple(terms)[:MOST_TERMS], tuple(needles)[:MOST_TERMS])


def _terms(token: str) -> list[str]:
    if not _RUN.fullmatch(token):
        return [token]
    return [f"{token}*"] if len(token) == 1 else _pairs(token)[:-1]


def fits(asked: Query, text: str) -> bool:
    """Has the text every needle?"""
    if not asked.needles:
        return True
    compared = folded(text)
    return all(needle in compared for needle in asked.needles)
