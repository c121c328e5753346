"""Brings alerts to one place: at once when it may, else several as one as soon as it may."""

import asyncio
from collections.abc import Awaitable, Callable

from culture.clients.shared.bus import MessageBus
from culture.clients.shared.webhook.alerts import Alert, Bundle
from culture.clients.shared.webhook.coalescing import Bucket, Pending
from culture.clients.shared.webhook.journal import Journal
from culture.runtime import REAL, Runtime

Deliver = Callable[[Bundle], Awaitable[None]]
Sleep = Callable[[float], Awaitable[object]]


class Courier:
    """What waits for one place; a lane of the bus carries it there, one bundle at a time."""

    def __init__(
        self,
        place: str,
        deliver: Deliver,
        bucket: Bucket,
        journal: Journal,
        bus: MessageBus,
        sleep: Sleep = asyncio.sleep,
        *,
        runtime: Runtime = REAL,
    ) -> None:
        self._place = place
        self._deliver = deliver
        self._bucket = bucket
        self._journal = journal
        self._sleep = sleep
        self._runtime = runtime
        self._pending = Pending()
        self._row: int | None = None
        self._idle = asyncio.Event()
        self._idle.set()
        # Only a nudge goes through the lane; what waits is here, and however much it is, it is a few lines and a count.
        self._lane = bus.lane(f"alerts to {place}", self._bring, longest=1)

    def put(self, alert: Alert) -> None:
        """Tell this; never waits."""
        if self._row is None:
            self._row = self._journal.decided(self._place, alert)
        else:
            self._journal.joined(self._row)
        self._pending.add(alert)

    def nudge(self) -> None:
        """Set out with what waits."""
        if self._pending:
            self._idle.clear()
            self._lane.put(None)

    def hurry(self) -> tuple[Bundle, int] | None:
        """What waits, to be told by the caller; None when nothing does."""
        if not self._pending:
            return None
        alerts, more = self._pending.take()
        row, self._row = self._row, None
        assert row is not None
        return Bundle(self._runtime.token_hex(16), alerts, more, self._runtime.utc()), row

    @property
    def may_go(self) -> bool:
        """Whether something may be told right now; if so, that is one less."""
        return not self._pending and self._bucket.take()

    async def drained(self) -> None:
        """Wait until nothing waits and nothing is under way."""
        await self._idle.wait()

    async def _bring(self, nudge: None) -> None:
        while self._pending:
            while not self._bucket.take():
                await self._sleep(self._bucket.wait())
            if (taken := self.hurry()) is not None:
                bundle, row = taken
                await self._deliver(bundle)
                self._journal.settled(row)
        self._idle.set()
