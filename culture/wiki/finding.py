"""Finding words on a page: in any case, all of them."""

import unicodedata

from culture.wiki.values import Line

_SHOWN = 3
_LINE_LIMIT = 240
_NAME_WEIGHT = 1000


def found(words: str, name: str, text: str) -> tuple[int, tuple[Line, ...]]:
    """How well the page fits (0: a word is missing) and the first lines with one of the words."""
    wanted = folded(words).split()
    title, body = folded(name), folded(text)
    if not wanted or not all(word in title or word in body for word in wanted):
        return 0, ()
    rank = sum(_NAME_WEIGHT * (word in title) + body.count(word) for word in wanted)
    lines = []
    for number, line in enumerate(text.split("\n"), start=1):
        if any(word in folded(line) for word in wanted):
            lines.append(Line(number, line.strip()[:_LINE_LIMIT]))
            if len(lines) == _SHOWN:
                break
    return rank, tuple(lines)


def folded(text: str) -> str:
    """The form in which texts compare."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())
