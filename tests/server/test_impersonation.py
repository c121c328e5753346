"""Ways to be taken for somebody else, and that they do not work (decisions 1-3, security page)."""

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from types import SimpleNamespace

import pytest

from culture.config import peer_uid
from culture.config.model import ServerLimits
from culture.lib.files import FileStamp, file_stamp
from culture.protocol.vocabulary import UserClass
from culture.server.auth.account_store import AccountStore
from culture.server.auth.accounts import new_account
from culture.server.auth.credential_check import WRONG, CredentialCheck, LoginFailed
from culture.server.auth.login_attempts import Logins
from culture.server.ircd import IRCd
from tests.support.client import connected, registered
from tests.support.people import PASSWORD, accounts_of, authenticate, come_in, plain, verifier
from tests.support.servers import Serve, serving


@pytest.fixture
def store(tmp_path: Path) -> AccountStore:
    """The people ori and ada, and the agent claude."""
    store = accounts_of(tmp_path, "ori", "ada")
    store.add(new_account("claude", UserClass.AGENT, verifier=verifier()))
    return store


@pytest.fixture
async def ircd(tmp_path: Path, store: AccountStore) -> AsyncIterator[IRCd]:
    async with serving(tmp_path, accounts_file=store.path) as running:
        yield running


@pytest.mark.fault("C7")
async def test_a_user_does_not_become_another_account(ircd: IRCd, store: AccountStore) -> None:
    """Else whoever once logged in as ori could keep the nick after ori is revoked."""
    async with connected(ircd.port) as thief:
        await authenticate(thief, "PLAIN", plain("ori", PASSWORD))
        await come_in(thief, "spark-ori")
        thief.send("AUTHENTICATE PLAIN")
        await thief.expect("AUTHENTICATE", "+")
        thief.send(f"AUTHENTICATE {plain('claude', PASSWORD)}")
        assert (await thief.receive()).verb == "907"
        assert ircd.parts.network.users["spark-ori"].account == "ori"
        assert [each.verb for each in await thief.ask("AUTHENTICATE PLAIN")] == ["AUTHENTICATE"]
        thief.send(f"AUTHENTICATE {plain('ori', PASSWORD)}")
        assert [(await thief.receive()).verb for _ in range(2)] == ["900", "903"]
        store.revoke("ori")
        async with asyncio.timeout(30):
            await thief.ended()
        assert "spark-ori" not in ircd.parts.network.users


async def test_without_its_only_person_a_server_takes_nobody_at_their_word(serve: Serve, tmp_path: Path) -> None:
    """Decision 2: revoking a stolen account must not make people of all who have none."""
    store = accounts_of(tmp_path, "ori")
    async with serve() as ircd, registered(ircd.port, "spark-eve"):
        assert ircd.parts.network.users["spark-eve"].kind == UserClass.UNKNOWN
        store.revoke("ori")
        async with asyncio.timeout(30):
            while ircd.parts.accounts.active("ori") is not None:
                await asyncio.to_thread(ircd.parts.accounts.all)
        ircd.parts.network.know_people(ircd.parts.accounts.knows_people)
        assert ircd.parts.network.users["spark-eve"].kind == UserClass.UNKNOWN


@pytest.mark.fault("C7")
async def test_a_new_account_gets_its_nick_from_whoever_has_it(ircd: IRCd, store: AccountStore) -> None:
    """C7: also when somebody had it before there was the account."""
    async with registered(ircd.port, "spark-ramona") as squatter:
        store.add(new_account("ramona", UserClass.HUMAN, verifier=verifier()))
        async with asyncio.timeout(30):
            assert "belongs to the account ramona" in (await squatter.ended())[-1].params[-1]
        async with connected(ircd.port) as ramona:
            await authenticate(ramona, "PLAIN", plain("ramona", PASSWORD))
            await come_in(ramona, "spark-ramona")


