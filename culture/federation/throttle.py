"""How fast a peer is read: no faster than what it says can be kept, and none so fast that nobody else has a turn."""

import asyncio
from typing import TYPE_CHECKING

from culture.federation.peer import Peer
from culture.lib.ratelimit import FixedRate, TokenBucket
from culture.server.skill import Host

if TYPE_CHECKING:
    from culture.federation.mesh import Mesh

RATE = 30_000.0  # lines a second
BURST = 60_000.0
BACKLOG = 20_000  # changes that wait to be written
_STEP = 0.02


class Throttle:
    """Pauses the reading of a connection; the peer's own system holds the rest."""

    def __init__(self, mesh: "Mesh", host: Host) -> None:
        self._mesh = mesh
        self._host = host
        self._buckets: dict[Peer, tuple[TokenBucket, int]] = {}
        self._paused: dict[Peer, None] = {}

    def note(self, peer: Peer) -> None:
        """The peer has said something."""
        if self._is_too_fast(peer) or self._is_behind():
            peer.connection.pause()
            if not self._paused:
                self._host.start(self._resume())
            self._paused[peer] = None

    def is_paused(self, peer: Peer) -> bool:
        """Is it not read at present? Then it cannot be heard either."""
        return peer in self._paused

    def forget(self, peer: Peer) -> None:
        """It is gone."""
        self._buckets.pop(peer, None)
        self._paused.pop(peer, None)

    def _is_too_fast(self, peer: Peer) -> bool:
        now = self._host.monotonic()
        bucket, received = self._buckets.get(peer) or (TokenBucket(now), 0)
        self._buckets[peer] = (bucket, peer.received)
        return bucket.spend(peer.received - received, FixedRate(BURST, RATE), now) > 0

    def _is_behind(self) -> bool:
        log = self._mesh.log
        return log.waiting > BACKLOG and not log.is_stuck

    async def _resume(self) -> None:
        while self._paused:
            await asyncio.sleep(_STEP)
            with self._host.turn():
                for peer in list(self._paused):
                    if not self._is_too_fast(peer) and not self._is_behind():
                        self._paused.pop(peer, None)
                        peer.connection.last_active = self._host.monotonic()
                        peer.connection.resume()
