"""Which links are wanted, and dialling those that are not there: again and again, ever less often."""

import asyncio
import logging
import random
import socket
from importlib import import_module
from typing import TYPE_CHECKING

from culture.config.links import Link as Settings
from culture.server.skill import Host

if TYPE_CHECKING:
    from culture.federation.mesh import Mesh
    from culture.federation.peer import Peer
    from culture.server.layers.tls import DiallingTls

log = logging.getLogger(__name__)

_FIRST, _LONGEST = 0.5, 60.0
_PATIENCE = 10.0
_STEP = 0.02
_TRIES = 500


class Dialler:
    """One task for each link that has an address."""

    def __init__(self, mesh: "Mesh", host: Host) -> None:
        self._mesh = mesh
        self._host = host
        self.wanted: dict[str, Settings] = {}
        self._calls: dict[str, asyncio.Event] = {}

    def want(self, settings: Settings) -> None:
        """Have this link from now on."""
        name = settings.short_name
        self.wanted[name] = settings
        if settings.endpoint is not None and name not in self._calls:
            self._calls[name] = asyncio.Event()
            self._host.start(self._keep_linked(name))

    def unwant(self, name: str) -> None:
        """Have it no more."""
        self.wanted.pop(name, None)
        if name in self._calls:
            self._calls.pop(name).set()

    def again(self, name: str) -> None:
        """The link is gone; dial it anew."""
        if name in self._calls:
            self._calls[name].set()

    async def _keep_linked(self, name: str) -> None:
        pause = _FIRST
        while name in self.wanted and name in self._calls:
            call = self._calls[name]
            call.clear()
            if name in self._mesh.links:
                pause = _FIRST
                await call.wait()
                continue
            peer = await self._dial(self.wanted[name])
            if peer is not None:
                await self._outcome(peer, name)
                if name in self._mesh.links:
                    continue
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))
            pause = min(pause * 2, _LONGEST)

    async def _outcome(self, peer: "Peer", name: str) -> None:
        """Wait until the link stands, or has ended."""
        for _ in range(_TRIES):
            if name in self._mesh.links or not peer.connection.is_open or peer.connection.closing:
                return
            await asyncio.sleep(_STEP)
        with self._host.turn():
            peer.link.end("No greeting")

    async def _dial(self, settings: Settings) -> "Peer | None":
        endpoint = settings.endpoint
        if endpoint is None:
            return None
        loop = asyncio.get_running_loop()
        sock: socket.socket | None = None
        try:
            async with asyncio.timeout(_PATIENCE):
                found = await loop.getaddrinfo(*endpoint, type=socket.SOCK_STREAM)
                family, kind, number, _, address = found[0]
                sock = socket.socket(family, kind, number)
                sock.setblocking(False)
                await loop.sock_connect(sock, address)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except (OSError, TimeoutError) as error:
            if sock is not None:
                sock.close()
            log.info("%s cannot be reached at %s: %s", settings.name, settings.address, error or "no answer")
            return None
        return self._greet(sock, settings)

    def _greet(self, sock: socket.socket, settings: Settings) -> "Peer":
        tls = self._tls(settings) if settings.encrypted else None
        with self._host.turn():
            connection = self._host.connect(sock, tls)
            peer = self._mesh.adopt(connection, settings)
            connection.start(peer)
            if tls is None:
                peer.link.greet()
            else:
                peer.certificate = lambda: tls.certificate
                tls.opened = peer.link.greet
                connection.begin()
        return peer

    def _tls(self, settings: Settings) -> "DiallingTls":
        """With the certificate of our own listener, where there is one: by it the other side knows us."""
        own = next((each.tls for each in self._host.config.listen if each.tls is not None), None)
        # OpenSSL takes longer to load than the rest of the server: only those who use it wait for it.
        layer: DiallingTls = import_module("culture.server.layers.tls").DiallingTls(own, settings.fingerprint)
        return layer