async def test_only_one_user_of_an_account_stays_without_a_session(ircd: IRCd) -> None:
    """Else one login could fill the server with users, and keep any nick that is free."""
    for number in range(3):
        async with registered(ircd.port, f"spark-x{number}", "sasl") as guest:
            await authenticate(guest, "PLAIN", plain("ori", PASSWORD))
            guest.send("QUIT")
            await guest.ended()
    assert len(ircd.parts.network.users) == 1


@pytest.mark.fault("C7")
async def test_no_nick_has_the_prefix_twice(serve: Serve) -> None:
    """``spark-spark-ada`` would read as ada's nick, and its account could be made to own it."""
    async with serve(self_registration="inside") as ircd, registered(ircd.port, "spark-thief") as thief:
        assert [each.verb for each in await thief.ask("NICK spark-spark-ada")] == ["432"]
        assert [each.verb for each in await thief.ask("NICK Spark-SPARK-ada")] == ["432"]
        [answer] = await thief.ask("REGISTER spark-ada * correct-horse")
        assert answer.verb == "FAIL"
        assert ircd.parts.accounts.owner_of("spark-ada") is None


@pytest.mark.fault("C3")
async def test_tries_at_the_same_time_count_before_they_fail(tmp_path: Path, store: AccountStore) -> None:
    """C3: opening many connections first gives no further tries."""
    async with serving(tmp_path, accounts_file=store.path) as ircd:
        logins, tried = ircd.parts.logins, []
        session = SimpleNamespace(is_local=False, host="192.0.2.1", ended=False)

        def run() -> LoginFailed:
            tried.append(1)
            return WRONG

        every = [logins.try_password(session, CredentialCheck(run), ServerLimits(), lambda: 0.0) for _ in range(10)]
        assert all(isinstance(each, LoginFailed) for each in await asyncio.gather(*every))
        assert len(tried) <= 4  # two run at a time, and the third failure is one of two
        async with connected(ircd.port) as ori:
            for _ in range(4):
                assert (await authenticate(ori, "PLAIN", plain("ori", PASSWORD))).verb == "903"
            ori.send("AUTHENTICATE SCRAM-SHA-256")
            await ori.expect("AUTHENTICATE", "+")
            [mine] = [each for each in ircd.parts.sessions if each.account is not None]
            for _ in range(3):
                logins.fail(mine, ircd.parts.router.ids.now())
            ori.send("AUTHENTICATE biwsbj1vcmkscj1hYmM=")
            assert (await ori.receive()).verb == "904"


@pytest.mark.fault("C3")
def test_addresses_of_one_customer_share_their_tries() -> None:
    """C3: whoever has one IPv6 address has 2^64 of them; and a page in our browser is not our own program."""
    logins = Logins()
    for number in range(3):
        logins.fail(SimpleNamespace(is_local=False, host=f"2001:db8::{number}"), 0.0)
    assert not logins.may_try(SimpleNamespace(is_local=False, host="2001:db8::ffff"), ServerLimits(), 0.0)
    assert logins.may_try(SimpleNamespace(is_local=False, host="2001:db8:0:1::1"), ServerLimits(), 0.0)
    ours = SimpleNamespace(peer_uid=os.getuid)
    for _ in range(3):
        logins.fail(SimpleNamespace(is_local=True, is_websocket=True, connection=ours), 0.0)
    assert not logins.may_try(SimpleNamespace(is_local=True, is_websocket=True, connection=ours), ServerLimits(), 0.0)
    logins.stop()


@pytest.mark.fault("C7")
async def test_the_owner_gets_the_nick_back_at_the_door(ircd: IRCd, store: AccountStore) -> None:
    """C7: without waiting for the next look at the accounts."""
    async with registered(ircd.port, "spark-ramona") as squatter, connected(ircd.port) as ramona:
        store.add(new_account("ramona", UserClass.HUMAN, verifier=verifier()))
        await authenticate(ramona, "PLAIN", plain("ramona", PASSWORD))
        await come_in(ramona, "spark-ramona")
        assert "belongs to the account ramona" in (await squatter.ended())[-1].params[-1]
        assert ircd.parts.network.users["spark-ramona"].account == "ramona"


