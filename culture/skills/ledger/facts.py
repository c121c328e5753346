"""Facts, and the questions about them."""

import json
import re
from typing import NamedTuple

from culture.protocol.names import fold
from culture.protocol.vocabulary import FactKind
from culture.server.events import Noted, nick_of
from culture.server.ids import MICROSECONDS

LONGEST = 2_000
"""Bytes of what a fact says: escaped it must fit into the tags of a line."""
_KIND = re.compile("[a-z][a-z-]{0,19}")
_KEY = re.compile(r"[^\x00-\x20\x7f:,*][^\x00-\x20\x7f,*]{0,119}")


class Fact(NamedTuple):
    """What somebody says of themselves; of two with the same nick, kind and key the later one holds everywhere."""

    nick: str
    kind: str
    key: str
    value: str
    at: int
    """Microseconds since 1970, at the server where it was said."""
    origin: str
    seq: int

    @property
    def place(self) -> tuple[str, str, str]:
        """What there is one fact of."""
        return fold(self.nick), self.kind, self.key


class Question(NamedTuple):
    """Which facts are wanted; the newest first."""

    kind: str | None = None
    nick: str | None = None
    key: str | None = None
    since: int = 0
    most: int = 100
    before: int | None = None


def fact_of(event: Noted) -> Fact | None:
    """The fact of an event; None where another server took for one what is none."""
    if not (is_kind(event.kind) and is_key(event.key) and is_value(event.value)):
        return None
    origin, _, seq, at = event.id
    nick = nick_of(event.source)
    if event.kind == FactKind.LINK and fold(nick) != origin:
        return None  # only servers speak of their links
    return Fact(nick, event.kind, event.key, event.value, round(at * MICROSECONDS), origin, seq)


def is_kind(text: str) -> bool:
    """Can it be the kind of a fact?"""
    return _KIND.fullmatch(text) is not None


def is_key(text: str) -> bool:
    """Can it be the key of a fact?"""
    return _KEY.fullmatch(text) is not None


def is_value(text: str) -> bool:
    """Is it what a fact may say: one object in JSON?"""
    if len(text.encode(errors="replace")) > LONGEST:
        return False
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False
