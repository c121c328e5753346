"""How a client names a moment of the history: by a message's id, or by a time as server-time shows it."""

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from culture.server.subscriptions.read_markers import valid_time
from culture.skills.history.store import Store, View, position_at

TYPES = ("msgid", "timestamp")
"""The kinds of references."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SHOWN = 1_000  # microseconds that a time as it is shown stands for


class Moment(NamedTuple):
    """A time, in microseconds since 1970."""

    at: int

    @property
    def end(self) -> int:
        """The first time that is shown as a later one."""
        return self.at + _SHOWN


class MessageId(NamedTuple):
    """A message."""

    msgid: str


Reference = Moment | MessageId


class Span(NamedTuple):
    """The first and the last position that a reference stands for."""

    first: int
    last: int


def parse_time(text: str) -> Moment | None:
    """The time that ``YYYY-MM-DDThh:mm:ss.sssZ`` says; None where that is none."""
    if not valid_time(text):
        return None
    return Moment((datetime.fromisoformat(text) - _EPOCH) // timedelta(microseconds=1))


def parse(word: str) -> Reference | None:
    """``msgid=…`` or ``timestamp=…``; None where it makes no sense."""
    kind, _, value = word.partition("=")
    if kind == "timestamp":
        return parse_time(value)
    return MessageId(value) if kind == "msgid" and value else None


def is_known_type(word: str) -> bool:
    """Is it a reference of a kind that exists here?"""
    return word.partition("=")[0] in TYPES


def find(store: Store, view: View, reference: Reference) -> Span | None:
    """Where it is in this place; None where the reader knows of no such message."""
    if isinstance(reference, Moment):
        return Span(position_at(reference.at), position_at(reference.end) - 1)
    position = store.locate(view, reference.msgid)
    return None if position is None else Span(position, position)
