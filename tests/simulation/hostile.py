"""A hostile peer: a host that speaks the protocol between servers with a valid link, and lies.

It dials one honest server, its victim, which trusts it as the seed says. Between honest users' lines it sends attacks
(``attacks.py``): forged origins and seals, altered and repeated lines, settings that are not its own, positions and
custody of what it does not have, floods and garbage. Some end the link; it comes back.

Everything that it makes up contains ``MARK``. What its own users say does not, and they may say it.
"""

import asyncio
import random
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from culture.protocol.message import Message
from tests.simulation.servers import PORT, SimServer
from tests.simulation.workload import MAIN

if TYPE_CHECKING:
    from tests.simulation.universe import Universe

NAME = "hela"
GHOST = "ghost"
"""A server that there is not, which it says is behind it."""
MARK = "evil"
SECRET = "of-the-hostile-peer"
HUGE = 999_999_999_999_999_999
TRUSTS = ("full", "no_authority", "restricted")
_EPOCH, _LOG = "5f0c2a91", "00c0ffee00c0ffee"
_USERS = 2
_REMEMBERED = 300
_LONGEST_QUIET = 0.5
_UNBROKEN = 0.5
_IMPOSTURE = 0.2
_MICROSECONDS = 1_000_000


class HostilePeer:
    """The program on the host of the hostile peer."""

    def __init__(self, universe: "Universe") -> None:
        world = universe.world
        self.world = world
        self.chance: random.Random = world.generator(NAME)
        self.trust: str = self.chance.choice(TRUSTS)
        self.victim: SimServer = self.chance.choice(universe.servers)
        self.victim.guests[NAME] = SECRET
        self.victim.trust[NAME] = (self.trust, (MAIN,) if self.trust == "restricted" else ())
        self.others = [server.name for server in universe.servers if server is not self.victim]
        """Third servers, all of them linked to the victim."""
        if self.trust == "full" and self.chance.random() < _UNBROKEN:
            universe.faults.clear()
        self.may_speak_for_others = self.trust == "full" and bool(universe.faults)
        """Whether it is believed what it says of third servers: with full trust it is, while their own link is down."""
        self.people = [person.first_nick for person in universe.people]
        self.heard: deque[str] = deque(maxlen=_REMEMBERED)
        """The last lines of the victim, as they came."""
        self.told: deque[str] = deque(maxlen=_REMEMBERED)
        """The last lines of its own."""
        self.epochs: dict[str, str] = {}
        self.sequences: dict[str, int] = {}
        """By server the last sequence number that was heard."""
        self.is_talking = True
        self.links = self.attacks = self.count = 0
        self._seq = 0
        self._writer: asyncio.StreamWriter | None = None
        self._is_linked = False
        self._host = world.boot(world.machine(NAME))
        world.network.address_of(NAME)

    def start(self) -> None:
        """Begin to dial, again and again."""
        self._host.start(self._run())

    async def _run(self) -> None:
        while True:
            name = NAME
            if self.chance.random() < _IMPOSTURE:  # its secret is good for its own name alone
                name = self.chance.choice([self.victim.name, *self.others, GHOST, NAME.upper()])
            try:
                await self._connect(name)
            except (OSError, EOFError, TimeoutError, asyncio.LimitOverrunError):
                pass
            await asyncio.sleep(self.chance.uniform(0.1, 1.5))

    async def _connect(self, name: str) -> None:
        self._is_linked = False
        async with asyncio.timeout(5):
            reader, self._writer = await asyncio.open_connection(self.victim.address, PORT, limit=1 << 22)
        reading = asyncio.create_task(self._read(reader))
        try:
            self.send(f"PASS {SECRET}", f"SERVER {name} 1 :a server")
            self.send(f"LINK 1 {_LOG} {_EPOCH} 1 leave,ledger,open,receipt", "RESUME * 0")
            while not reading.done():
                await asyncio.wait([reading], timeout=self.chance.uniform(0.02, _LONGEST_QUIET))
                if self._is_linked and self.is_talking:
                    await self._attack()
            reading.result()
        finally:
            reading.cancel()
            self._writer.close()

    async def _attack(self) -> None:
        from tests.simulation.attacks import choose

        lines = choose(self)
        self.attacks += 1
        for line in lines:
            if self._writer is None or self._writer.is_closing():
                return
            self._writer.write(line if isinstance(line, bytes) else f"{line}\r\n".encode())
            if self.chance.random() < 0.1:
                await asyncio.sleep(self.chance.uniform(0, 0.01))

    def send(self, *lines: str) -> None:
        """Send lines."""
        assert self._writer is not None
        if not self._writer.is_closing():
            self._writer.write("".join(f"{line}\r\n" for line in lines).encode())

    async def _read(self, reader: asyncio.StreamReader) -> None:
        while True:
            text = (await reader.readuntil(b"\n")).decode().rstrip("\r\n")
            line = Message.parse(text)
            if line.verb == "PING":
                self.send(f"PONG {line.params[0]}")
            elif line.verb == "EOBACKFILL" and not self._is_linked:
                self._arrive()
            elif "id" in line.tags:
                self._remember(text, line)

    def _remember(self, text: str, line: Message) -> None:
        self.heard.append(text)
        origin, epoch, seq = line.tags["id"].rsplit(".", 2)
        if origin == NAME:
            return
        self.epochs[origin] = epoch
        self.sequences[origin] = max(self.sequences.get(origin, 0), int(seq))

    def _arrive(self) -> None:
        """Be linked, with users in the main channel."""
        self._is_linked = True
        self.links += 1
        self.send(self.link_state([self.victim.name]))
        self.send(f":{NAME} ROSTER {NAME} {_EPOCH} {self._seq}", f":{NAME} ENDROSTER {NAME}", "EOBACKFILL 0")
        for number in range(_USERS):
            self.send(*self.arrival(number))

    def arrival(self, number: int) -> list[str]:
        """Return the lines with which a user of its own comes, and into the main channel."""
        nick = self.nick(number)
        return [
            self.event(NAME, f"NICK {nick} 1 user host {NAME} + :Somebody", "account=p0;kind=human"),
            self.event(f"{nick}!user@host", f"JOIN {MAIN} +o :Somebody", "account=p0"),
        ]

    def talk(self) -> list[str]:
        """Return what a user of its own may say, to the channel or to somebody."""
        target = MAIN if self.chance.random() < 0.7 else self.chance.choice(self.people)
        user = self.user()
        return [self.event(user, f"PRIVMSG {target} :{user.partition('!')[0]} says {self.number()}", "kind=human")]

    def link_state(self, peers: Sequence[str]) -> str:
        """Return the line that says to whom it is linked."""
        version = round(self._host.runtime.now() * _MICROSECONDS)
        return f"@peers={','.join(peers)};epoch={_EPOCH} :{NAME} LINKSTATE {NAME} {version} :a server"

    def nick(self, number: int = 0) -> str:
        """Return the nick of one of its own users."""
        return f"{NAME}-u{number}"

    def user(self) -> str:
        """Return one of its own users as the source of a line."""
        return f"{self.nick(self.chance.randrange(_USERS))}!user@host"

    def event(self, source: str, words: str, tags: str = "", at: float | None = None) -> str:
        """Return an event of its own, with the next number."""
        self._seq += 1
        return self.stamped(NAME, _EPOCH, self._seq, source, words, tags, at)

    def forged(self, origin: str, source: str, words: str, tags: str = "") -> str:
        """Return an event under another server's id, with a number that this server may have used or not."""
        seq = max(1, self.sequences.get(origin, 1) + self.chance.randrange(-20, 20))
        return self.stamped(origin, self.epochs.get(origin, _EPOCH), seq, source, words, tags)

    def stamped(
        self, origin: str, epoch: str, seq: int, source: str, words: str, tags: str = "", at: float | None = None
    ) -> str:
        """Return a line with an id and a time."""
        when = round((self._host.runtime.now() if at is None else at) * _MICROSECONDS)
        line = f"@id={origin}.{epoch}.{seq};at={when}{';' if tags else ''}{tags} :{source} {words}"
        if origin == NAME:
            self.told.append(line)
        return line

    def target(self) -> str:
        """Return the main channel, or one of the people."""
        return self.chance.choice([MAIN, *self.people])

    def victims_person(self) -> str:
        """Return the nick of somebody on the victim."""
        return self.chance.choice([nick for nick in self.people if nick.startswith(f"{self.victim.name}-")])

    def others_person(self) -> str:
        """Return the nick of somebody on a third server."""
        return self.chance.choice([nick for nick in self.people if not nick.startswith(f"{self.victim.name}-")])

    def number(self) -> int:
        """Return a number for a text that shall be unique."""
        self.count += 1
        return self.count

    def lie(self) -> str:
        """Return a text that nobody has said."""
        return f"{MARK} {self.number()}"


Lines = Sequence[str | bytes]
Attack = Callable[[HostilePeer], Lines]
