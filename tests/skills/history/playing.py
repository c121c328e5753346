"""Clients of a server with a history, and what CHATHISTORY and HISTORY MISSED answer them."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from culture.protocol.message import Message
from culture.protocol.vocabulary import BatchType
from culture.server.ircd import IRCd
from tests.server.logins import ByPassword
from tests.support.client import Client, connected
from tests.support.clock import Clock, ClockedRuntime
from tests.support.servers import config_for

CAPS = "message-tags server-time batch echo-message draft/chathistory"
EVENTS = f"{CAPS} draft/event-playback"
ALL = "timestamp=2000-01-01T00:00:00.000Z timestamp=2200-01-01T00:00:00.000Z 100"
END = ("*", "End of results")
"""How the last answer of HISTORY MISSED ends."""


class Room:
    """Clients of one server, closed with the test; who comes as ``account`` is logged in to it."""

    def __init__(self, ircd: IRCd, clock: Clock, stack: AsyncExitStack) -> None:
        self.ircd = ircd
        self.clock = clock
        self._stack = stack

    async def join(self, nick: str, *channels: str, caps: str = CAPS, account: str = "") -> Client:
        """Somebody in these channels."""
        client = await self._stack.enter_async_context(connected(self.ircd.port))
        if account:
            client.send(f"PASS {account}")
        await client.register(nick, caps)
        for channel in channels:
            await client.join(channel)
        return client

    async def say(self, client: Client, target: str, *texts: str, apart: float = 1.0) -> list[Message]:
        """One message after the other, so many seconds apart; as they come back."""
        echoes = []
        for text in texts:
            self.clock.now += apart
            client.send(f"PRIVMSG {target} :{text}")
            echoes.append(await client.expect("PRIVMSG", target, text))
        self.clock.now += 1
        return echoes


@asynccontextmanager
async def room(folder: Path, **settings: Any) -> AsyncIterator[Room]:
    """A server whose clock stands still until told."""
    clock = Clock()
    ircd = IRCd(config_for(folder, **settings), runtime=ClockedRuntime(clock), authenticator=ByPassword())
    async with ircd.running(), AsyncExitStack() as stack:
        yield Room(ircd, clock, stack)


async def history(client: Client, question: str, target: str | None = None) -> list[Message]:
    """What is in the batch that answers."""
    await client.sync()
    answer = await client.ask(f"CHATHISTORY {question}")
    assert answer and answer[0].verb == "BATCH", answer
    opening, *rows, closing = answer
    name, kind, *about = opening.params
    assert (closing.verb, closing.params) == ("BATCH", (f"-{name[1:]}",))
    assert kind == ("draft/chathistory-targets" if question.startswith("TARGETS") else "chathistory")
    if target is not None:
        assert about == [target]
    assert all(row.tags.get("batch") == name[1:] for row in rows)
    return rows


async def texts(client: Client, question: str) -> list[str]:
    """The texts in it."""
    return [row.params[-1] for row in await history(client, question)]


async def targets(client: Client, between: str = ALL) -> list[str]:
    """Where there is something to read, by CHATHISTORY TARGETS."""
    return [row.params[1] for row in await history(client, f"TARGETS {between}")]


async def failure(client: Client, question: str) -> tuple[str, ...]:
    """The words of the FAIL that answers, without its text."""
    await client.sync()
    [answer] = await client.ask(f"CHATHISTORY {question}")
    assert (answer.verb, answer.params[0]) == ("FAIL", "CHATHISTORY")
    return answer.params[1:-1]


async def answer(client: Client, *references: str) -> tuple[list[Message], tuple[str, ...]]:
    """What is in the batch that answers HISTORY MISSED, and the words of the line that ends it."""
    await client.sync()
    rows = await client.ask(f"HISTORY MISSED {' '.join(references)}")
    opening, *rows, closing = rows
    name, kind = opening.params
    assert (kind, closing.params) == (BatchType.MISSED.value, (f"-{name[1:]}",))
    inner = {row.params[0][1:] for row in rows if row.verb == "BATCH"}
    assert all(row.tags.get("batch") in {name[1:], *inner} or row.params[0][1:] in inner for row in rows)
    assert rows[-1].verb == "HISTORYEND"
    return rows[:-1], rows[-1].params


async def all_missed(client: Client, *references: str) -> list[Message]:
    """What is in all of its pages."""
    found, end = await answer(client, *references)
    while end != END:
        assert (end[0], end[2:]) == ("*", ("More",)) and found
        more, end = await answer(client, end[1])
        found += more
    return found


async def missed(client: Client, *references: str) -> list[str]:
    """The texts in them."""
    return [row.params[-1] for row in await all_missed(client, *references)]
