"""The person at the machine's own keyboard needs no login for the account that is theirs."""

import asyncio
import os
from pathlib import Path

import pytest

from culture.protocol.vocabulary import UserClass
from culture.server.accounts.model import new_account
from culture.server.accounts.store import AccountStore
from culture.transport import Address, Identity, IRCTransport, Message
from tests.support.client import Client, connected, registered
from tests.support.people import PASSWORD, verifier
from tests.support.servers import Serve

ME = str(os.getuid())
SOMEBODY_ELSE = "4242"


def account_of(folder: Path, user: str | None) -> AccountStore:
    store = AccountStore(folder / "accounts.json", "spark")
    store.add(new_account("ori", UserClass.HUMAN, user=user, verifier=verifier()))
    return store


async def account_seen(client: Client, nick: str) -> str | None:
    """The account of somebody, as WHOIS tells it; None without one."""
    client.send(f"WHOIS {nick}")
    lines = await client.sync()
    return next((line.params[2] for line in lines if line.verb == "330"), None)


async def test_a_client_of_the_accounts_own_user_is_logged_in_by_its_nick(serve: Serve, tmp_path: Path) -> None:
    account_of(tmp_path, ME)
    async with serve() as ircd, registered(ircd.port, "spark-ori") as ori, registered(ircd.port, "spark-eve") as eve:
        assert await account_seen(eve, "spark-ori") == "ori"
        assert await account_seen(eve, "spark-eve") is None
        assert ircd.parts.network.users["spark-ori"].kind == UserClass.HUMAN
        assert ircd.parts.network.users["spark-eve"].kind == UserClass.UNKNOWN
        # A second client is the same person, on another device.
        async with registered(ircd.port, "spark-ori") as phone:
            ori.send("JOIN #general")
            await phone.expect("JOIN", "#general")


@pytest.mark.parametrize("user", [SOMEBODY_ELSE, "nobody-of-that-name", None], ids=["another", "unknown", "none"])
async def test_others_have_to_log_in(user: str | None, serve: Serve, tmp_path: Path) -> None:
    account_of(tmp_path, user)
    async with serve() as ircd, connected(ircd.port) as other:
        other.send("NICK spark-ori")
        other.send("USER ori 0 * :ori")
        assert "belongs to the account ori" in (await other.expect("433")).params[-1]


async def test_a_revoked_account_has_no_keyboard(serve: Serve, tmp_path: Path) -> None:
    account_of(tmp_path, ME).revoke("ori")
    async with serve() as ircd, connected(ircd.port) as other:
        other.send("NICK spark-ori")
        other.send("USER ori 0 * :ori")
        assert "belongs to the account ori" in (await other.expect("433")).params[-1]


async def test_the_servers_password_is_still_asked_for(serve: Serve, tmp_path: Path) -> None:
    account_of(tmp_path, ME)
    async with serve(password="sesame") as ircd:
        async with connected(ircd.port) as other:
            other.send("NICK spark-ori")
            other.send("USER ori 0 * :ori")
            await other.expect("464")
        async with connected(ircd.port) as ori:
            ori.send("PASS sesame")
            await ori.register("spark-ori")
            assert await account_seen(ori, "spark-ori") == "ori"


def test_the_user_is_kept_in_the_file(tmp_path: Path) -> None:
    account_of(tmp_path, "ori")
    kept = AccountStore(tmp_path / "accounts.json", "spark").get("ori")
    assert kept is not None and kept.user == "ori"


async def test_what_is_said_at_the_keyboard_proves_no_login(serve: Serve, tmp_path: Path) -> None:
    account_of(tmp_path, ME)
    heard: asyncio.Queue[Message] = asyncio.Queue()
    async with serve() as ircd, registered(ircd.port, "spark-ori") as keyboard:
        listener = IRCTransport(
            Address("127.0.0.1", ircd.port), Identity("spark-eve"), ["#general"], on_message=heard.put_nowait
        )
        await listener.start()
        keyboard.send("JOIN #general")
        keyboard.send("PRIVMSG #general :from a process of theirs")
        said = await heard.get()
        assert (said.account, said.kind) == (None, UserClass.HUMAN)
        phone = IRCTransport(
            Address("127.0.0.1", ircd.port), Identity("spark-ori", "ori", PASSWORD, bot=False), ["#general"]
        )
        await phone.start()
        await phone.send_privmsg("#general", "logged in")
        said = await heard.get()
        assert (said.account, said.kind) == ("ori", UserClass.HUMAN)
        await phone.stop()
        await listener.stop()
