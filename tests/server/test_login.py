"""Logging in: who one is, whose nick it is, who stays."""

import asyncio
import base64
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from culture.protocol.vocabulary import UserClass
from culture.server.auth.account_store import AccountStore
from culture.server.auth.accounts import new_account
from culture.server.auth.authenticator import Credentials, NetworkAuth
from culture.server.auth.password import PasswordVerifier
from culture.server.errors import Refused
from culture.server.ircd import IRCd
from tests.support.client import Client, connected, registered
from tests.support.servers import Serve, config_for, serving

PASSWORD = "correct horse"


def verbs(messages: list) -> list[str]:
    return [message.verb for message in messages]


@pytest.fixture(scope="module")
def verifier() -> PasswordVerifier:
    """Made once: it takes a while, which is its purpose."""
    return PasswordVerifier.of(PASSWORD)


@pytest.fixture
def store(tmp_path: Path, verifier: PasswordVerifier) -> AccountStore:
    """Accounts ori (a person), ada (a person) and claude (an agent), all with the same password."""
    store = AccountStore(tmp_path / "accounts.json", "spark")
    for name, kind in (("ori", UserClass.HUMAN), ("ada", UserClass.HUMAN), ("claude", UserClass.AGENT)):
        store.add(new_account(name, kind, verifier=verifier))
    return store


@pytest.fixture
async def ircd(tmp_path: Path, store: AccountStore) -> AsyncIterator[IRCd]:
    async with serving(tmp_path, accounts_file=store.path) as running:
        yield running


async def sasl_plain(client: Client, account: str, password: str) -> list[str]:
    """Ask for sasl and log in; the numerics that came."""
    client.send("CAP LS 302")
    client.send("CAP REQ :sasl")
    await client.expect("CAP", None, "ACK")
    client.send("AUTHENTICATE PLAIN")
    await client.expect("AUTHENTICATE", "+")
    client.send("AUTHENTICATE " + base64.b64encode(f"\0{account}\0{password}".encode()).decode())
    got = [await client.receive()]
    if got[0].verb == "900":
        got.append(await client.receive())
    return verbs(got)


async def come_in(client: Client, account: str, nick: str) -> None:
    """Log in and register."""
    assert await sasl_plain(client, account, PASSWORD) == ["900", "903"]
    client.send(f"NICK {nick}")
    client.send("USER u 0 * :U")
    client.send("CAP END")
    await client.expect("001")
    await client.sync()


@pytest.mark.requirement("A22")
async def test_a_login_names_the_account_and_its_class(ircd: IRCd) -> None:
    """IRCv3 sasl-3.2, decision 2"""
    async with connected(ircd.port) as ori, connected(ircd.port) as claude:
        await come_in(ori, "ori", "spark-ori")
        await come_in(claude, "claude", "spark-claude")
        whois = await ori.ask("WHOIS spark-claude")
        assert next(each.params[2] for each in whois if each.verb == "330") == "claude"
        assert "335" in verbs(whois)
        assert "335" not in verbs(await claude.ask("WHOIS spark-ori"))
        users = ircd.parts.network.users
        assert (users["spark-ori"].kind, users["spark-claude"].kind) == ("human", "agent")


@pytest.mark.fault("C2")
@pytest.mark.parametrize("given", ["", " ", "wrong", PASSWORD.upper(), PASSWORD + " "])
async def test_a_wrong_or_empty_password_does_not_log_in(ircd: IRCd, given: str) -> None:
    """C2"""
    async with connected(ircd.port) as ori:
        assert await sasl_plain(ori, "ori", given) == ["904"]
        ori.send("CAP END")
        ori.send("NICK spark-ori")
        ori.send("USER u 0 * :U")
        assert (await ori.receive()).verb == "433"


