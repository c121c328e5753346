"""How a server that stops takes leave of its peers: they are told, and have what was said here before it goes."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from culture.federation.link import Stage
from culture.federation.peer import Peer
from culture.protocol.message import Message
from culture.server.skill import Host

if TYPE_CHECKING:
    from culture.federation.mesh import Mesh

_PATIENCE = (
    3.0  # seconds that peers have to confirm what they were told; what they do not, comes again with the next link
)
_LAST = 0.5  # seconds that they have to read why the link ends
_STEP = 0.01


class Farewell:
    """Says it to all of them at once, and waits for none for long."""

    def __init__(self, mesh: "Mesh", host: Host) -> None:
        self._mesh = mesh
        self._host = host
        self._wanted = 0

    async def say(self, reason: str) -> None:
        """Tell the peers that we go, wait until they have everything, and end the links."""
        mesh = self._mesh
        mesh.dialler.stop()
        self._wanted = mesh.log.position
        with self._host.turn():
            for peer in mesh.links.values():
                self._begin(peer, reason)
        patience = min(_PATIENCE, self._host.config.limits.shutdown_timeout / 2)
        await _until(lambda: all(map(self._has_all, mesh.links.values())), patience)
        with self._host.turn():
            for peer in [*mesh.links.values(), *mesh.greeters]:
                peer.link.end(reason)
        # A connection that is closed while something comes in is reset, and our last words with it.
        await _until(lambda: not any(connection.is_open for connection in mesh.closing), _LAST)

    def _begin(self, peer: Peer, reason: str) -> None:
        link = peer.link
        link.send(Message("LEAVE", (reason,), self._mesh.own))
        if link.stage is Stage.LIVE:
            # It confirms what it was told only as far as it has heard of it: of some it need not have.
            link.send(Message("ACK", (str(link.confirmed), str(self._wanted))))

    def _has_all(self, peer: Peer) -> bool:
        """Is all that was said here on its disk? Who is still told what it missed is told the rest by the next link."""
        link = peer.link
        if link.stage is not Stage.LIVE:
            return True
        waits = any(id in link.told for waiting in self._mesh.log.held.values() for id in waiting)
        return link.acked >= self._wanted and not waits


async def _until(fact: Callable[[], bool], patience: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(patience):
            while not fact():  # noqa: ASYNC110
                await asyncio.sleep(_STEP)
