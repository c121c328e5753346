"""Servers on a network that is a test's alone: real links and logs, no sockets, no threads, nothing by chance."""

import asyncio
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from itertools import count
from pathlib import Path
from typing import Any

from culture.config.links import Federation, LinkConfig
from culture.federation.linkfacts import LinkFacts
from culture.federation.log import EventLog
from culture.federation.mesh import Mesh
from culture.federation.peer import Peer
from culture.protocol.message import NO_TAGS
from culture.server.events import Redacted, Said
from culture.server.ircd import IRCd
from tests.support.clock import Clock, ClockedRuntime
from tests.support.servers import config_for

SECRET = "known-to-both"
_LOOKS = 40


class HandLog(EventLog):
    """A log that is written when a test says so, and read at once."""

    def begin(self) -> None:
        """No thread."""

    async def _ask(self, question: Any) -> Any:
        return question()

    def close(self, patience: float) -> None:
        """What was not written is lost."""
        self._reader.close()
        self._file.close()
        self._readers.shutdown()


class Reticent(LinkFacts):
    """Says nothing of the links: when it did would be up to the real clock."""

    def look(self, figures: Iterable[Mapping[str, Any]]) -> None:
        """Nothing is new."""


class Wire:
    """One side of a connection: what is written waits until the test carries it over."""

    def __init__(self) -> None:
        self.queue: list[bytes] = []
        self.underway: deque[bytes] = deque()
        self.other: Wire
        self.peer: Peer
        self.owner: Any = None
        self.is_open = True
        self.closing = False
        self.waiting = 0
        self.last_active = 0.0

    def flush(self) -> None:
        """At the end of a turn."""
        if self.is_open:
            self.underway.extend(self.queue)
        self.queue.clear()

    def close(self) -> None:
        """The other side hears what is underway, then the end."""
        self.flush()
        self.closing = True
        self.is_open = False

    abort = close

    def pause(self) -> None:
        """Reading is up to the test anyway."""

    resume = pause


class Server:
    """One server; ``start`` after a crash goes on with what was on disk."""

    def __init__(self, folder: Path, name: str, clock: Clock, links: tuple[LinkConfig, ...], **federation: Any) -> None:
        self._folder = folder
        self.name = name
        self._clock = clock
        self._links = links
        self._federation = Federation(**federation)
        self._sent = count(1)
        self.told: list[str] = []
        """What operators were told."""
        self.published: Counter[str] = Counter()
        """The messages of this life, and how often."""
        self.shown: list[Said | Redacted] = []

    async def start(self) -> None:
        self.ircd = IRCd(
            config_for(
                self._folder,
                name=self.name,
                links=self._links,
                federation=self._federation,
                history={"enabled": False},
                urlindex={"enabled": False},
            ),
            runtime=ClockedRuntime(self._clock),
        )
        mesh = self.ircd.parts.skills.get("federation")
        assert isinstance(mesh, Mesh)
        self.mesh = mesh
        mesh.log = HandLog(mesh.host.folder / "log.db", mesh.backfill.settled, self.told.append)
        mesh.link_facts = Reticent(mesh, mesh.host)
        self.published = Counter()
        self.shown = []
        self.ircd.parts.router.subscribe(self._note, Said, Redacted)
        await self.ircd.parts.skills.start()

    async def crash(self) -> None:
        """kill -9."""
        await self.ircd.parts.tasks.stop()
        self.mesh.log.close(0)
        self.ircd._lock.release()

    def _note(self, event: Said | Redacted) -> None:
        self.published[event.id.msgid] += 1
        self.shown.append(event)

    def say(self, channel: str, text: str = "", **more: Any) -> str:
        """Somebody here says something to a channel, or to a nick."""
        parts = self.ircd.parts
        stamp = parts.router.ids.stamp()
        text = text or f"{self.name} {next(self._sent)}"
        source = f"{self.name}-ori!~ori@127.0.0.1"
        with parts.turn():
            parts.router.publish(Said(stamp, source, "PRIVMSG", channel, text, None, "human", NO_TAGS, **more))
        return stamp.msgid

    def take_back(self, target: str, msgid: str) -> None:
        """Somebody here takes a message back."""
        parts = self.ircd.parts
        with parts.turn():
            parts.router.publish(
                Redacted(parts.router.ids.stamp(), f"{self.name}-ori!~ori@127.0.0.1", target, msgid, None)
            )

    def write(self) -> None:
        """What waits is on disk."""
        while self.mesh.log.waiting:
            assert self.mesh.log.write_some()

    def kept(self) -> set[str]:
        """The ids in its log, on disk or not."""
        entries = {entry.position: entry for entry in self.mesh.log._reader.after(0, 1_000_000)}
        entries |= {entry.position: entry for entry in self.mesh.log.recent if entry.channel}
        return {entry.data.partition("id=")[2].partition(";")[0] for entry in entries.values()}


