"""People on every server of a mesh who talk while links break and servers die, and what must be true afterwards."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from culture.protocol.names import short_name
from culture.skills.history.sqlite import SQLiteStore
from tests.support.client import Client
from tests.support.clock import sleep
from tests.support.mesh import Edge, Member, Mesh

CHANNEL = "#rumours"
CAPS = "message-tags echo-message agentirc.dev/receipts"
QUICK = {"ping": "1s", "timeout": "4s"}
"""How soon links are found broken, in tests."""
RING = ("spark", "thor", "odin", "loki", "freya")
CHORD = [(RING[number], RING[(number + 1) % 5]) for number in range(5)] + [("spark", "odin")]
"""Five servers in a ring with one chord."""
_SETTLING = 180.0
_LOG = 40
_LOOK_AGAIN = 0.25


@dataclass
class Rumours:
    """What was said, what of it the speakers were told is stored, and what each connection has heard."""

    mesh: Mesh
    clients: int
    pace: float
    """Seconds between two messages of a client."""
    said: int = 0
    stored: set[str] = field(default_factory=set)
    heard: list[Counter[str]] = field(default_factory=list)
    """The messages of each connection; one that comes back after its server died is another."""
    cuts: int = 0
    kills: int = 0
    is_talking: bool = True

    @asynccontextmanager
    async def going(self) -> "AsyncIterator[Rumours]":
        """Everybody is there and talks."""
        names = list(self.mesh.members)
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(self._person(name, f"{short_name(name)}-p{number}", number / self.clients))
                for name in names
                for number in range(self.clients)
            ]
            try:
                await self._until_all_talk(len(tasks))
                yield self
            finally:
                for task in tasks:
                    task.cancel()

    async def _until_all_talk(self, people: int) -> None:
        async with asyncio.timeout(_SETTLING):
            while sum(1 for heard in self.heard if heard) < people:
                await sleep(_LOOK_AGAIN)

    async def _person(self, server: str, nick: str, offset: float) -> None:
        """Comes back as often as the server does."""
        while True:
            with suppress(OSError, EOFError, TimeoutError):
                async with self.mesh.client(server, nick, CAPS) as client:
                    await client.join(CHANNEL)
                    heard: Counter[str] = Counter()
                    self.heard.append(heard)
                    speaking = asyncio.create_task(self._speak(client, offset))
                    try:
                        await self._listen(client, heard)
                    finally:
                        speaking.cancel()
            await sleep(0.2)

    async def _speak(self, client: Client, offset: float) -> None:
        await sleep(offset * self.pace)
        while self.is_talking:
            self.said += 1
            client.send(f"PRIVMSG {CHANNEL} :{client.nick} {self.said}")
            await sleep(self.pace)
        while True:
            client.send("PING still here")
            await sleep(self.pace)

    async def _listen(self, client: Client, heard: Counter[str]) -> None:
        while True:
            message = await client.receive()
            if message.verb == "PRIVMSG":
                heard[message.tags["msgid"]] += 1
            elif message.tags.get("agentirc.dev/receipt") == "stored":
                self.stored.add(message.tags["+draft/reply"])
            client.seen.clear()

    async def break_things(self, edges: Sequence[Edge], seconds: float, kills: int, chance: random.Random) -> None:
        """Cut, swallow and heal links, and kill servers, for so long."""
        ends = asyncio.get_running_loop().time() + seconds
        names = list(self.mesh.members)
        async with asyncio.TaskGroup() as group:
            for edge in edges:
                group.create_task(self._trouble(edge, ends, random.Random(chance.random())))
            for number in range(kills):
                group.create_task(self._kill(names, seconds * (number + 0.6) / (kills + 0.6), chance))

    async def _trouble(self, edge: Edge, ends: float, chance: random.Random) -> None:
        proxy, loop = self.mesh.proxy(*edge), asyncio.get_running_loop()
        while loop.time() < ends:
            await sleep(min(chance.uniform(1.0, 8.0), max(0.0, ends - loop.time())))
            self.cuts += 1
            (proxy.drop if chance.random() < 0.3 else proxy.cut)()
            await sleep(chance.uniform(0.3, 5.0))
            proxy.heal()

    async def _kill(self, names: Sequence[str], when: float, chance: random.Random) -> None:
        await sleep(when)
        name = chance.choice([name for name in names if self.mesh.members[name].is_running])
        await self.mesh.kill(name)
        self.kills += 1
        await sleep(chance.uniform(0.2, 2.0))
        await self.mesh.start(name)

    async def settle(self) -> set[str]:
        """Everything is whole again: wait until every history has the same messages, and return them."""
        self.is_talking = False
        everywhere: set[str] = set()
        try:
            async with asyncio.timeout(_SETTLING):
                while True:
                    await sleep(_LOOK_AGAIN)
                    kept, before = await asyncio.to_thread(self._kept), everywhere
                    everywhere = set().union(*kept.values())
                    is_equal = self.stored <= everywhere and all(ids == everywhere for ids in kept.values())
                    if is_equal and everywhere == before:
                        return everywhere
        except TimeoutError:
            missing = {name: sorted(everywhere - ids)[:5] for name, ids in kept.items()}
            counts = {name: len(ids) for name, ids in kept.items()}
            lost = f"{counts}, stored and gone {self.stored - everywhere}, missing {missing}"
            logs = [line for name, ids in missing.items() if ids for line in (f"{name}:", *self._told_by(name))]
            raise AssertionError("\n".join((lost, *logs))) from None

    def _told_by(self, name: str) -> list[str]:
        """How a server says that its links are, and the end of its log."""
        member = self.mesh.members[name]
        status = member.data / "federation" / "status.json"
        return [status.read_text() if status.exists() else "no status", *member.log[-_LOG:]]

    def _kept(self) -> dict[str, set[str]]:
        return {name: {heard.msgid for heard in self.mesh.history(name, CHANNEL)} for name in self.mesh.members}

    def check(self) -> None:
        """Every history has each message once, at the same time and in the order of times; nobody heard one twice."""
        histories = [_timed(self.mesh.members[name]) for name in self.mesh.members]
        for history in histories:
            assert max(Counter(id for _, id in history).values()) == 1
            assert [at for at, _ in history] == sorted(at for at, _ in history)
            assert sorted(history) == sorted(histories[0])
        twice = [id for heard in self.heard for id, times in heard.items() if times > 1]
        assert not twice, f"{len(twice)} heard twice: {twice[:5]}"


def _timed(server: Member) -> list[tuple[int, str]]:
    """The time and id of each message, in the order in which the history has them."""
    store = SQLiteStore(server.data / "history" / "history.db")
    entries = (kept.entry for kept in store.everything(CHANNEL))
    return [(entry.at, entry.msgid) for entry in entries if entry.verb == "PRIVMSG"]
