"""What a text is found by: the words that are indexed, and what a question asks for."""

import re
import unicodedata
from typing import NamedTuple

from culture.protocol.text import Profile, clean

# Scripts that are written without spaces: found by their characters and pairs of them.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u3100-\u31ff\u3400-\u4dbf"
_UNSPACED += "\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
_SYMBOLS = "\u2190-\u2bff\U0001f000-\U0001faff"  # arrows, signs, emoji: each is a word
_RUN = re.compile(f"[{_UNSPACED}]+")
_TOKEN = re.compile(rf"[{_UNSPACED}]+|[{_SYMBOLS}]|[^\W_{_UNSPACED}{_SYMBOLS}]+")
_UNSEEN = re.compile("[\u0300-\u036f\ufe0e\ufe0f]")  # accents, and how an emoji is to be drawn
MOST_TERMS = 32


class Query(NamedTuple):
    """A question: every term must be among the words of the text, every needle somewhere in it."""

    terms: tuple[str, ...]
    needles: tuple[str, ...]


def plain(text: str) -> str:
    """The text without colours, bold and the like, and without what nobody sees."""
    return clean(text, Profile.INDEX)


def folded(text: str) -> str:
    """The text as it is compared: no case, no accents, no widths."""
    return fold_letters(plain(text))


def fold_letters(text: str) -> str:
    """The same of a text that is plain already."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", _UNSEEN.sub("", unicodedata.normalize("NFKD", text))).casefold()


def words(text: str) -> list[str]:
    """What the text is found by, folded; a word that is there twice may come twice."""
    return words_in(folded(text))


def words_in(text: str) -> list[str]:
    """The words of a text that is folded already."""
    return [word for token in _TOKEN.findall(text) for word in _parts(token)]


def indexed(text: str) -> str:
    """The same in one text: what lies between two words is no letter, no digit, and none but ASCII."""
    return plain(text) if text.isascii() else " ".join(words(text))


def _parts(token: str) -> list[str]:
    return [*token, *_pairs(token)] if _RUN.match(token) else [token]


def _pairs(run: str) -> list[str]:
    """Each character with the next one."""
    return [run[at : at + 2] for at in range(len(run) - 1)]


def query(text: str) -> Query:
    """Any text as a question: all its words, and those with other characters in them to the letter."""
    terms: dict[str, None] = {}
    needles: dict[str, None] = {}
    for word in folded(text.encode(errors="replace").decode()).split():  # half a character is in no text
        pieces = _TOKEN.findall(word)
        for piece in pieces:
            terms.update(dict.fromkeys(_asked(piece)))
        if pieces != [word] or _asked(word) != [word]:
            needles[word] = None
    return Query(tuple(terms)[:MOST_TERMS], tuple(needles)[:MOST_TERMS])


def _asked(token: str) -> list[str]:
    """The fewest words that stand for it."""
    return _pairs(token) if len(token) > 1 and _RUN.match(token) else [token]


def fits(asked: Query, text: str) -> bool:
    """Has the text every needle?"""
    if not asked.needles:
        return True
    compared = folded(text)
    return all(needle in compared for needle in asked.needles)
