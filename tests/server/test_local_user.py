"""The person at the machine's own keyboard needs no login for the account that is theirs."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from culture.config import process_owner
from culture.protocol.vocabulary import UserClass
from culture.server.auth.account_store import AccountStore
from culture.server.auth.accounts import new_account
from culture.server.ircd import IRCd
from culture.transport import Address, ClientIdentity, IRCTransport, Message
from tests.support.client import Client, connected, registered
from tests.support.people import PASSWORD, verifier
from tests.support.servers import Serve

ME = str(os.getuid())
SOMEBODY_ELSE = "4242"
# Prints what the server answers to the nick that it asks for; then nothing of it is left.
ASKS = """
import os, socket
{first}
asking = socket.create_connection(("127.0.0.1", {port}))
{then}
asking.sendall(b"NICK {nick}\\r\\nUSER ori 0 * :ori\\r\\n")
for line in asking.makefile():
    print(line.strip())
    if line.split()[1] in ("001", "433"):
        break
"""
# An agent's process that has inherited the socket, and ends with the program above.
COPY = """
asking.set_inheritable(True)
(waits, end), (running, is_running) = os.pipe(), os.pipe()
if not os.fork():
    os.dup2(waits, 0)
    os.close(1)
    os.close(end)
    os.execve("/bin/sh", ["sh", "-c", "read line"], {"CULTURE_NICK": "spark-claude"})
os.close(is_running)
os.read(running, 1)
"""


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
            Address("127.0.0.1", ircd.port), ClientIdentity("spark-eve"), ["#general"], on_message=heard.put_nowait
        )
        await listener.start()
        keyboard.send("JOIN #general")
        keyboard.send("PRIVMSG #general :from a process of theirs")
        said = await heard.get()
        assert (said.account, said.kind) == (None, UserClass.HUMAN)
        phone = IRCTransport(
            Address("127.0.0.1", ircd.port), ClientIdentity("spark-ori", "ori", PASSWORD, bot=False), ["#general"]
        )
        await phone.start()
        await phone.send_privmsg("#general", "logged in")
        said = await heard.get()
        assert (said.account, said.kind) == ("ori", UserClass.HUMAN)
        await phone.stop()
        await listener.stop()


async def answer_to(
    ircd: IRCd, *, wrapper: str = "", first: str = "", then: str = "", nick: str = "spark-ori", agent: str = ""
) -> str:
    """What the server answers to a program, started by a shell that stays its parent."""
    process = await asyncio.create_subprocess_exec(
        *("sh", "-c", f'{wrapper} "$0" -SEc "$1"; true', sys.executable),
        ASKS.format(port=ircd.port, first=first, then=then, nick=nick),
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, **({"CULTURE_NICK": agent} if agent else {})},
    )
    out, _ = await process.communicate()
    return out.decode()


async def test_a_process_of_an_agent_is_not_its_owner(serve: Serve, tmp_path: Path) -> None:
    account_of(tmp_path, ME)
    agent = "spark-claude"
    async with serve() as ircd:
        assert " 900 * spark-ori" in await answer_to(ircd)
        answers = (
            await answer_to(ircd, agent=agent),
            await answer_to(ircd, agent=agent, wrapper="env -i"),
            await answer_to(ircd, agent=agent, wrapper="env -i setsid -w"),
            await answer_to(ircd, then=COPY),
        )
        refusal = "433 * spark-ori :This nick belongs to the account ori, and you are a process of spark-claude"
        assert [f"{refusal}: use irc_client" in answer for answer in answers] == [True] * len(answers), answers
        assert "900" not in "".join(answers)
        assert "a process of an agent: use irc_client" in await answer_to(ircd, agent="x\r\n:spark MODE")
        # Under a nick of nobody's it is let in, and is nobody in particular.
        assert " 001 spark-eve " in (answer := await answer_to(ircd, agent=agent, nick="spark-eve"))
        assert "900" not in answer


@pytest.mark.parametrize("name", ["ssh", "sshd", "socat"])
async def test_a_tunnel_is_nobodys_keyboard(name: str, serve: Serve, tmp_path: Path) -> None:
    account_of(tmp_path, ME)
    async with serve() as ircd:
        answer = await answer_to(ircd, first=f"open('/proc/self/comm', 'w').write('{name}')")
        assert f"belongs to the account ori, and you come through {name}, as others may: log in" in answer


async def test_a_program_that_the_server_cannot_see_has_to_log_in(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    account_of(tmp_path, ME)
    monkeypatch.setattr(process_owner, "holders", lambda inode, **_: [])
    async with serve() as ircd:
        assert "and the server cannot see which program you are: log in" in await answer_to(ircd)


async def test_where_nicks_are_free_an_agents_process_has_the_nick_and_not_the_account(
    serve: Serve, tmp_path: Path
) -> None:
    account_of(tmp_path, ME)
    async with serve(nick_prefix="off") as ircd:
        answer = await answer_to(ircd, agent="spark-claude", nick="ori")
        assert "No login by local uid: you are a process of spark-claude" in answer
        assert " 001 ori " in answer and "900" not in answer
