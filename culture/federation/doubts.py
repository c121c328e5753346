"""What a peer says of a server that is linked to us itself: kept aside, and believed only if that link breaks."""

from collections import deque
from collections.abc import Container
from typing import NamedTuple

from culture.federation.link import Link
from culture.protocol.message import Message
from culture.server.core.ids import EventId

_MOST = 10_000
MOST_NOTED = 500_000


class _Doubt(NamedTuple):
    line: Message | None
    since: float


_Key = tuple[Link, str, str, int]


class Doubts:
    """In a ring every message comes by two ways; most are soon known from the server itself, and forgotten here.

    Those that are not may never come that way: the link was broken already, and only its other end knew.
    """

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._doubts: dict[_Key, _Doubt] = {}
        self._positions: dict[Link, dict[_Key, int]] = {}
        self._links: dict[tuple[str, str, int], list[Link]] = {}
        self._unasked: deque[_Key] = deque()
        self._unreached: dict[str, dict[_Key, None]] = {}
        """By origin: those about which its server cannot be asked before it is linked."""

    def note(self, link: Link, line: Message, stamp: EventId, position: int | None, now: float) -> bool:
        """Keep it for a while; where there are too many, not its line: it comes again with the next link.

        False where there are far too many: then that link has to come soon.
        """
        self.expire(now)
        key = (link, stamp.origin, stamp.epoch, stamp.seq)
        known = self._doubts.get(key)
        if known is None:
            if len(self._doubts) >= MOST_NOTED:
                return False
            self._unasked.append(key)
            self._links.setdefault(key[1:], []).append(link)
        # Told once more it is as old as it was: those behind it would have to wait with it.
        since = now if known is None else known.since
        self._doubts[key] = _Doubt(line if len(self._doubts) < _MOST else None, since)
        if position is not None:
            self._positions.setdefault(link, {})[key] = position
        return True

    def resolve(self, stamp: EventId) -> list[Link]:
        """This message is known; those who told it before they were believed."""
        links = self._links.pop(stamp[:3], []) if self._links else []
        for link in links:
            self._drop((link, *stamp[:3]))
        return links

    def overdue(self, before: float, linked: Container[str]) -> list[tuple[str, Message]]:
        """Whom to ask about what has been in doubt since then: each once, as soon as they are linked."""
        due = [key for origin in self._unreached if origin in linked for key in self._unreached[origin]]
        while self._unasked:
            doubt = self._doubts.get(self._unasked[0])
            if doubt is not None and doubt.since > before:
                break
            key = self._unasked.popleft()
            if doubt is not None and key[1] in linked:
                due.append(key)
            elif doubt is not None:
                self._unreached.setdefault(key[1], {})[key] = None
        for origin in [origin for origin in self._unreached if origin in linked]:
            del self._unreached[origin]
        lines = [(key[1], self._doubts[key].line) for key in due]
        return [(origin, line) for origin, line in lines if line is not None]

    def first(self, link: Link) -> int | None:
        """The position in the peer's log of its first message that is in doubt."""
        positions = self._positions.get(link)
        return next(iter(positions.values()), None) if positions else None

    def take(self) -> list[tuple[Link, Message]]:
        """All that is in doubt, to be looked at anew."""
        taken = [(key[0], doubt.line) for key, doubt in self._doubts.items() if doubt.line is not None]
        for key in [key for key, doubt in self._doubts.items() if doubt.line is not None]:
            self._drop(key)
        return [(link, line) for link, line in taken if line is not None]

    def forget(self, link: Link) -> None:
        """The link is gone: what it said comes again with the next one."""
        for key in [key for key in self._doubts if key[0] is link]:
            self._drop(key)
        self._positions.pop(link, None)

    def expire(self, now: float) -> None:
        """By now a broken link would have been noticed: whoever is linked to us does not mean us to have it."""
        while self._doubts and next(iter(self._doubts.values())).since < now - self._patience:
            self._drop(next(iter(self._doubts)))

    def _drop(self, key: _Key) -> None:
        self._doubts.pop(key, None)
        if (unreached := self._unreached.get(key[1])) is not None:
            unreached.pop(key, None)
            if not unreached:
                del self._unreached[key[1]]
        self._positions.get(key[0], {}).pop(key, None)
        links = self._links.get(key[1:])
        if links is not None and key[0] in links:
            links.remove(key[0])
            if not links:
                del self._links[key[1:]]
