"""What messages are found by, as PostgreSQL wants it: a text's words, and a question."""

from culture.skills.history.postgres.rows import Values
from culture.skills.history.words import Query, words

PLACE_WORD = "\ue000"
"""Begins the word that stands for a place; no text has it there."""

_LONGEST = 400  # characters of a word that count; PostgreSQL takes 2046 bytes
_MOST = 20_000  # words of a text that count; PostgreSQL takes a megabyte


def words_of(place: int, text: str) -> str:
    """What the index knows of a message (a tsvector): where it was said, and its words."""
    return " ".join([f"{PLACE_WORD}{place}", *(word[:_LONGEST] for word in words(text)[:_MOST])])


def question(place: int, query: Query) -> str:
    """The messages of a place with every term (a tsquery)."""
    return " & ".join([f"'{PLACE_WORD}{place}'", *map(_term, query.terms)])


def _term(term: str) -> str:
    quoted = term[:_LONGEST].replace("\\", "\\\\").replace("'", "''")
    return f"'{quoted}'"


def may_fit(query: Query, values: Values) -> str:
    """Leaves out what certainly lacks a needle: plain ASCII is folded by making it small, so it can be looked for."""
    has_needles = [f'strpos(lower(e.text COLLATE "C"), {values(needle)}) > 0' for needle in query.needles]
    return f"({' AND '.join(has_needles)} OR e.text COLLATE \"C\" ~ '[^ -~]')" if has_needles else "TRUE"
