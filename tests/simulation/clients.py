"""People on simulated servers: raw IRC clients that note what they said and what they were shown.

A person has one nick and one account, connects, comes back after each end of a connection, and is asked by the
invariants (``invariants.py``) what it knows. What it does meanwhile is decided by its workload.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from culture.protocol.message import Message
from culture.protocol.names import fold
from tests.simulation.servers import PORT, SimServer

if TYPE_CHECKING:
    from tests.simulation.world import Host, World

CAPS = "message-tags server-time echo-message batch agentirc.dev/receipts draft/message-redaction"
ASKS = "draft/chathistory"
"""A session with this capability asks for the history; one without it is shown some of it on JOIN."""
_CONNECT = 5.0
_ANSWER = 20.0
_REFUSALS = ("FAIL", "403", "442")


@dataclass(slots=True, eq=False)
class SaidMessage:
    """Something that a person has said."""

    by: "Person"
    target: str
    text: str
    life: int
    """Which life of the server it was said to."""
    msgid: str = ""
    """Known once the echo has come."""
    is_receipted: bool = False
    is_taken_back: bool = False
    """Whether REDACT was sent; whether it had an effect is not known without an echo."""
    redacted_at: float | None = None
    """When the server said that it was taken back."""
    redacted_life: int = -1


@dataclass(slots=True)
class Session:
    """One connection: what was heard over it."""

    number: int
    life: int
    joined: set[str] = field(default_factory=set)
    modes: dict[str, str] = field(default_factory=dict)
    """By channel, as last told."""
    heard: Counter[str] = field(default_factory=Counter)


class Person:
    """Somebody on a server."""

    def __init__(self, world: "World", host: "Host", server: SimServer, nick: str, account: str) -> None:
        self.world, self.host, self.server = world, host, server
        self.first_nick = self.nick = nick
        self.account = account
        self.chance: random.Random = world.generator(nick)
        self.channels: list[str] = []
        """Joined on each connect; a key may stand behind the name."""
        self.wanted_modes: dict[str, str] = {}
        """By channel the modes that it sets on each JOIN, if it may."""
        self.facts: dict[str, bool] = {}
        """By key whether the server has said that it kept the fact."""
        self.asks = True
        self.said: list[SaidMessage] = []
        self.by_msgid: dict[str, SaidMessage] = {}
        self.heard: dict[str, str] = {}
        """Everything that was ever heard, with its text."""
        self.doubles: list[tuple[str, str]] = []
        self.session: Session | None = None
        self.sessions = 0
        self.is_talking = True
        self.pace = (0.05, 2.0)
        """The shortest and the longest seconds between two acts."""
        self.silent, self.dead = 4.0, 8.0
        """Seconds of silence after which the server is asked, and after which the connection is given up."""
        self.on_message: Callable[[Message], None] = lambda line: None
        """Called with each message that is heard."""
        self.act: Callable[[Person], Awaitable[None]] | None = None
        """Does one thing; called again and again while connected."""
        self.failures: list[str] = []
        self._by_text: dict[str, SaidMessage] = {}
        self._writer: asyncio.StreamWriter | None = None
        self._last = 0.0
        self._answer: asyncio.Future[list[Message]] | None = None
        self._lines: list[Message] = []
        self._end = ""

    @property
    def is_there(self) -> bool:
        """Return whether it is connected and in all its channels."""
        return self.session is not None and {fold(name.split()[0]) for name in self.channels} <= self.session.joined

    async def run(self) -> None:
        """Connect again and again."""
        while True:
            try:
                await self._connected()
            except (OSError, EOFError, TimeoutError):
                pass
            self.session = None
            if self._answer is not None and not self._answer.done():
                self._answer.cancel()
            await asyncio.sleep(self.chance.uniform(0.2, 1.0))

    async def _connected(self) -> None:
        async with asyncio.timeout(_CONNECT):
            reader, self._writer = await asyncio.open_connection(self.server.address, PORT)
        self._last = self.world.now
        self.nick = self.first_nick
        self.sessions += 1
        self.session = None
        try:
            self.send(f"CAP REQ :{CAPS} {ASKS if self.asks else ''}".rstrip(), "CAP END")
            self.send(f"PASS {self.account}", f"NICK {self.nick}", "USER u 0 * :person")
            reading = asyncio.create_task(self._read(reader))
            try:
                await self._live(reading)
            finally:
                reading.cancel()
        finally:
            self._writer.close()

    def send(self, *lines: str) -> None:
        """Send these lines."""
        assert self._writer is not None
        if not self._writer.is_closing():
            self._writer.write("".join(f"{line}\r\n" for line in lines).encode())

    async def _live(self, reading: "asyncio.Task[None]") -> None:
        while True:
            await asyncio.wait([reading], timeout=self.chance.uniform(*self.pace))
            if reading.done():
                reading.result()
                return
            silent = self.world.now - self._last
            if silent > self.dead:
                return
            if silent > self.silent:
                self.send("PING :there")
            if self.is_talking and self.is_there and self.act is not None:
                await self.act(self)

    async def _read(self, reader: asyncio.StreamReader) -> None:
        while True:
            line = await reader.readuntil(b"\n")
            self._last = self.world.now
            self._take(Message.parse(line.decode().rstrip("\r\n")))

    def say(self, target: str, text: str) -> SaidMessage:
        """Say something to a channel or a nick; texts must be unique."""
        assert self.session is not None
        said = SaidMessage(self, target, text, self.session.life)
        self.said.append(said)
        self._by_text[text] = said
        self.send(f"PRIVMSG {target} :{text}")
        return said

    async def ask(self, line: str, end: str) -> list[Message]:
        """Send a line and return everything up to the first line whose verb is ``end``, or a refusal."""
        self._lines, self._end = [], end
        self._answer = asyncio.get_running_loop().create_future()
        self.send(line)
        async with asyncio.timeout(_ANSWER):
            return await self._answer

    def _take(self, line: Message) -> None:
        if self._answer is not None and not self._answer.done():
            self._lines.append(line)
            begins_batch = line.verb == "BATCH" and line.params[0][0] == "+"
            if line.verb in _REFUSALS or (line.verb == self._end and not begins_batch):
                self._answer.set_result(self._lines)
        method = _TAKES.get(line.verb)
        if method is not None:
            method(self, line)

    def _welcomed(self, line: Message) -> None:
        self.nick = line.params[0]  # another one, if our user was here all the time
        self.session = Session(self.sessions, self.server.lives)
        for channel in self.channels:
            self.send(f"JOIN {channel}")

    def _in_use(self, line: Message) -> None:
        self.send(f"NICK {self.first_nick}x")  # our old connection is not lost yet

    def _joined(self, line: Message) -> None:
        if self.session is not None:
            channel = fold(line.params[1])
            self.session.joined.add(channel)
            if channel in self.wanted_modes:
                self.send(f"MODE {channel} {self.wanted_modes[channel]}", f"MODE {channel}")

    def _modes(self, line: Message) -> None:
        if self.session is not None:
            self.session.modes[fold(line.params[1])] = line.params[2]

    def _changed(self, line: Message) -> None:
        channel = fold(line.params[0])
        if channel in self.wanted_modes and self.session is not None:
            self.session.modes.pop(channel, None)
            self.send(f"MODE {channel}")

    def put_fact(self, key: str) -> None:
        """Publish a fact of kind ``task``; keys must be unique."""
        self.facts[key] = False
        self.send(f'@+agentirc.dev/fact={{"state":"{key}"}} LEDGER PUT task {key}')

    def _kept(self, line: Message) -> None:
        if line.params[0] == "task" and line.params[1] in self.facts:
            self.facts[line.params[1]] = True

    def _ping(self, line: Message) -> None:
        self.send(f"PONG :{line.params[-1]}")

    def _parted(self, line: Message) -> None:
        if self._is_own(line) and self.session is not None:
            self.session.joined.discard(fold(line.params[0]))

    def _kicked(self, line: Message) -> None:
        if line.params[1] == self.nick and self.session is not None:
            self.session.joined.discard(fold(line.params[0]))

    def _renamed(self, line: Message) -> None:
        if self._is_own(line):
            self.nick = line.params[-1]

    def _is_own(self, line: Message) -> bool:
        return (line.source or "").partition("!")[0] == self.nick

    def _message(self, line: Message) -> None:
        if self.session is not None and not (self.asks and "batch" in line.tags):  # else it is an answer to ``ask``
            self._hear(line)
            self.on_message(line)

    def _hear(self, line: Message) -> None:
        assert self.session is not None
        if "msgid" not in line.tags:  # a further line of a message of several
            return
        msgid, text = line.tags["msgid"], line.params[-1]
        self.heard[msgid] = text
        self.session.heard[msgid] += 1
        if self.session.heard[msgid] > 1:
            self.doubles.append((msgid, text))
        said = self._by_text.get(text)
        if said is not None and self._is_own(line):
            said.msgid = msgid
            self.by_msgid[msgid] = said

    def _receipt(self, line: Message) -> None:
        said = self.by_msgid.get(line.tags.get("+draft/reply", ""))
        if said is not None and line.tags.get("agentirc.dev/receipt") == "stored":
            said.is_receipted = True

    def _redacted(self, line: Message) -> None:
        said = self.by_msgid.get(line.params[1])
        if said is not None and said.redacted_at is None:
            said.redacted_at, said.redacted_life = self.world.now, self.server.lives


_TAKES: dict[str, Callable[[Person, Message], None]] = {
    "001": Person._welcomed,
    "433": Person._in_use,
    "324": Person._modes,
    "366": Person._joined,
    "LEDGEREND": Person._kept,
    "MODE": Person._changed,
    "PING": Person._ping,
    "PART": Person._parted,
    "KICK": Person._kicked,
    "NICK": Person._renamed,
    "PRIVMSG": Person._message,
    "TAGMSG": Person._receipt,
    "REDACT": Person._redacted,
}
