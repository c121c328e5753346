"""Facts, and the questions about them."""

import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from culture.protocol.names import fold
from culture.protocol.vocabulary import FactKind, Verified
from culture.server.core.ids import MICROSECONDS
from culture.server.events import Noted, nick_of

LONGEST = 2_000
"""Bytes of what a fact says: escaped it must fit into the tags of a line."""
VERIFIED, WHY = "verified", "verified_why"
"""The fields of a shown approval that only servers write."""
CONFIRMED = "human_confirmed"
_OF_AN_ANSWER = ("by", "class", CONFIRMED, "answer")
NOT_LOOKED_UP = "the server where it was published did not look it up"
_SURROGATE = re.compile("[\ud800-\udfff]")
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
    verified: str = ""
    """What the server of its origin found of the approval in it (a Verified); empty where it did not look."""
    why: str = ""

    @property
    def place(self) -> tuple[str, str, str]:
        """What there is one fact of."""
        return fold(self.nick), self.kind, self.key


class FactQuery(NamedTuple):
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
    value = without_verdict(event.kind, event.value)
    at_micro = round(at * MICROSECONDS)
    return Fact(nick, event.kind, event.key, value, at_micro, origin, seq, event.verified, event.why)


def without_verdict(kind: str, value: str) -> str:
    """The value of a fact without what only servers say in it, and without an answer where it tells of none."""
    fields = json.loads(value)
    kept = {key: each for key, each in fields.items() if key not in (VERIFIED, WHY)}
    if kind != FactKind.QUESTION:
        kept.pop(CONFIRMED, None)  # nobody looks that up
    elif not is_approval(kept):
        also = ("outcome", "choice") if kept.get("open") else ()
        kept = {key: each for key, each in kept.items() if key not in (*_OF_AN_ANSWER, *also) or each is None}
    return value if kept.keys() == fields.keys() else dumped(kept)


def with_verdict(fact: Fact) -> str:
    """The value of a fact as it is shown: an approval with what the server of its origin found of it."""
    if fact.kind != FactKind.QUESTION:
        return fact.value
    fields = json.loads(fact.value)
    if not is_approval(fields):
        return fact.value
    return dumped({**fields, **verdict_fields(fact.verified, fact.why)})


def verdict_fields(verified: str, why: str) -> dict[str, bool | str]:
    """A verdict as the fields of a JSON object."""
    shown: bool | str = {"true": True, "false": False}.get(verified, Verified.UNKNOWN.value)
    return {VERIFIED: shown, WHY: why or NOT_LOOKED_UP}


def is_approval(fields: Mapping[str, Any]) -> bool:
    """Does the value of a question say that somebody answered it?"""
    is_answered = str(fields.get("outcome")).upper() == "ANSWERED"
    return not fields.get("open") and (is_answered or bool(fields.get("by")))


def dumped(fields: Mapping[str, Any]) -> str:
    """A JSON object in the fewest characters that can be encoded."""
    text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
    return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def moment(text: object) -> float | None:
    """Seconds since 1970 of a time in a fact; None where it is none."""
    try:
        at = datetime.fromisoformat(str(text))
        return at.timestamp() if at.tzinfo is not None else None
    except (ValueError, OverflowError, OSError):
        return None


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