async def test_being_operator_ends_with_the_last_session(serve: Serve, store: AccountStore) -> None:
    """Also for a user who stays: the next session has shown no such password."""
    async with serve(operators=({"name": "root", "password": "right"},)) as ircd:
        for first in (True, False):
            async with connected(ircd.port) as ori:
                await authenticate(ori, "PLAIN", plain("ori", PASSWORD))
                await come_in(ori, "spark-ori")
                if first:
                    await ori.ask("OPER root right")
                assert ("o" in ircd.parts.network.users["spark-ori"].modes) is first
                ori.send("QUIT")
                await ori.ended()


async def test_a_crowd_that_is_turned_away_takes_no_descriptors(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("culture.server.ircd._MOST_CLOSING", 4)
    async with serve(exempt=(), limits={"connections_per_address": 1}) as ircd, AsyncExitStack() as stack:
        for _ in range(12):
            last = await stack.enter_async_context(connected(ircd.port))
        await last.ended()
        assert len(ircd._closing) == 4


@pytest.mark.fault("C3")
async def test_operators_passwords_cannot_be_guessed_either(serve: Serve) -> None:
    operators = ({"name": "root", "password": "right"},)
    async with serve(operators=operators) as ircd, registered(ircd.port, "spark-eve") as eve:
        for _ in range(3):
            assert [each.verb for each in await eve.ask("OPER root wrong")] == ["464"]
        [refusal] = await eve.ask("OPER root right")
        assert (refusal.verb, "Too many" in refusal.params[-1]) == ("464", True)


@pytest.mark.requirement("A21")
@pytest.mark.parametrize("how", ["_by_netlink", "_by_proc"])
def test_a_socket_that_its_process_has_closed_is_nobodys(how: str) -> None:
    """Many kernels show it as root's, and a server that runs as root would take it for its own."""
    if not peer_uid.IS_KNOWN:
        pytest.skip("nobody can tell here")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        client = socket.create_connection(listening.getsockname())
        server, peer = listening.accept()
        with server:
            find = getattr(peer_uid, how)
            owner = (os.getuid(), os.fstat(client.fileno()).st_ino)
            assert find(peer, server.getsockname()) == owner
            client.shutdown(socket.SHUT_WR)
            assert find(peer, server.getsockname()) == owner
            client.close()
            assert find(peer, server.getsockname()) is None


@pytest.mark.requirement("A21")
async def test_another_user_who_hangs_up_at_once_is_not_let_in(serve: Serve) -> None:
    """What was sent before the end must not be taken as said by somebody trusted."""
    if os.getuid() != 0:
        pytest.skip("only root can become another user")
    script = (
        "import os, socket, sys; 'x'.encode('idna'); os.setuid(65534);"
        "s = socket.create_connection(('127.0.0.1', int(sys.argv[1])));"
        "s.sendall(b'NICK spark-other\\r\\nUSER u 0 * :U\\r\\nPRIVMSG spark-ori :obey\\r\\n'); s.close()"
    )
    async with serve() as ircd, registered(ircd.port, "spark-ori") as ori:
        # The server must not be quicker than the client's end: it reads when the process is gone.
        subprocess.run([sys.executable, "-c", script, str(ircd.port)], check=True, timeout=20)  # noqa: ASYNC221
        heard = [*await ori.ask("VERSION"), *await ori.sync()]
        assert not [each for each in heard if each.verb == "PRIVMSG"]


async def test_revoking_works_after_the_file_could_not_be_looked_at(
    ircd: IRCd, store: AccountStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = asyncio.Event()
    real = file_stamp

    def stamp(path: Path) -> FileStamp | None:
        if not failed.is_set():
            failed.set()
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr("culture.server.auth.account_store.file_stamp", stamp)
    async with asyncio.timeout(30), connected(ircd.port) as ori:
        await failed.wait()
        await authenticate(ori, "PLAIN", plain("ori", PASSWORD))
        await come_in(ori, "spark-ori")
        store.revoke("ori")
        await ori.ended()