@pytest.mark.fault("C3")
async def test_after_three_wrong_passwords_the_right_one_has_to_wait(tmp_path: Path, store: AccountStore) -> None:
    """C3: the fourth try within a minute is refused unseen."""
    async with serving(tmp_path, accounts_file=store.path) as ircd, connected(ircd.port) as ori:
        for _ in range(3):
            assert await sasl_plain(ori, "ori", "wrong") == ["904"]
        ori.send("AUTHENTICATE PLAIN")
        await ori.expect("AUTHENTICATE", "+")
        ori.send("AUTHENTICATE " + base64.b64encode(f"\0ori\0{PASSWORD}".encode()).decode())
        refusal = await ori.receive()
        assert (refusal.verb, "Too many" in refusal.params[-1]) == ("904", True)
        ori.send("AUTHENTICATE SCRAM-SHA-256")
        refusal = await ori.receive()
        assert (refusal.verb, "Too many" in refusal.params[-1]) == ("904", True)
        async with connected(ircd.port) as ada:
            await come_in(ada, "ada", "spark-ada")


async def test_pass_logs_in_where_a_client_has_no_sasl(ircd: IRCd) -> None:
    """Decision 3: ``PASS account:password``"""
    async with connected(ircd.port) as ori:
        ori.send(f"PASS :ori:{PASSWORD}")
        await ori.register("spark-ori")
        assert "330" in verbs(await ori.ask("WHOIS spark-ori"))
    async with connected(ircd.port) as wrong:
        wrong.send("PASS ori:wrong")
        wrong.send("NICK spark-ori")
        wrong.send("USER u 0 * :U")
        assert verbs(await wrong.ended())[0] == "464"


@pytest.mark.fault("C7")
async def test_a_nick_of_an_account_is_for_its_login_alone(ircd: IRCd) -> None:
    """C7: somebody else's is refused, an un-owned one is free, the owner gets it."""
    async with connected(ircd.port) as stranger, connected(ircd.port) as ori:
        stranger.send("NICK spark-ori")
        stranger.send("USER u 0 * :U")
        refusal = await stranger.receive()
        assert (refusal.verb, "account ori" in refusal.params[-1]) == ("433", True)
        stranger.send("NICK spark-free")
        await stranger.expect("001", "spark-free")
        await stranger.sync()
        assert verbs(await stranger.ask("NICK spark-ada")) == ["433"]
        await come_in(ori, "ori", "spark-ori")
        assert verbs(await ori.ask("NICK spark-ada")) == ["433"]
        assert verbs(await ori.ask("NICK spark-other")) == ["NICK"]


@pytest.mark.fault("C8")
async def test_where_people_have_accounts_only_their_logins_are_people(ircd: IRCd) -> None:
    """C8: not a nick, not a text, not the lack of +B."""
    async with registered(ircd.port, "spark-guest", "message-tags") as guest, connected(ircd.port) as ori:
        await come_in(ori, "ori", "spark-ori")
        await ori.ask("PRIVMSG spark-guest :hi")
        assert (await guest.expect("PRIVMSG")).tags["agentirc.dev/class"] == "human"
        assert ircd.parts.network.users["spark-guest"].kind == "unknown"


async def test_two_devices_of_a_person_are_one_user(ircd: IRCd) -> None:
    """Decision 1"""
    async with connected(ircd.port) as desk, connected(ircd.port) as phone:
        await come_in(desk, "ori", "spark-ori")
        await desk.join("#a")
        await come_in(phone, "ori", "spark-ori-phone")
        assert [each.params[0] for each in phone.seen if each.verb == "JOIN"] == ["#a"]
        assert verbs(await desk.sync()) == []
        phone.send("PRIVMSG #a :from the phone")
        await desk.expect("PRIVMSG", "#a", "from the phone")


async def test_a_person_stays_away_and_finds_the_channels_again(ircd: IRCd) -> None:
    """Decision 1: always on"""
    async with registered(ircd.port, "spark-guest") as guest:
        await guest.join("#a")
        async with connected(ircd.port) as ori:
            await come_in(ori, "ori", "spark-ori")
            await ori.join("#a")
            ori.send("QUIT :good night")
            await ori.ended()
        assert "QUIT" not in verbs(await guest.sync())
        assert verbs(await guest.ask("PRIVMSG spark-ori :there?")) == ["301"]
        async with connected(ircd.port) as ori:
            await come_in(ori, "ori", "spark-ori")
            assert [each.params[0] for each in ori.seen if each.verb == "JOIN"] == ["#a"]
            assert verbs(await guest.ask("PRIVMSG spark-ori :there?")) == []


