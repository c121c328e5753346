"""An agent whose program is gone: it stays where it was, says so, and has what was said to it when it is back."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from culture.server.core.session_lifecycle import DISCONNECTED
from culture.server.ircd import IRCd
from tests.skills.history.playing import CAPS, missed
from tests.support.client import Client, connected, registered
from tests.support.people import authenticate, come_in, plain
from tests.support.servers import serving
from tests.support.waiting import until

CLAUDE = "spark-claude"


class Place:
    """A server that runs, and the command line of its machine."""

    def __init__(self, ircd: IRCd, home: Path, stack: AsyncExitStack) -> None:
        self.ircd = ircd
        self._home = home
        self._stack = stack

    async def account(self, *words: str) -> str:
        """What ``culture account`` says."""
        environment = {"PATH": os.defpath, "HOME": str(self._home), "CULTURE_HOME": str(self._home)}
        command = (sys.executable, "-m", "culture", "account", *words)
        pipes = {"stdout": asyncio.subprocess.PIPE, "stderr": asyncio.subprocess.PIPE}
        process = await asyncio.create_subprocess_exec(
            *command, env=environment, stdin=asyncio.subprocess.DEVNULL, **pipes
        )
        said, complained = await process.communicate()
        assert process.returncode == 0, complained
        return said.decode().strip()

    async def make_agent(self) -> str:
        """An agent's account, made while the server runs; its token."""
        await self.account("add", "claude", "--class", "agent", "--always-on", "--no-password")
        return await self.account("token", "claude")

    async def agent(self, token: str) -> Client:
        """The agent's program, logged in."""
        client = await self._stack.enter_async_context(connected(self.ircd.port))
        client.send(f"CAP REQ :{CAPS}")
        assert (await authenticate(client, "PLAIN", plain("claude", token))).verb == "903"
        await come_in(client, CLAUDE)
        return client

    async def vanish(self, client: Client) -> None:
        """The agent's program is gone without a word, and the server knows."""
        client.close()
        router, users = self.ircd.parts.router, self.ircd.parts.network.users
        await until(lambda: not router.sessions.get(users[CLAUDE]))

    async def guest(self, nick: str, *channels: str) -> Client:
        client = await self._stack.enter_async_context(registered(self.ircd.port, nick, "message-tags"))
        for channel in channels:
            await client.join(channel)
        return client


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "culture.yaml").write_text("name: spark\n")
    async with serving(tmp_path, accounts_file=home / "accounts.json") as ircd, AsyncExitStack() as stack:
        yield Place(ircd, home, stack)


@pytest.mark.requirement("F23")
@pytest.mark.fault("E22")
async def test_it_stays_and_has_what_was_said_to_it_meanwhile(place: Place) -> None:
    token = await place.make_agent()
    claude = await place.agent(token)
    await claude.join("#work")
    ori = await place.guest("spark-ori", "#work")
    ori.send("PRIVMSG #work :seen")
    seen = await claude.expect("PRIVMSG")
    await place.vanish(claude)
    ori.send(f"PRIVMSG {CLAUDE} :are you there")
    assert (await ori.expect("301")).params[1:] == (CLAUDE, DISCONNECTED)
    ori.send("PRIVMSG #work :who knows")
    names = await ori.ask("NAMES #work")
    assert CLAUDE in names[0].params[-1].replace("@", "").split()
    claude = await place.agent(token)
    assert await missed(claude, f"msgid={seen.tags['msgid']}") == ["are you there", "who knows"]
    assert await ori.ask(f"PRIVMSG {CLAUDE} :good") == []


async def test_what_it_said_of_itself_does_not_hide_that_it_is_gone(place: Place) -> None:
    token = await place.make_agent()
    claude, ori = await place.agent(token), await place.guest("spark-ori")
    await claude.ask("AWAY :Working on the build")
    ori.send(f"PRIVMSG {CLAUDE} :hello")
    assert (await ori.expect("301")).params[2] == "Working on the build"
    await place.vanish(claude)
    ori.send(f"PRIVMSG {CLAUDE} :hello")
    assert (await ori.expect("301")).params[2] == DISCONNECTED
    await place.agent(token)
    assert await ori.ask(f"PRIVMSG {CLAUDE} :hello") == []


async def test_a_new_login_replaces_the_old_one_and_keeps_the_channels(place: Place) -> None:
    token = await place.make_agent()
    first, ori = await place.agent(token), await place.guest("spark-ori", "#work")
    await first.join("#work")
    await ori.sync()
    second = await place.agent(token)
    assert (await first.ended())[-1].verb == "ERROR"
    assert await ori.sync() == []  # nobody went, nobody came
    ori.send("PRIVMSG #work :still here?")
    assert (await second.expect("PRIVMSG")).params == ("#work", "still here?")
    assert len(place.ircd.parts.router.sessions[place.ircd.parts.network.users[CLAUDE]]) == 1
