"""Which links are wanted, and dialling those that are not there: again and again, ever less often."""

import asyncio
import logging
import os
import socket
from importlib import import_module
from typing import TYPE_CHECKING

from culture.config.links import LinkConfig as Settings
from culture.config.listen_policy import Tls
from culture.config.peer_uid import PortHeld, check_peer
from culture.federation import certificate
from culture.federation.trust import has_authority
from culture.lib.backoff import Backoff, delay
from culture.runtime import REAL, Runtime
from culture.server.errors import StartError
from culture.server.skill import Host

if TYPE_CHECKING:
    from culture.federation.mesh import Mesh
    from culture.federation.peer import Peer
    from culture.server.net.tls import DiallingTls

log = logging.getLogger(__name__)

_FIRST, _LONGEST, _JITTER = 0.5, 60.0, 0.5
_FOREIGN = 300.0  # until a peer that speaks another version is asked again
_STEADY, _FALLEN = 5.0, 4.0
_PATIENCE = 10.0
_HOLD = 60.0
_REFUSED = "refused: "
_SETTING = "`user: {user}` of the link in culture.yaml, or `culture mesh link NAME --user {user}`"
TOO_MANY = "Too many failed attempts"
"""How a server begins to answer who was refused again and again."""


class Call:
    """The wish for one link: whoever dials goes on as long as it is the present one."""

    def __init__(self, runtime: Runtime = REAL) -> None:
        self.now = asyncio.Event()
        """Set when there is a reason not to wait any longer."""
        self.backoff = Backoff(_FIRST, _LONGEST, jitter=_JITTER, random=runtime.chance.random)
        self.falls = 0
        """How often in a row the link fell soon after it stood."""
        self.shows_old = False
        """Whether the old secret is tried, after the new one was refused."""


