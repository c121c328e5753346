"""Send this server's facts to a server that links for the first time.

The log of federation starts with the first link, and is limited. So a server of which no fact is known gets this
server's own facts published once more, with their original time; servers that have them ignore the repetition.
"""

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
"""Number of facts sent, the newest, at most."""
_BATCH = 200


class InitialSync:
    """Publishes this server's facts again for a server that links for the first time."""

    def __init__(self, host: Host, keeping: Keeping[Fact, LedgerStore]) -> None:
        self._host = host
        self._keeping = keeping
        self._known_origins: set[str] | None = None
        """Servers that have published a fact here; None until the file is read."""
        self._linked_early: set[str] = set()
        """Servers that linked before that."""

    @hook(Linked)
    def linked(self, event: Linked) -> None:
        """Publish this server's facts again if a server has linked of which no fact is known here."""
        if self._known_origins is None:
            self._linked_early.add(event.name)
        elif event.name not in self._known_origins:
            self._known_origins.add(event.name)
            self._host.start(self._publish_facts())

    @hook(Noted)
    def noted(self, event: Noted) -> None:
        """Record the origin of a ledger fact as a server of which facts are known here."""
        if self._known_origins is not None:
            self._known_origins.add(event.id.origin)

    async def begin(self) -> None:
        """Read from the file which servers have facts here.

        If a server without facts has linked meanwhile, this server's facts are published for it.
        """
        await self._keeping.opened.wait()
        try:
            origins = await self._keeping.use(LedgerStore.origins)
        except (sqlite3.Error, OSError) as error:
            log.warning("cannot read which servers were linked before: %s", error)
            origins = set()
        new = self._linked_early - origins
        self._known_origins = origins | new
        self._linked_early.clear()
        if new:
            await self._publish_facts()

    async def _publish_facts(self) -> None:
        try:
            facts = await self._keeping.use(lambda store: store.said_by(self._host.name, MOST))
        except (sqlite3.Error, OSError) as error:
            log.warning("cannot send the earlier facts to a new server: %s", error)
            return
        for start in range(0, len(facts), _BATCH):
            with self._host.turn():
                for fact in facts[start : start + _BATCH]:
                    stamp = self._host.stamp()._replace(at=fact.at / MICROSECONDS)
                    fields = (fact.nick, fact.kind, fact.key, fact.value, fact.verified, fact.why)
                    self._host.publish(Noted(stamp, *fields))
            await asyncio.sleep(0)
