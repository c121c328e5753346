"""Removing what is older, or more, than the settings want to keep: little by little, beside everything else."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import NamedTuple

from culture.config.skills import HistoryConfig, Retention
from culture.protocol.names import fold
from culture.server.core.ids import MICROSECONDS
from culture.skills.history.archive import Archive
from culture.skills.history.store import Stats, Store, Unavailable

log = logging.getLogger(__name__)

PERIOD = 3600.0
"""Seconds between two looks at what is kept."""
PRIVATE = "*"
"""What the statistics call all private conversations together."""
_FEW, _MANY = 250, 1_000
_SHORT, _FIRST = MICROSECONDS, 3600 * MICROSECONDS


class Excess(NamedTuple):
    """What is to be removed: of which place (None: of all private conversations), between which times."""

    place: str | None
    first: int
    before: int


class Pieces:
    """The times up to which to remove, one after another, so that each step removes neither too little nor too much."""

    def __init__(self, excess: Excess) -> None:
        self._at = excess.first
        self._before = excess.before
        self._step = _FIRST

    def __iter__(self) -> Iterator[int]:
        while self._at < self._before:
            self._at = min(self._at + self._step, self._before)
            yield self._at

    def removed(self, number: int) -> None:
        """The last step removed so many."""
        if number < _FEW:
            self._step *= 2
        elif number > _MANY:
            self._step = max(self._step // 2, _SHORT)


def excess(store: Store, stats: Stats, keep: Retention, now: int) -> Excess | None:
    """What of a place is more than is to be kept."""
    place = None if stats.name == PRIVATE else fold(stats.name)
    cuts = [] if keep.age is None else [now - int(keep.age * MICROSECONDS)]
    if keep.size is not None and (cut := store.cutoff(place, keep.size)) is not None:
        cuts.append(cut)
    before = max(cuts, default=0)
    return Excess(place, stats.first, before) if stats.first < before else None


class Keeper:
    """Looks again and again whether there is more than is to be kept.

    ``removed`` hears of which channel everything from before which time (microseconds) was removed.
    """

    def __init__(
        self, archive: Archive, settings: HistoryConfig, now: Callable[[], float], removed: Callable[[str, int], None]
    ) -> None:
        self._archive = archive
        self._now = now
        self._removed = removed
        self._others = settings.keep
        self._private = settings.private
        self._channels = {fold(channel): keep for channel, keep in settings.channels.items()}

    @property
    def is_needed(self) -> bool:
        """Do the settings want anything removed, ever?"""
        return any(each.age or each.size for each in (self._others, self._private, *self._channels.values()))

    async def run(self) -> None:
        """Remove what is too much, now and then; ends at once where everything is kept for ever."""
        while self.is_needed:
            try:
                await self.sweep()
            except Unavailable as error:
                log.warning("nothing old is removed from the history at present: %s", error)
            await asyncio.sleep(PERIOD)

    async def sweep(self) -> None:
        """Remove what is too much by now."""
        for found in await self._archive.tend(self._excess):
            total = 0
            pieces = Pieces(found)
            for before in pieces:
                removed = await self._archive.tend(lambda store: store.prune(found.place, before))  # noqa: B023
                pieces.removed(removed)
                total += removed
            if found.place is not None:
                self._removed(found.place, found.before)
            log.info("%d old entries removed from %s", total, found.place or "private conversations")

    def _excess(self, store: Store) -> list[Excess]:
        now = int(self._now() * MICROSECONDS)
        found = (excess(store, stats, self._keep(stats.name), now) for stats in store.stats())
        return [each for each in found if each is not None]

    def _keep(self, name: str) -> Retention:
        return self._private if name == PRIVATE else self._channels.get(fold(name), self._others)
