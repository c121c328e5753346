"""Facts and queries: their fields, their validation, and the verdict fields of an approval."""

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
"""Bytes of a fact's value, at most; escaped, it must fit into the tags of a line."""
VERIFIED, WHY = "verified", "verified_why"
"""Fields of an approval that only servers set."""
CONFIRMED = "human_confirmed"
_ANSWER_FIELDS = ("by", "class", CONFIRMED, "answer")
NOT_LOOKED_UP = "the server where it was published did not look it up"
_SURROGATE = re.compile("[\ud800-\udfff]")
_KIND = re.compile("[a-z][a-z-]{0,19}")
_KEY = re.compile(r"[^\x00-\x20\x7f:,*][^\x00-\x20\x7f,*]{0,119}")


class Fact(NamedTuple):
    """A fact that a nick publishes about itself in the ledger, as a JSON object.

    For each nick, kind and key the latest value counts.
    """

    nick: str
    kind: str
    key: str
    value: str
    at: int
    """Microseconds since 1970, by the clock of the origin server."""
    origin: str
    seq: int
    verified: str = ""
    """The origin server's check of an approval (a ``Verified``); empty if it made none."""
    why: str = ""

    @property
    def place(self) -> tuple[str, str, str]:
        """Return the key by which a fact replaces an earlier one: folded nick, kind and key."""
        return fold(self.nick), self.kind, self.key


class FactQuery(NamedTuple):
    """A query for facts, newest first; a field that is None matches all."""

    kind: str | None = None
    nick: str | None = None
    key: str | None = None
    since: int = 0
    most: int = 100
    before: int | None = None


def fact_of(event: Noted) -> Fact | None:
    """Return the fact in an event; None if another server sent one that is not valid."""
    if not (is_kind(event.kind) and is_key(event.key) and is_value(event.value)):
        return None
    origin, _, seq, at = event.id
    nick = nick_of(event.source)
    if event.kind == FactKind.LINK and fold(nick) != origin:
        return None  # only a server publishes its links
    value = without_verdict(event.kind, event.value)
    at_micro = round(at * MICROSECONDS)
    return Fact(nick, event.kind, event.key, value, at_micro, origin, seq, event.verified, event.why)


def without_verdict(kind: str, value: str) -> str:
    """Return a fact's value without the fields that its publisher may not set.

    ``kind``: the kind of fact. Some fields only servers may set, and an open question cannot have an answer.
    """
    fields = json.loads(value)
    allowed = {key: each for key, each in fields.items() if key not in (VERIFIED, WHY)}
    if kind != FactKind.QUESTION:
        allowed.pop(CONFIRMED, None)  # only questions are checked
    elif not is_approval(allowed):
        also = ("outcome", "choice") if allowed.get("open") else ()
        allowed = {key: each for key, each in allowed.items() if key not in (*_ANSWER_FIELDS, *also) or each is None}
    return value if allowed.keys() == fields.keys() else dumped(allowed)


def with_verdict(fact: Fact) -> str:
    """Return a fact's value as clients get it.

    An approval has the verdict of the server that published it.
    """
    if fact.kind != FactKind.QUESTION:
        return fact.value
    fields = json.loads(fact.value)
    if not is_approval(fields):
        return fact.value
    return dumped({**fields, **verdict_fields(fact.verified, fact.why)})


def verdict_fields(verified: str, why: str) -> dict[str, bool | str]:
    """Return a verdict as fields of a fact's value.

    ``verified``: ``true``, ``false`` or any other word for unknown; ``why``: the reason, for people.
    """
    verdict: bool | str = {"true": True, "false": False}.get(verified, Verified.UNKNOWN.value)
    return {VERIFIED: verdict, WHY: why or NOT_LOOKED_UP}


def is_approval(fields: Mapping[str, Any]) -> bool:
    """Return whether a question's fields say that somebody answered it."""
    is_answered = str(fields.get("outcome")).upper() == "ANSWERED"
    return not fields.get("open") and (is_answered or bool(fields.get("by")))


def dumped(fields: Mapping[str, Any]) -> str:
    """Return an object as compact JSON; lone surrogates are escaped, so that it can be encoded."""
    text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
    return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def moment(text: object) -> float | None:
    """Return the time in a ledger fact as seconds since 1970.

    None if the text is not ISO 8601 with a time zone.
    """
    try:
        at = datetime.fromisoformat(str(text))
        return at.timestamp() if at.tzinfo is not None else None
    except (ValueError, OverflowError, OSError):
        return None


def is_kind(text: str) -> bool:
    """Return whether a text can be the kind of a fact: up to 20 lower-case letters and hyphens."""
    return _KIND.fullmatch(text) is not None


def is_key(text: str) -> bool:
    """Return whether a text can be the key of a fact.

    That is up to 120 characters without spaces, control characters, ``,`` and ``*``, and no ``:`` at the start.
    """
    return _KEY.fullmatch(text) is not None


def is_value(text: str) -> bool:
    """Return whether a text can be the value of a fact.

    It must be a JSON object of at most ``LONGEST`` bytes.
    """
    if len(text.encode(errors="replace")) > LONGEST:
        return False
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False
