"""Proving who one is, and to whom."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from culture.config.model import Listen
from culture.protocol.vocabulary import UserClass
from culture.server.auth.account_store import AccountStore
from culture.server.auth.accounts import new_account
from culture.server.ircd import IRCd
from culture.transport import Address, ClientIdentity, ConnectionState, Hopeless
from tests.support.client import registered
from tests.support.people import PASSWORD, accounts_of, verifier
from tests.support.proxy import proxied
from tests.support.servers import Serve
from tests.support.tls import made
from tests.transport.conftest import Come, Somebody


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("tls")
    return {name: made(folder, name) for name in ("spark", "ori")}


@pytest.fixture
def accounts(tmp_path: Path, files: dict[str, Any]) -> AccountStore:
    store = accounts_of(tmp_path, "ori", certificate=files["ori"][1])
    store.add(new_account("ada", UserClass.AGENT, verifier=verifier(), always_on=True))
    store.add(new_account("mia", UserClass.HUMAN, user=str(os.getuid())))
    return store


@pytest.fixture
async def ircd(serve: Serve, accounts: AccountStore, files: dict[str, Any]) -> AsyncIterator[IRCd]:
    """One port without TLS, one with it."""
    listen = (Listen(port=0), Listen(port=0, tls=files["spark"][0]))
    async with serve(listen=listen, accounts_file=accounts.path) as running:
        yield running


@pytest.fixture
def token(accounts: AccountStore) -> str:
    return accounts.add_token("ada", "daemon")


async def test_a_token_logs_in_and_makes_an_agent(ircd: IRCd, come: Come, token: str) -> None:
    ada = await come(ircd.port, "", ["#general"], identity=ClientIdentity("spark-ada", "ada", token))
    await ada.irc.send_privmsg("#general", "it is me")
    heard = await ada.hears("it is me")
    assert (heard.account, heard.kind) == ("ada", UserClass.AGENT)
    assert ada.irc.view.account == "ada"


async def test_a_program_comes_as_the_person_it_acts_for(ircd: IRCd, come: Come, accounts: AccountStore) -> None:
    accounts.add(new_account("web", UserClass.BOT, via="web"))
    token = accounts.add_token("web", "page")
    ori = await come(ircd.port, "", ["#general"], identity=ClientIdentity("spark-ori", "web", token, on_behalf="ori"))
    await ori.irc.send_privmsg("#general", "it is me")
    heard = await ori.hears("it is me")
    assert (heard.account, heard.kind, ori.irc.view.account) == ("ori", UserClass.HUMAN, "ori")
    robot = Somebody(ircd.port, "", identity=ClientIdentity("spark-ada", "web", token, on_behalf="ada"))
    with pytest.raises(Hopeless, match="SASL authentication failed"):
        await robot.irc.start()


async def test_people_are_seen_as_such_before_they_say_a_word(ircd: IRCd, come: Come) -> None:
    ada = await come(ircd.port, "spark-guest", ["#general"])
    async with registered(ircd.port, "spark-mia") as mia, registered(ircd.port, "spark-eve") as eve:
        await mia.join("#general")
        await eve.join("#general")
        found = {member.nick: member.kind for member in await ada.irc.send_who("#general")}
        one = await ada.irc.send_who("spark-mia")
        seen = {member.nick: member.kind for member in ada.irc.members("#general")}
    kinds = {"spark-guest": UserClass.BOT, "spark-mia": UserClass.HUMAN, "spark-eve": UserClass.UNKNOWN}
    assert found == seen == kinds and [member.kind for member in one] == [UserClass.HUMAN]


@pytest.mark.fault("E23")
async def test_a_login_replaces_its_own_ghost(ircd: IRCd, come: Come, token: str) -> None:
    identity = ClientIdentity("spark-ada", "ada", token)
    async with proxied(ircd.port) as way:
        ghost = await come(way.port, "", ["#general"], identity=identity)
        way.drop()
        ada = await come(ircd.port, "", ["#general"], identity=identity)
        assert ada.irc.nick == "spark-ada"
        assert [member.nick for member in ada.irc.members("#general")] == ["spark-ada"]
        await ghost.irc.stop()


@pytest.mark.fault("E22")
async def test_a_private_message_reaches_whoever_was_away(ircd: IRCd, come: Come, token: str) -> None:
    async with proxied(ircd.port) as way, registered(ircd.port, "spark-guest") as guest:
        ada = await come(way.port, "", ["#general"], identity=ClientIdentity("spark-ada", "ada", token))
        guest.send("PRIVMSG spark-ada :first")
        await ada.hears("first")
        way.cut()
        await ada.until(lambda: not ada.irc.connected)
        await guest.ask("PRIVMSG spark-ada :are you there")
        await guest.ask("PRIVMSG spark-ada :it matters")
        way.heal()
        await ada.hears("it matters")
    assert ada.texts == ["first", "are you there", "it matters"]
    last = ada.heard[-1]
    assert last.missed and last.private and last.channel == "spark-guest" == last.sender


@pytest.mark.fault("C10")
async def test_a_wrong_password_is_told_at_once_and_to_nobody_else(
    ircd: IRCd, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    ada = Somebody(ircd.port, "", identity=ClientIdentity("spark-ada", "ada", "not-the-password"))
    with pytest.raises(Hopeless, match="SASL authentication failed"):
        await ada.irc.start()
    assert [state for state, _ in ada.states] == [
        ConnectionState.CONNECTING,
        ConnectionState.HOPELESS,
        ConnectionState.STOPPED,
    ]
    told = caplog.text + repr(ada.states)
    assert "not-the-password" not in told and "AG" + "FkYQBub3Q" not in told


async def test_what_turns_hopeless_is_tried_some_times_and_then_given_up(
    ircd: IRCd, come: Come, token: str, accounts: AccountStore
) -> None:
    async with proxied(ircd.port) as way:
        ada = await come(way.port, "", identity=ClientIdentity("spark-ada", "ada", token))
        accounts.revoke("ada")
        way.cut()
        way.heal()
        await ada.until(lambda: ada.states[-1][0] is ConnectionState.HOPELESS)
        assert 2 <= way.accepted <= 5
        assert not ada.irc.connected


async def test_the_pinned_certificate_is_enough(ircd: IRCd, come: Come, files: dict[str, Any]) -> None:
    pin = files["spark"][1]
    coloned = ":".join(pin[start : start + 2] for start in range(0, 64, 2)).upper()
    for number, fingerprint in enumerate((pin, coloned)):
        address = Address("127.0.0.1", ircd.ports[1], tls=True, fingerprint=fingerprint)
        there = await come(0, f"spark-ada{number}", ["#general"], address=address)
        assert there.irc.channels == ["#general"]


async def test_another_certificate_is_hopeless_and_nothing_is_said_to_it(ircd: IRCd, files: dict[str, Any]) -> None:
    async with proxied(ircd.ports[1]) as way:
        address = Address("127.0.0.1", way.port, tls=True, fingerprint="00" * 32)
        ada = Somebody(0, "", address=address, identity=ClientIdentity("spark-ada", "ada", PASSWORD))
        with pytest.raises(Hopeless, match=f"another certificate than expected.*{files['spark'][1]}"):
            await ada.irc.start()
        assert way.accepted == 1


async def test_without_a_pin_the_system_decides(ircd: IRCd) -> None:
    ada = Somebody(0, "spark-ada", address=Address("127.0.0.1", ircd.ports[1], tls=True))
    with pytest.raises(Hopeless, match="not trusted"):
        await ada.irc.start()


async def test_tls_is_never_given_up_for_a_plain_connection(ircd: IRCd, come: Come) -> None:
    """A plain port where TLS was expected: no TLS, no word."""
    async with proxied(ircd.port) as way:
        address = Address("127.0.0.1", way.port, tls=True)
        ada = await come(0, "", address=address, identity=ClientIdentity("spark-ada", "ada", PASSWORD), wait=False)
        starting = asyncio.create_task(ada.irc.start())
        await ada.until(lambda: sum(state is ConnectionState.LOST for state, _ in ada.states) > 1)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        assert b"NICK" not in way.recorded("server") and b"CAP" not in way.recorded("server")


async def test_a_certificate_of_ones_own_logs_in(ircd: IRCd, come: Come, files: dict[str, Any]) -> None:
    own = files["ori"][0]
    address = Address("127.0.0.1", ircd.ports[1], tls=True, fingerprint=files["spark"][1])
    identity = ClientIdentity("spark-ori", "ori", certificate=own.certificate, key=own.key, bot=False)
    ori = await come(0, "", ["#general"], address=address, identity=identity)
    assert ori.irc.view.account == "ori"


async def test_scram_logs_in(ircd: IRCd, come: Come, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a password could be read on the way, it is proven instead."""
    monkeypatch.setattr("culture.transport.reconnect.is_private", lambda writer: False)
    ada = await come(ircd.port, "", ["#general"], identity=ClientIdentity("spark-ada", "ada", PASSWORD))
    assert ada.irc.view.account == "ada"