class Dialler:
    """One task for each link that has an address."""

    def __init__(self, mesh: "Mesh", host: Host) -> None:
        self._mesh = mesh
        self._host = host
        self.wanted: dict[str, Settings] = {}
        self.problems: dict[str, str] = {}
        """Why a link is not there, as far as it is known."""
        self._calls: dict[str, Call] = {}
        self._held: dict[str, float] = {}

    def want(self, settings: Settings) -> None:
        """Have this link from now on."""
        name = settings.short_name
        self.wanted[name] = settings
        self._note_distrusted()
        if settings.endpoint is None:
            self._drop_call(name)
        elif name not in self._calls:
            self._calls[name] = Call(runtime=self._host.runtime)
            self._host.start(self._keep_linked(name, self._calls[name]))
        else:
            self._hurry(self._calls[name])

    def unwant(self, name: str) -> None:
        """Have it no more."""
        self.wanted.pop(name, None)
        self._note_distrusted()
        self.problems.pop(name, None)
        self._held.pop(name, None)
        self._drop_call(name)

    def _note_distrusted(self) -> None:
        """Tell the network which servers have no say, by whatever way their users are heard."""
        names = (name for name, settings in self.wanted.items() if not has_authority(settings))
        self._host.network.distrusted = frozenset(names)

    def stop(self) -> None:
        """Dial nobody any more."""
        for name in list(self._calls):
            self._drop_call(name)

    def _drop_call(self, name: str) -> None:
        call = self._calls.pop(name, None)
        if call is not None:
            call.now.set()

    def again(self, name: str) -> None:
        """The link is gone; dial it anew."""
        if name in self._calls:
            self._calls[name].now.set()

    def hold(self, name: str) -> None:
        """Neither dial nor accept it for a while."""
        self._held[name] = self._host.monotonic() + _HOLD

    def is_held(self, name: str) -> bool:
        """Did an operator end it a moment ago?"""
        return self._held.get(name, 0.0) > self._host.monotonic()

    def connect(self, name: str) -> bool:
        """Dial now; False where the peer has no address and is waited for."""
        self._held.pop(name, None)
        call = self._calls.get(name)
        if call is not None:
            self._hurry(call)
        return call is not None

    @staticmethod
    def _hurry(call: Call) -> None:
        call.backoff.reset()
        call.now.set()

    async def _keep_linked(self, name: str, call: Call) -> None:
        while self._calls.get(name) is call:
            call.now.clear()
            if name in self._mesh.links:
                await self._stand(name, call)
            elif self.is_held(name):
                await self._wait(call, self._held[name] - self._host.monotonic())
            else:
                await self._try(name, call)

    async def _stand(self, name: str, call: Call) -> None:
        """Wait while the link is there. One that falls again and again as soon as it stands is given time."""
        began = self._host.monotonic()
        call.backoff.reset()
        await call.now.wait()
        if name in self._mesh.links:
            return
        call.falls = call.falls + 1 if self._host.monotonic() - began < _STEADY else 0
        if call.falls > 1:
            chance = self._host.runtime.chance.random()
            await self._wait(call, delay(call.falls, _FIRST, _FALLEN, _JITTER, chance))

    async def _try(self, name: str, call: Call) -> None:
        """Dial once; where nothing comes of it, wait."""
        settings = self.wanted[name]
        peer = await self._dial(settings, call)
        if peer is not None:
            await self._outcome(peer)
            if name in self._mesh.links:
                self.problems.pop(name, None)
                return
            self._note(name, self._failure(peer, settings))
            call.shows_old = settings.old_secret is not None and not call.shows_old
            if peer.link.is_foreign:
                call.backoff.at_least(_FOREIGN)
        if self._calls.get(name) is call:
            await self._wait(call, call.backoff.next())

    @staticmethod
    async def _wait(call: Call, seconds: float) -> None:
        call.now.clear()
        try:
            async with asyncio.timeout(seconds):
                await call.now.wait()
        except TimeoutError:
            pass

    async def _outcome(self, peer: "Peer") -> None:
        """Wait until the link stands, or has ended."""
        try:
            async with asyncio.timeout(_PATIENCE):
                await peer.decided.wait()
        except TimeoutError:
            with self._host.turn():
                peer.link.end("No greeting")

    def _note(self, name: str, problem: str) -> None:
        """Say each new reason once; that there were too many tries is none that would help anybody."""
        before = self.problems.get(name, "")
        if before.startswith(_REFUSED) and problem.startswith(f"{_REFUSED}{TOO_MANY}"):
            return
        if name in self.wanted and before != problem:
            self.problems[name] = problem
            log.warning("no link to %s: %s", self.wanted[name].name, problem)

    def _failure(self, peer: "Peer", settings: Settings) -> str:
        """Why nothing came of a connection, and where it can be known what to do about it."""
        why = peer.link.why or "the connection was lost"
        if not peer.received:
            if not settings.encrypted:
                return f"{why}; if {settings.address} speaks TLS, the link needs its fingerprint"
            return f"{why}; is {settings.address} where it speaks TLS?" if why.startswith("TLS: ") else why
        has_none = settings.encrypted and self._own_tls() is None and "certificate" in why
        hint = "; this server has none to show, since no listener of its own has TLS" if has_none else ""
        return f"{_REFUSED}{why}{hint}"

    async def _dial(self, settings: Settings, call: Call) -> "Peer | None":
        sock: socket.socket | None = None
        try:
            async with asyncio.timeout(_PATIENCE):
                sock = await self._reach(settings)
        except PortHeld as held:
            self._note(settings.short_name, str(held))
            return None
        except (OSError, TimeoutError) as error:
            self._note(settings.short_name, f"{settings.address} cannot be reached: {_reason(error)}")
            return None
        try:
            return self._greet(sock, settings, call)
        except StartError as error:
            sock.close()
            self._note(settings.short_name, str(error))
            return None

    async def _reach(self, settings: Settings) -> socket.socket:
        """A connection to the first of the peer's addresses that takes it."""
        assert settings.endpoint is not None
        loop = asyncio.get_running_loop()
        failure: OSError = OSError("no address")
        for family, kind, number, _, address in await loop.getaddrinfo(*settings.endpoint, type=socket.SOCK_STREAM):
            sock = self._host.runtime.new_socket(family, kind, number)
            try:
                sock.setblocking(False)
                await loop.sock_connect(sock, address)
                if not settings.encrypted:
                    check_peer(sock, settings.user, _SETTING, runtime=self._host.runtime)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return sock
            except BaseException as error:
                sock.close()
                if not isinstance(error, OSError):
                    raise
                if not isinstance(failure, PortHeld):
                    failure = error
        raise failure

    def _greet(self, sock: socket.socket, settings: Settings, call: Call) -> "Peer":
        tls = self._tls(settings) if settings.encrypted else None
        with self._host.turn():
            connection = self._host.connect(sock, tls)
            peer = self._mesh.adopt(connection, settings)
            if call.shows_old and settings.old_secret is not None:
                peer.link.shows = settings.old_secret
            connection.start(peer)
            if tls is None:
                peer.link.greet()
            else:
                peer.is_encrypted = True
                peer.certificate = lambda: tls.certificate
                tls.opened = peer.link.greet
                connection.begin()
        return peer

    def _tls(self, settings: Settings) -> "DiallingTls":
        """With our own certificate, where there is one: by it the other side knows us."""
        # OpenSSL takes longer to load than the rest of the server: only those who use it wait for it.
        layer: DiallingTls = import_module("culture.server.net.tls").DiallingTls(self._own_tls(), settings.fingerprint)
        return layer

    def _own_tls(self) -> Tls | None:
        return certificate.own(self._host.config)


def _reason(error: BaseException) -> str:
    """In the system's words: what asyncio says of a refused connection is its address once more."""
    if isinstance(error, OSError) and not isinstance(error, socket.gaierror) and error.errno:
        return os.strerror(error.errno)
    return getattr(error, "strerror", None) or str(error) or "no answer"
