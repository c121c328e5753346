"""Agents on linked servers, people who write to them, and kills of both; what must have reached each agent."""

import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from culture.protocol.message import Message
from tests.support.client import Client
from tests.support.clock import sleep
from tests.support.fleet import CHANNELS, Agent
from tests.support.mesh import Mesh
from tests.support.waiting import PATIENCE

NAMES = ("spark", "thor", "odin")
EDGES = [("spark", "thor"), ("thor", "odin"), ("odin", "spark")]
CAPS = "message-tags echo-message agentirc.dev/receipts"
PEOPLE_EACH = 2
SETTLING = 120.0
_LOOK_AGAIN = 0.25
_REFUSED = {"401", "403", "404", "412", "442", "FAIL"}


@dataclass(frozen=True, slots=True)
class Letter:
    """One message for an agent, which its text alone identifies."""

    number: int
    agent: str
    place: str
    """The channel, or the agent's nick."""

    @property
    def word(self) -> str:
        """What no other message has."""
        return f"message-{self.number:05}"

    @property
    def text(self) -> str:
        """As it is sent."""
        return self.word if self.place == self.agent else f"@{self.agent} {self.word}"


def people_of(server: str) -> list[str]:
    """Those who write there."""
    return [f"{server}-p{number}" for number in range(PEOPLE_EACH)]


@dataclass
class Verdict:
    """What became of the messages."""

    given: int = 0
    """Receipted and seen by their agent in full, in a prompt."""
    read: int = 0
    """Receipted, counted in a prompt and read by the agent itself."""
    repeated: int = 0
    """Shown again, marked as such."""
    lost: list[str] = field(default_factory=list)
    doubles: list[str] = field(default_factory=list)
    """Shown again without a mark."""


