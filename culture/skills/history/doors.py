"""Was the channel closed when a message was said? Told to other servers, and corrected by what they tell."""

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence

from culture.protocol.names import fold
from culture.server.events import ToldOpen
from culture.server.skill import Host, hook, repeatable
from culture.skills.history.archive import Archive
from culture.skills.history.older import find_message
from culture.skills.history.store import Store, TooSlow, Unavailable

_AT_ONCE = 2_000
_MOST = 200_000  # that wait to be corrected; further ones stay closed
_AGAIN = 1.0
_TRIES = 6  # a server that starts may be linked before its history is open


class Doors:
    """Answers and corrects, message by message."""

    def __init__(self, host: Host, archive: Archive) -> None:
        self._host = host
        self._archive = archive
        self._open: deque[tuple[str, str]] = deque(maxlen=_MOST)
        self._is_at_work = False

    async def find(self, msgids: Sequence[str]) -> Mapping[str, bool]:
        """Was the channel closed when these were said? Only those that are found."""
        for _ in range(_TRIES):
            try:
                return await self._archive.read(lambda store: _find(store, msgids))
            except (Unavailable, TooSlow):
                await asyncio.sleep(_AGAIN)
        return {}

    @repeatable
    @hook(ToldOpen)
    def told(self, event: ToldOpen) -> None:
        """The server where a message was said tells that the channel was open."""
        self._open.append((fold(event.channel), event.id.msgid))
        if not self._is_at_work:
            self._is_at_work = True
            self._host.start(self._correct())

    async def _correct(self) -> None:
        while self._open:
            some = [self._open.popleft() for _ in range(min(len(self._open), _AT_ONCE))]
            try:
                await self._archive.tend(lambda store: store.reopen(some))  # noqa: B023
            except Unavailable:
                self._open.extendleft(reversed(some))
                await asyncio.sleep(_AGAIN)
        self._is_at_work = False


def _find(store: Store, msgids: Sequence[str]) -> dict[str, bool]:
    found = {msgid: find_message(store, msgid) for msgid in msgids}
    return {msgid: entry.closed for msgid, entry in found.items() if entry is not None and not entry.is_private}
