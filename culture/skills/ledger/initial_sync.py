"""Telling a server that was never here what was noted before it came."""

import asyncio
import logging
import sqlite3

from culture.server.core.ids import MICROSECONDS
from culture.server.events import Linked, Noted
from culture.server.skill import Host, hook
from culture.skills.keeping import Keeping
from culture.skills.ledger.facts import Fact
from culture.skills.ledger.store import LedgerStore

log = logging.getLogger(__name__)

MOST = 2_000
"""So many facts of this server are told, the newest."""
_AT_ONCE = 200


class Introduction:
    """Says the facts of this server once more, as of their own time, when a server comes of which none is known.

    The log of the links does not have what was said before the first of them, or longer ago than it goes back.
    """

    def __init__(self, host: Host, keeping: Keeping[Fact, LedgerStore]) -> None:
        self._host = host
        self._keeping = keeping
        self._known: set[str] | None = None
        """The servers of which there is a fact; None until the file was read."""
        self._came: set[str] = set()
        """Those that came before that."""

    @hook(Linked)
    def linked(self, event: Linked) -> None:
        """A server can be reached."""
        if self._known is None:
            self._came.add(event.name)
        elif event.name not in self._known:
            self._known.add(event.name)
            self._host.start(self._tell())

    @hook(Noted)
    def noted(self, event: Noted) -> None:
        """Whoever has said something here was here."""
        if self._known is not None:
            self._known.add(event.id.origin)

    async def begin(self) -> None:
        """Learn who was here before."""
        await self._keeping.opened.wait()
        try:
            known = await self._keeping.use(LedgerStore.origins)
        except (sqlite3.Error, OSError) as error:
            log.warning("who was linked before is not known: %s", error)
            known = set()
        new = self._came - known
        self._known = known | new
        self._came.clear()
        if new:
            await self._tell()

    async def _tell(self) -> None:
        try:
            facts = await self._keeping.use(lambda store: store.said_by(self._host.name, MOST))
        except (sqlite3.Error, OSError) as error:
            log.warning("a new server is not told what was noted before: %s", error)
            return
        for start in range(0, len(facts), _AT_ONCE):
            with self._host.turn():
                for fact in facts[start : start + _AT_ONCE]:
                    stamp = self._host.stamp()._replace(at=fact.at / MICROSECONDS)
                    said = (fact.nick, fact.kind, fact.key, fact.value, fact.verified, fact.why)
                    self._host.publish(Noted(stamp, *said))
            await asyncio.sleep(0)