async def test_a_second_login_of_an_agent_replaces_the_first(ircd: IRCd) -> None:
    """Decision 1: ghost; its channels stay and nobody sees it go."""
    async with registered(ircd.port, "spark-guest") as guest, connected(ircd.port) as old, connected(ircd.port) as new:
        await guest.join("#a")
        await come_in(old, "claude", "spark-claude")
        await old.join("#a")
        await guest.sync()
        await come_in(new, "claude", "spark-claude")
        assert verbs(await old.ended())[-1] == "ERROR"
        assert [each.params[0] for each in new.seen if each.verb == "JOIN"] == ["#a"]
        assert verbs(await guest.sync()) == []


async def test_a_revoked_account_is_out_within_seconds(ircd: IRCd, store: AccountStore) -> None:
    """Decision 3; always on or not."""
    async with connected(ircd.port) as ori, registered(ircd.port, "spark-guest") as guest:
        await come_in(ori, "ori", "spark-ori")
        await ori.join("#a")
        await guest.join("#a")
        AccountStore(store.path, "spark").revoke("ori")
        async with asyncio.timeout(30):
            assert "revoked" in (await ori.ended())[-1].params[-1]
        assert (await guest.expect("QUIT")).source.startswith("spark-ori!")
        async with connected(ircd.port) as again:
            assert await sasl_plain(again, "ori", PASSWORD) == ["904"]


@pytest.mark.requirement("A21")
@pytest.mark.parametrize(
    ("shown", "admitted"),
    [
        ({}, True),
        ({"uid": lambda: 4242}, False),
        ({"uid": lambda: None}, False),
        ({"is_local": False}, False),
        ({"is_websocket": True}, False),
    ],
)
def test_whose_presence_is_trusted(tmp_path: Path, shown: dict[str, Any], admitted: bool) -> None:
    """Decision 3: the local tier, by who runs the other end."""
    auth = NetworkAuth(config_for(tmp_path))
    credentials = Credentials("spark-x", "127.0.0.1", None)._replace(**shown)
    if admitted:
        assert auth.authenticate(credentials).account is None
    else:
        with pytest.raises(Refused):
            auth.authenticate(credentials)
    account = new_account("ori", UserClass.HUMAN)
    assert auth.authenticate(credentials._replace(account=account)) == ("ori", "human")


@pytest.mark.requirement("A21")
async def test_another_user_of_the_machine_has_to_log_in(serve: Serve) -> None:
    """Decision 3: presence is trusted for our own user only, and for those in local_users."""
    if os.getuid() != 0:
        pytest.skip("only root can become another user")
    script = (
        "import os, socket, sys; 'x'.encode('idna'); os.setuid(65534);"
        "s = socket.create_connection(('127.0.0.1', int(sys.argv[1])));"
        "s.sendall(b'NICK spark-other\\r\\nUSER u 0 * :U\\r\\n'); f = s.makefile('rb'); print(f.readline().decode())"
    )

    async def first_line(port: int) -> str:
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", script, str(port), stdout=subprocess.PIPE)
        out, _ = await asyncio.wait_for(process.communicate(), 20)
        return out.decode()

    async with serve() as ircd:
        assert " 464 " in await first_line(ircd.port)
    async with serve(local_users=("65534",)) as ircd:
        assert " 001 " in await first_line(ircd.port)


async def test_somebody_who_is_in_may_log_in_later_whatever_was_tried_before(ircd: IRCd) -> None:
    async with registered(ircd.port, "spark-guest", "sasl") as guest, connected(ircd.port) as ada:
        assert verbs(await guest.ask("AUTHENTICATE NONE")) == ["908", "904"]
        assert verbs(await guest.ask("AUTHENTICATE *")) == ["906"]
        for rubbish, answer in (("!!!", "904"), ("A" * 401, "905"), ("AAAA", "904")):
            assert verbs(await guest.ask("AUTHENTICATE PLAIN")) == ["AUTHENTICATE"]
            assert verbs(await guest.ask(f"AUTHENTICATE {rubbish}")) == [answer]
        guest.send("AUTHENTICATE PLAIN")
        guest.send("AUTHENTICATE " + base64.b64encode(f"\0ori\0{PASSWORD}".encode()).decode())
        await guest.expect("900")
        await guest.expect("903")
        await come_in(ada, "ada", "spark-ada")
        assert "330" in verbs(await ada.ask("WHOIS spark-guest"))
