"""Texts of others on a terminal: they are read, and do nothing to it."""

import json

_KEPT = frozenset("\n\t")


def harmless(text: str) -> str:
    """The text in its lines, without anything that moves a cursor, colours, or turns letters around."""
    return "".join(letter if letter.isprintable() or letter in _KEPT else " " for letter in text)


def as_json(data: object) -> str:
    """The data for programs, as readable as can be; what a terminal would obey is spelled out."""
    text = json.dumps(data, ensure_ascii=False, indent=2)
    return "".join(letter if letter.isprintable() or letter == "\n" else json.dumps(letter)[1:-1] for letter in text)
