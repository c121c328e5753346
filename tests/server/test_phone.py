"""A phone that was out of reach for an hour lacks nothing, and knows from where on it has not read."""

from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from culture.protocol.message import Message
from culture.protocol.vocabulary import UserClass
from culture.server.auth.account_store import AccountStore
from culture.server.auth.accounts import new_account
from culture.server.ircd import IRCd
from tests.support.client import Client, connected, registered
from tests.support.clock import Clock, ClockedRuntime
from tests.support.people import PASSWORD, authenticate, come_in, plain, verifier
from tests.support.servers import config_for

CAPS = "draft/chathistory draft/read-marker batch server-time message-tags"
PAGE = 50
SAID = 170


async def phone(port: int, stack: AsyncExitStack) -> Client:
    """A device of ori's that comes in; what the server sends with that is in ``seen``."""
    client = await stack.enter_async_context(connected(port))
    client.send(f"CAP REQ :{CAPS}")
    await authenticate(client, "PLAIN", plain("ori", PASSWORD))
    await come_in(client, "spark-ori")
    return client


async def after(client: Client, target: str, time: str) -> list[Message]:
    """All that was said there since then, a page at a time, as a client asks for it."""
    found: list[Message] = []
    while True:
        lines = await client.ask(f"CHATHISTORY AFTER {target} timestamp={time} {PAGE}")
        page = [line for line in lines if line.verb == "PRIVMSG" and "batch" in line.tags]
        found += page
        if len(page) < PAGE:
            return found
        time = page[-1].tags["time"]


def marker(messages: list[Message], target: str) -> str:
    """The last that the server said of how far was read."""
    said = [line.params[1] for line in messages if line.verb == "MARKREAD" and line.params[0] == target]
    return said[-1].removeprefix("timestamp=")


@pytest.mark.fault("J2")
async def test_a_phone_that_was_offline_an_hour_gets_all_and_knows_what_is_unread(tmp_path: Path) -> None:
    store = AccountStore(tmp_path / "accounts.json", "spark")
    store.add(new_account("ori", UserClass.HUMAN, verifier=verifier(), always_on=True))
    clock = Clock()
    async with (
        IRCd(config_for(tmp_path), runtime=ClockedRuntime(clock)).running() as ircd,
        registered(ircd.port, "spark-bee", "message-tags server-time echo-message") as bee,
        AsyncExitStack() as stack,
    ):
        before = await phone(ircd.port, stack)
        await before.join("#general")
        await bee.join("#general")
        [seen] = [line for line in await bee.ask("PRIVMSG #general :seen") if line.verb == "PRIVMSG"]
        read = seen.tags["time"]
        await before.expect("PRIVMSG", "#general", "seen")
        await before.ask(f"MARKREAD #general timestamp={read}")
        before.close()
        for number in range(SAID):
            clock.now += 3600 / SAID
            await bee.ask(f"PRIVMSG #general :line {number}")
        await bee.ask("PRIVMSG spark-ori :and one for you alone")
        back = await phone(ircd.port, stack)
        # It is still in the room, and told with that how far it had read.
        assert any(line.verb == "JOIN" and line.params[0] == "#general" for line in back.seen)
        assert marker(back.seen, "#general") == read
        missed = await after(back, "#general", read)
        assert [line.params[1] for line in missed] == [f"line {number}" for number in range(SAID)]
        assert len({line.tags["msgid"] for line in missed}) == SAID
        private = await after(back, "spark-bee", read)
        assert [line.params[1] for line in private] == ["and one for you alone"]
        other = await phone(ircd.port, stack)
        newest = missed[-1].tags["time"]
        assert marker(await back.ask(f"MARKREAD #general timestamp={newest}"), "#general") == newest
        # Another device of the same person need not show it again.
        assert marker(await other.sync(), "#general") == newest
        assert marker(await other.ask("MARKREAD #general"), "#general") == newest
        assert await after(other, "#general", newest) == []
