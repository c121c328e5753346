"""One user, several sessions (decision 1); logins come by whoever authenticates."""

import gc
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from culture.server.auth.authenticator import Credentials, ServerIdentity
from culture.server.core.session import Session
from culture.server.ircd import IRCd
from tests.support.client import Client, connected, registered
from tests.support.servers import serving


class ByPassword:
    """Who shows a password is logged in to the account of that name."""

    def authenticate(self, connection: Credentials) -> ServerIdentity:
        return ServerIdentity(connection.password, "human") if connection.password else ServerIdentity()


@pytest.fixture
async def ircd(tmp_path: Path) -> AsyncIterator[IRCd]:
    async with serving(tmp_path, ByPassword()) as running:
        yield running


async def log_in(client: Client, account: str, nick: str) -> None:
    client.send(f"PASS {account}")
    await client.register(nick)


def verbs(messages: list) -> list[str]:
    return [message.verb for message in messages]


async def test_a_second_login_is_the_same_user_in_the_same_channels(ircd: IRCd) -> None:
    async with (
        connected(ircd.port) as desk,
        connected(ircd.port) as phone,
        registered(ircd.port, "spark-ada") as ada,
    ):
        await log_in(desk, "ori", "spark-ori")
        await desk.ask("JOIN #a")
        await ada.join("#a")
        phone.send("PASS ori")
        phone.send("NICK spark-ori")
        phone.send("USER o 0 * :O")
        await phone.expect("001", "spark-ori")
        assert "JOIN" in verbs(shown := await phone.sync())
        assert any("@spark-ori" in each.params[-1] for each in shown if each.verb == "353")
        assert await ada.sync() == []

        await desk.sync()
        desk.send("PRIVMSG #a :from the desk")
        assert (await phone.expect("PRIVMSG", "#a")).source.startswith("spark-ori!")
        assert verbs(await desk.sync()) == []
        assert verbs(await ada.sync()) == ["PRIVMSG"]

        desk.send("PRIVMSG spark-ada :psst")
        await phone.expect("PRIVMSG", "spark-ada", "psst")
        await ada.ask("PRIVMSG spark-ori :yes?")
        for session in (desk, phone):
            assert (await session.expect("PRIVMSG", "spark-ori")).params[1] == "yes?"


@pytest.mark.parametrize("echo", [False, True], ids=["plain", "echo-message"])
async def test_a_message_to_oneself_comes_once_to_each_session(ircd: IRCd, echo: bool) -> None:
    """With echo-message to the session that said it too: once more as the echo (IRCv3 echo-message)."""
    async with connected(ircd.port) as desk, connected(ircd.port) as phone:
        if echo:
            desk.send("CAP REQ :echo-message")
            desk.send("CAP END")
        await log_in(desk, "ori", "spark-ori")
        phone.send("PASS ori")
        await phone.register("spark-x")
        shown = await desk.ask("PRIVMSG spark-ori :a note for myself")
        there = await phone.sync()
        assert verbs(there).count("PRIVMSG") == 1
        assert verbs(shown).count("PRIVMSG") == (2 if echo else 1)


async def test_the_user_leaves_with_the_last_session(ircd: IRCd) -> None:
    async with (
        connected(ircd.port) as desk,
        connected(ircd.port) as phone,
        registered(ircd.port, "spark-ada") as ada,
    ):
        await log_in(desk, "ori", "spark-ori")
        await desk.join("#a")
        await ada.join("#a")
        phone.send("PASS ori")
        await phone.register("spark-ori")
        desk.send("QUIT")
        await desk.ended()
        assert await ada.sync() == []
        await phone.ask("PRIVMSG #a :still here")
        assert (await ada.expect("PRIVMSG")).params[1] == "still here"
        phone.send("QUIT")
        assert (await ada.expect("QUIT")).source.startswith("spark-ori!")


async def test_what_one_session_does_the_others_see(ircd: IRCd) -> None:
    async with connected(ircd.port) as desk, connected(ircd.port) as phone:
        await log_in(desk, "ori", "spark-ori")
        phone.send("PASS ori")
        await phone.register("spark-x")
        desk.send("JOIN #b")
        await phone.expect("JOIN", "#b")
        desk.send("NICK spark-ori2")
        await phone.expect("NICK", "spark-ori2")
        phone.send("PART #b")
        await desk.expect("PART", "#b")


async def test_a_session_that_ended_is_not_kept(ircd: IRCd) -> None:
    """Not even until the next search for garbage, which is rare: an answer that had to wait leaves no circle."""
    gc.collect()
    gc.disable()
    try:
        before = sum(isinstance(each, Session) for each in gc.get_objects())
        async with registered(ircd.port, "spark-ori") as ori, registered(ircd.port, "spark-ada") as ada:
            ori.send_raw(b"MOTD\r\n" * 2000)
            await ori.sync()
            ori.send("QUIT")
            await ori.ended()
            await ada.sync()
            assert sum(isinstance(each, Session) for each in gc.get_objects()) == before + 1
    finally:
        gc.enable()
