"""Capabilities and what one session has agreed on (IRCv3 capability negotiation)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple
from weakref import WeakValueDictionary

CAP_NOTIFY = "cap-notify"
MULTILINE = "draft/multiline"
"""Both the capability and the type of the batch."""
MULTILINE_CONCAT = "draft/multiline-concat"
"""The tag of a line that goes on where the one before it ended."""
VERSION_302 = 302
"""From this version on a client reads values and several lines, and has ``cap-notify`` without asking."""

_shared: WeakValueDictionary[tuple[str, ...], frozenset[str]] = WeakValueDictionary()


class Capability(NamedTuple):
    """Something a server offers; the value is for clients of version 302."""

    name: str
    value: str | None = None

    def __str__(self) -> str:
        """As it stands in the list of a client that reads values."""
        return self.name if self.value is None else f"{self.name}={self.value}"


def shared(names: Iterable[str]) -> frozenset[str]:
    """The one set with these names, so that a thousand sessions that agreed on the same hold it once."""
    key = tuple(sorted(set(names)))
    known = _shared.get(key)
    if known is None:
        known = _shared[key] = frozenset(key)
    return known


NOTHING = shared(())


class Negotiation:
    """What one session has agreed on, and whether it is still at it."""

    __slots__ = ("enabled", "pending", "version")

    version: int
    """What ``CAP LS`` named, 0 before it; it never sinks."""

    enabled: frozenset[str]

    pending: bool
    """Registration waits for ``CAP END``."""

    def __init__(self) -> None:
        self.version = 0
        self.enabled = NOTHING
        self.pending = False

    def begin(self, version: int = 301) -> None:
        """``CAP LS``: the client wants to know, and will say when it is done."""
        self.pending = True
        self.version = max(self.version, version)
        if self.version >= VERSION_302:
            self.enabled = shared({*self.enabled, CAP_NOTIFY})

    def request(self, words: Sequence[str], offered: Mapping[str, str | None]) -> bool:
        """``CAP REQ``: all of it is agreed to (True: ACK), or nothing changes (False: NAK)."""
        self.pending = True
        enabled = set(self.enabled)
        for word in words:
            name = word.removeprefix("-")
            if name not in offered:
                return False
            if name == word:
                enabled.add(name)
            elif name == CAP_NOTIFY and self.version >= VERSION_302:
                return False
            else:
                enabled.discard(name)
        self.enabled = shared(enabled)
        return True

    def end(self) -> None:
        """``CAP END``: registration may go on."""
        self.pending = False

    def withdraw(self, names: Iterable[str]) -> None:
        """``CAP DEL``: the server offers these no more."""
        self.enabled = shared(self.enabled.difference(names))

    def offer(self, offered: Mapping[str, str | None]) -> list[str]:
        """The words of ``CAP LS`` and ``CAP NEW`` for this client."""
        if self.version < VERSION_302:
            return list(offered)
        return [str(Capability(name, value)) for name, value in offered.items()]


def lines(words: Iterable[str], budget: int) -> list[str]:
    """The words joined by spaces into lines of at most ``budget`` bytes; without words one empty line."""
    wrapped = [""]
    for word in words:
        longer = f"{wrapped[-1]} {word}" if wrapped[-1] else word
        if wrapped[-1] and len(longer.encode()) > budget:
            wrapped.append(word)
        else:
            wrapped[-1] = longer
    return wrapped
