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
from tests.simulation.shown import Shown

if TYPE_CHECKING:
    from tests.simulation.world import Host, World

CAPS = "message-tags server-time echo-message batch agentirc.dev/receipts draft/message-redaction"
ASKS = "draft/chathistory"
"""A session with this capability asks for the history; one without it is shown some of it on JOIN."""
AWAY = "at lunch"
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
    time: str = ""
    """When it was said, by the clock of the server."""
    at: float = 0.0
    """The same, by the world's clock."""
    is_receipted: bool = False
    is_taken_back: bool = False
    """Whether REDACT was sent; whether it had an effect is not known without an echo."""
    redacted_at: float | None = None
    """When the server said that it was taken back."""
    redacted_life: int = -1
    """Which life of the server said so."""


@dataclass(slots=True)
class PutFact:
    """A fact that an agent has sent; its times are those of the server's clock, which may jump."""

    state: str
    sent: float
    kept: float | None = None
    """When the server said that it is kept."""


@dataclass(slots=True)
class Session:
    """One connection: what was heard over it."""

    number: int
    life: int
    joined: set[str] = field(default_factory=set)
    modes: dict[str, str] = field(default_factory=dict)
    """By channel, as last told."""
    heard: Counter[str] = field(default_factory=Counter)
    texts: Counter[str] = field(default_factory=Counter)
    shown: Shown = field(default_factory=Shown)
    joined_at: dict[str, tuple[float, str]] = field(default_factory=dict)
    """By channel when it came in, by the world's clock and by that of the server."""
    away: str | None = None
    """None until the server has said it."""


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
        self.facts: dict[str, list[PutFact]] = {}
        """By key what was published, the oldest first."""
        self.asks = True
        self.topics = 0
        """How many topics it has set, so that no two are the same."""
        self.said: list[SaidMessage] = []
        self.by_msgid: dict[str, SaidMessage] = {}
        self.heard: dict[str, str] = {}
        """Everything that was ever heard, with its text."""
        self.doubles: list[tuple[str, str]] = []
        self.text_doubles: list[tuple[str, str]] = []
        """Texts that one connection was shown under two ids; whether that is wrong depends on the text."""
        self.shown_doubles: list[str] = []
        self.done: Counter[str] = Counter()
        """By command how often the server has shown that this person did it."""
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
        self._puts: list[tuple[str, PutFact]] = []
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
        said = SaidMessage(self, target, text, self.session.life, at=self.world.now)
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
        if self.session is not None:
            self.session.shown.take(line, self.nick)
        if self._is_own(line):
            self.done[line.verb] += 1
        method = _TAKES.get(line.verb)
        if method is not None:
            method(self, line)

    def _welcomed(self, line: Message) -> None:
        self.nick = line.params[0]  # another one, if our user was here all the time
        self.session = Session(self.sessions, self.server.lives)
        self.session.shown.doubles = self.shown_doubles
        self._puts.clear()
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

    def put_fact(self, key: str, state: str) -> None:
        """Publish a fact of kind ``task``; states must be unique."""
        put = PutFact(state, self._server_time)
        self.facts.setdefault(key, []).append(put)
        self._puts.append((key, put))
        self.send(f'@+agentirc.dev/fact={{"state":"{state}"}} LEDGER PUT task {key}')

    @property
    def _server_time(self) -> float:
        return self.world.now + self.server.machine.skew

    def _kept(self, line: Message) -> None:
        """The server answers in the order of the questions, and with the key."""
        if line.params[0] != "task":
            return
        put = next((each for each in self._puts if each[0] == line.params[1]), None)
        if put is not None:
            self._puts.remove(put)
            put[1].kept = self._server_time

    def _set_away(self, line: Message) -> None:
        if self.session is not None:
            self.session.away = AWAY if line.verb == "306" else ""
            self.done["AWAY"] += 1

    def _joins(self, line: Message) -> None:
        if self._is_own(line) and self.session is not None:
            self.session.joined_at[fold(line.params[0])] = (self.world.now, line.tags["time"])

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
        elif self.session.texts[text]:
            self.text_doubles.append((msgid, text))
        self.session.texts[text] += 1
        said = self._by_text.get(text)
        if said is not None and self._is_own(line):
            said.msgid, said.time = msgid, line.tags["time"]
            self.by_msgid[msgid] = said

    def _receipt(self, line: Message) -> None:
        said = self.by_msgid.get(line.tags.get("+draft/reply", ""))
        if said is not None and line.tags.get("agentirc.dev/receipt") == "stored":
            said.is_receipted = True

    def _redacted(self, line: Message) -> None:
        said = self.by_msgid.get(line.params[1])
        if said is not None and said.redacted_at is None:
            life = self.server.lives if self.session is None else self.session.life
            said.redacted_at, said.redacted_life = self.world.now, life


_TAKES: dict[str, Callable[[Person, Message], None]] = {
    "001": Person._welcomed,
    "433": Person._in_use,
    "305": Person._set_away,
    "306": Person._set_away,
    "324": Person._modes,
    "366": Person._joined,
    "JOIN": Person._joins,
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