@dataclass
class AgentStorm:
    """What people sent and were told is stored, while agents and servers are killed."""

    mesh: Mesh
    agents: list[Agent]
    messages: int
    chance: random.Random
    pause: float
    """The longest that a person rests between two messages."""
    passwords: Mapping[str, str] = field(default_factory=dict)
    """Of the people who log in, by nick."""
    attempts: int = 0
    receipted: dict[str, Letter] = field(default_factory=dict)
    senders: dict[str, str] = field(default_factory=dict)
    """Who said each of the receipted."""
    kills: Counter[str] = field(default_factory=Counter)
    settling_s: float = 0.0
    _begun: int = 0
    _down: set[str] = field(default_factory=set)

    async def rage(self, kills: int) -> None:
        """Everybody writes; daemons and servers are killed and started again; return when all of it is over."""
        async with asyncio.TaskGroup() as group:
            for server in self.mesh.members:
                for nick in people_of(server):
                    group.create_task(self._person(server, nick))
            group.create_task(self._kill_all(kills))

    # People

    async def _person(self, server: str, nick: str) -> None:
        letter = self._next()
        while letter is not None:
            with suppress(OSError, EOFError, TimeoutError):
                async with self.mesh.client(server, nick, CAPS, self.passwords.get(nick, "")) as client:
                    for channel in CHANNELS:
                        await client.join(channel)
                    while letter is not None:
                        if await self._sent(client, letter):
                            letter = self._next()
                        await sleep(self.chance.uniform(0, self.pause))
            await sleep(0.1)

    def _next(self) -> Letter | None:
        if self._begun == self.messages:
            return None
        self._begun += 1
        agent = self.chance.choice(self.agents).nick
        return Letter(self._begun, agent, self.chance.choice((*CHANNELS, agent, agent)))

    async def _sent(self, client: Client, letter: Letter) -> bool:
        """Send it once; whether the server has it on its disk."""
        self.attempts += 1
        client.send(f"PRIVMSG {letter.place} :{letter.text}")
        msgid = ""
        async with asyncio.timeout(PATIENCE):
            while True:
                message = await client.receive()
                client.seen.clear()
                if message.verb in _REFUSED:
                    return False
                if message.verb == "PRIVMSG" and message.params[-1] == letter.text:
                    msgid = message.tags["msgid"] if message.source.startswith(f"{client.nick}!") else msgid
                elif msgid and _stored(message) == msgid:
                    self.receipted[msgid] = letter
                    self.senders[msgid] = client.nick
                    return True

    # Kills

    async def _kill_all(self, kills: int) -> None:
        """One kill after every so many receipts, so that they fall into all of the traffic."""
        async with asyncio.TaskGroup() as group:
            for number in range(kills):
                goal = (number + self.chance.random()) * self.messages / kills
                while len(self.receipted) < goal:
                    await sleep(0.02)
                group.create_task(self._kill_one(self.chance.random() < 0.5))

    async def _kill_one(self, is_daemon: bool) -> None:
        """Kill something that is there; it is started again after a moment."""
        while not (there := self._there(is_daemon)):
            await sleep(0.02)
        name = self.chance.choice(there)
        self._down.add(name)
        self.kills["daemons" if is_daemon else "servers"] += 1
        if is_daemon:
            (agent,) = (each for each in self.agents if each.nick == name)
            await agent.daemon.kill()
            await sleep(self.chance.uniform(0.0, 1.0))
            await agent.daemon.start()
        else:
            await self.mesh.kill(name)
            await sleep(self.chance.uniform(0.0, 1.0))
            await self.mesh.start(name)
        self._down.discard(name)

    def _there(self, is_daemon: bool) -> list[str]:
        names = [agent.nick for agent in self.agents] if is_daemon else list(self.mesh.members)
        return [name for name in names if name not in self._down]

    # Afterwards

    async def settle(self, patience: float) -> None:
        """Wait until every inbox has all that was receipted, and all of it is answered."""
        began = time.monotonic()
        while time.monotonic() < began + patience and not await asyncio.to_thread(self._is_settled):
            await sleep(_LOOK_AGAIN)
        self.settling_s = time.monotonic() - began

    def _is_settled(self) -> bool:
        states = {agent.nick: agent.states() for agent in self.agents}
        everything = all(states[letter.agent].get(msgid) == "answered" for msgid, letter in self.receipted.items())
        return everything and all(state == "answered" for of_one in states.values() for state in of_one.values())

    def verdict(self) -> Verdict:
        """Hold what the agents saw against what was receipted."""
        found = Verdict()
        for agent in self.agents:
            seen: Counter[str] = Counter()
            for msgid, marked in agent.shown():
                seen[msgid] += 1
                if seen[msgid] > 1 and not marked:
                    found.doubles.append(msgid)
                found.repeated += marked
            states, read = agent.states(), agent.read()
            for msgid, letter in self.receipted.items():
                if letter.agent != agent.nick:
                    continue
                if seen[msgid]:
                    found.given += 1
                elif states.get(msgid) == "answered" and letter.word in read:
                    found.read += 1
                else:
                    kept = [name for name in self.mesh.members if self._has(name, msgid)]
                    where = f"inbox: {states.get(msgid)}, histories: {kept}"
                    found.lost.append(f"{letter.word} {msgid} to {letter.agent} in {letter.place}; {where}")
        return found

    def _has(self, server: str, msgid: str) -> bool:
        return any(heard.msgid == msgid for heard in self.mesh.history(server))


def _stored(message: Message) -> str | None:
    """The id of the message that this says is stored."""
    is_stored = message.tags.get("agentirc.dev/receipt") == "stored"
    return message.tags.get("+draft/reply") if is_stored else None


async def delivered(
    mesh: Mesh,
    agents: list[Agent],
    *,
    messages: int,
    kills: int,
    seed: int,
    pause: float,
    settling: float = SETTLING,
) -> dict[str, float]:
    """One storm from the first message to the last agent's rest; figures, or what is wrong."""
    storm = AgentStorm(mesh, agents, messages, random.Random(seed), pause)
    await storm.rage(kills)
    await storm.settle(settling)
    verdict = await asyncio.to_thread(storm.verdict)
    assert not verdict.lost, f"{len(verdict.lost)} lost: {json.dumps(verdict.lost[:10], indent=1)}"
    assert not verdict.doubles, f"{len(verdict.doubles)} given twice without a mark: {verdict.doubles[:10]}"
    assert all(agent.daemon.is_running for agent in agents), "a daemon has ended by itself"
    assert len({letter.number for letter in storm.receipted.values()}) == messages
    return {
        "sent": storm.attempts,
        "receipted": len(storm.receipted),
        "given": verdict.given,
        "read": verdict.read,
        "repeated": verdict.repeated,
        "lost": 0,
        "unmarked_doubles": 0,
        "kills_of_daemons": storm.kills["daemons"],
        "kills_of_servers": storm.kills["servers"],
        "settling_s": storm.settling_s,
    }
