"""Capabilities, and what one session has negotiated (IRCv3 capability negotiation)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple
from weakref import WeakValueDictionary

CAP_NOTIFY = "cap-notify"
MULTILINE = "draft/multiline"
"""The name of the capability and of its batch type."""
MULTILINE_CONCAT = "draft/multiline-concat"
"""The tag of a line that continues the line before it."""
VERSION_302 = 302
"""From this version on, clients read values and several lines, and have ``cap-notify``."""

_shared: WeakValueDictionary[tuple[str, ...], frozenset[str]] = WeakValueDictionary()


class Capability(NamedTuple):
    """A capability that a server offers, with its value, which clients of version 302 are shown."""

    name: str
    value: str | None = None

    def __str__(self) -> str:
        """Return this capability as clients of version 302 read it: ``name`` or ``name=value``."""
        return self.name if self.value is None else f"{self.name}={self.value}"


def shared(names: Iterable[str]) -> frozenset[str]:
    """Return a set of these capability names; equal sets are the same object, to save memory."""
    key = tuple(sorted(set(names)))
    existing = _shared.get(key)
    if existing is None:
        existing = _shared[key] = frozenset(key)
    return existing


NOTHING = shared(())


class Negotiation:
    """The capabilities of one session, and whether its registration waits for ``CAP END``."""

    __slots__ = ("enabled", "pending", "version")

    version: int
    """The version of ``CAP LS``, 0 before it; it never decreases."""

    enabled: frozenset[str]

    pending: bool
    """Whether registration waits for ``CAP END``."""

    def __init__(self) -> None:
        self.version = 0
        self.enabled = NOTHING
        self.pending = False

    def begin(self, version: int = 301) -> None:
        """Begin the negotiation after the client has sent ``CAP LS`` with this version."""
        self.pending = True
        self.version = max(self.version, version)
        if self.version >= VERSION_302:
            self.enabled = shared({*self.enabled, CAP_NOTIFY})

    def request(self, words: Sequence[str], offered: Mapping[str, str | None]) -> bool:
        """Handle ``CAP REQ``: enable the capabilities in ``words``, or disable those with ``-``.

        Returns False (NAK), and changes nothing, if the server does not offer one of them or it cannot be disabled.
        """
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
        """Handle ``CAP END``: the registration of the session goes on."""
        self.pending = False

    def withdraw(self, names: Iterable[str]) -> None:
        """Handle ``CAP DEL``: disable capabilities that the server no longer offers."""
        self.enabled = shared(self.enabled.difference(names))

    def offer(self, offered: Mapping[str, str | None]) -> list[str]:
        """Return the capabilities as ``CAP LS`` and ``CAP NEW`` list them for this client.

        ``offered``: value of each capability, None without value; only clients of version 302 are shown values.
        """
        if self.version < VERSION_302:
            return list(offered)
        return [str(Capability(name, value)) for name, value in offered.items()]


def lines(words: Iterable[str], budget: int) -> list[str]:
    """Return the words as lines of at most ``budget`` bytes, separated by spaces.

    Without words, one empty line is returned.
    """
    wrapped = [""]
    for word in words:
        longer = f"{wrapped[-1]} {word}" if wrapped[-1] else word
        if wrapped[-1] and len(longer.encode()) > budget:
            wrapped.append(word)
        else:
            wrapped[-1] = longer
    return wrapped