class Net:
    """Servers, and the links between them."""

    def __init__(self, folder: Path, edges: list[tuple[str, str]], **more: Any) -> None:
        self.clock = Clock()
        self.edges = edges
        self.wires: dict[tuple[str, str], tuple[Wire, Wire]] = {}
        trust = more.pop("trust", {})
        names = sorted({name for edge in edges for name in edge})
        self.servers = {
            name: Server(
                folder / name,
                name,
                self.clock,
                tuple(
                    LinkConfig(name=other, secret=SECRET, **trust.get((name, other), {}))
                    for edge in edges
                    if name in edge
                    for other in edge
                    if other != name
                ),
                **more,
            )
            for name in names
        }
        self.down: set[str] = set()
        self._half_open: list[tuple[str, Wire]] = []

    async def start(self) -> None:
        for server in self.servers.values():
            await server.start()
        await self.breathe()

    async def stop(self) -> None:
        for name, server in self.servers.items():
            if name not in self.down:
                await server.crash()

    def link(self, edge: tuple[str, str]) -> None:
        """The first dials the second; where only one side knows that an older link is broken, the other learns it."""
        broken = edge in self.wires and not all(wire.is_open for wire in self.wires[edge])
        if (edge in self.wires and not broken) or self.down & set(edge):
            return
        self._half_open += zip(edge, self.wires.get(edge, ()), strict=False)
        one, other = (self.servers[name] for name in edge)
        wires = near, far = Wire(), Wire()
        near.other, far.other = far, near
        settings = next(link for link in one._links if link.name == other.name)
        for wire, server, said in ((near, one, settings), (far, other, None)):
            wire.last_active = server.mesh.host.monotonic()
            wire.owner = wire.peer = server.mesh.adopt(wire, said)  # type: ignore[arg-type]
        self.wires[edge] = wires
        with one.ircd.parts.turn():
            near.peer.link.greet()

    def cut(self, edge: tuple[str, str], heard: bool = True) -> None:
        """Both sides notice at once; what is underway is lost."""
        for wire, name in zip(self.wires.pop(edge, ()), edge, strict=False):
            wire.is_open = False
            if heard and name not in self.down:
                with self.servers[name].ircd.parts.turn():
                    wire.peer.lost("cut")

    async def carry(self, edge: tuple[str, str], lines: int = 1_000_000) -> bool:
        """Carry so many lines over a link, in either direction; was there something?"""
        wires = self.wires.get(edge)
        if wires is None:
            return False
        some = False
        for wire, reader in zip(wires, reversed(edge), strict=True):
            chunk = b"".join(wire.underway.popleft() for _ in range(min(lines, len(wire.underway))))
            if chunk and wire.other.is_open:
                some = True
                with self.servers[reader].ircd.parts.turn():
                    wire.other.peer.receive(chunk)
            if wire.closing and not wire.underway:
                some = True
                self.cut(edge)
                break
        await self.breathe()
        return some

    async def breathe(self) -> None:
        """Let tasks go on."""
        for _ in range(_LOOKS):
            await asyncio.sleep(0)

    async def settle(self) -> None:
        """Carry and write until nothing is left to do."""
        quiet = 0
        while quiet < 2:
            await self.breathe()
            moved = [await self.carry(edge) for edge in list(self.wires)]
            waiting = [server for name, server in self.servers.items() if name not in self.down]
            writing = any(server.mesh.log.waiting for server in waiting)
            for server in waiting:
                server.write()
                with server.ircd.parts.turn():
                    server.mesh.messages.ask_owners(server.mesh.host.monotonic())
            quiet = 0 if any(moved) or writing else quiet + 1

    async def crash(self, name: str) -> None:
        """kill -9: its links break, and what was not on disk is lost."""
        self.down.add(name)
        for edge in [edge for edge in self.wires if name in edge]:
            self.cut(edge)
        await self.servers[name].crash()

    async def restart(self, name: str) -> None:
        self.down.discard(name)
        self.clock.now += 1  # to start takes its time
        await self.servers[name].start()
        await self.breathe()

    async def heal(self, *but: tuple[str, str]) -> None:
        """Everything, but for these links, is there again and has all the time it needs."""
        for name in list(self.down):
            await self.restart(name)
        for edge in but:
            self.cut(edge)
        for name, wire in self._half_open:
            if wire.is_open and wire.peer in self.servers[name].mesh.links.values():
                wire.is_open = False
                with self.servers[name].ircd.parts.turn():
                    wire.peer.lost("timeout")
        for _ in range(3):
            for edge in self.edges:
                if edge not in but:
                    self.link(edge)
            await self.settle()
