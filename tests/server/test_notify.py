"""What others are told of somebody: joins, logins, absence, invitations, hosts; and of nothing they did not ask for."""

import pytest

from culture.protocol.message import Message
from culture.server.auth.authenticator import Credentials, ServerIdentity
from culture.server.events import AccountSet, HostSet
from culture.server.ircd import IRCd
from tests.server.conftest import Crowd
from tests.server.rooms import codes, lines
from tests.support.client import Client, connected, registered
from tests.support.servers import Serve


class ByPassword:
    """Who shows a password is logged in to the account of that name."""

    def authenticate(self, connection: Credentials) -> ServerIdentity:
        return ServerIdentity(connection.password, "human") if connection.password else ServerIdentity()


async def log_in(client: Client, account: str, caps: str = "") -> None:
    client.send(f"PASS {account}")
    await client.register(f"spark-{account}", caps)


def publish(ircd: IRCd, event: AccountSet | HostSet) -> None:
    with ircd.parts.turn():
        ircd.parts.router.publish(event)


def source_of(ircd: IRCd, nick: str) -> str:
    return ircd.parts.network.users[nick].source


async def test_a_join_says_who_it_is(serve: Serve) -> None:
    """IRCv3 extended-join: account or ``*``, and the real name"""
    async with (
        serve(authenticator=ByPassword()) as ircd,
        registered(ircd.port, "spark-ori", "extended-join") as ori,
        registered(ircd.port, "spark-ada") as ada,
        connected(ircd.port) as eve,
    ):
        assert lines(await ori.join("#room"))[0] == ("JOIN", "#room", "*", "A Tester")
        assert lines(await ada.join("#room"))[0] == ("JOIN", "#room")
        await log_in(eve, "eve")
        await eve.join("#room")
        assert lines(await ori.sync()) == [("JOIN", "#room", "*", "A Tester"), ("JOIN", "#room", "eve", "A Tester")]
        assert lines(await ada.sync()) == [("JOIN", "#room")]


async def test_another_session_is_shown_its_channels_in_the_same_way(serve: Serve) -> None:
    """Decision 1, with extended-join; the topic comes with who set it"""
    async with serve(authenticator=ByPassword()) as ircd, connected(ircd.port) as desk, connected(ircd.port) as phone:
        await log_in(desk, "ori")
        await desk.join("#room")
        await desk.ask("TOPIC #room :tea")
        phone.send("PASS ori")
        phone.send("CAP REQ :extended-join\r\nNICK spark-ori\r\nUSER o 0 * :O\r\nCAP END")
        await phone.expect("376")
        shown = await phone.sync()
        assert codes(shown) == ["JOIN", "332", "333", "353", "366"]
        assert shown[0].params == ("#room", "ori", "A Tester")


async def test_logging_in_and_out_is_shown(ircd: IRCd, crowd: Crowd) -> None:
    """IRCv3 account-notify: to those who share a channel and asked, once however many they share"""
    ori = await crowd.join("spark-ori", "#a", "#b", caps="account-notify")
    ada = await crowd.join("spark-ada", "#a", "#b")
    eve = await crowd.join("spark-eve", caps="account-notify")
    await ori.sync()
    publish(ircd, AccountSet(ircd.parts.router.ids.stamp(), source_of(ircd, "spark-ada"), "ada", "human"))
    assert lines(await ori.sync()) == [("ACCOUNT", "ada")]
    assert await ada.sync() == []
    assert await eve.sync() == []
    publish(ircd, AccountSet(ircd.parts.router.ids.stamp(), source_of(ircd, "spark-ada"), None, "unknown"))
    assert lines(await ori.sync()) == [("ACCOUNT", "*")]


async def test_whatever_somebody_does_carries_their_account(serve: Serve) -> None:
    """IRCv3 account-tag; also a change of nick and the last word"""
    async with (
        serve(authenticator=ByPassword()) as ircd,
        registered(ircd.port, "spark-ori", "account-tag") as ori,
        registered(ircd.port, "spark-bob") as bob,
        connected(ircd.port) as ada,
    ):
        await ori.join("#room")
        await log_in(ada, "ada")
        for line in (
            "JOIN #room",
            "PRIVMSG #room :hi",
            "NOTICE spark-ori :hi",
            "NICK spark-eve",
            "PART #room",
            "JOIN #room",
        ):
            await ada.ask(line)
        ada.send("QUIT")
        await ada.ended()
        seen = await ori.sync()
        assert codes(seen) == ["JOIN", "PRIVMSG", "NOTICE", "NICK", "PART", "JOIN", "QUIT"]
        assert [dict(each.tags) for each in seen] == [{"account": "ada"}] * 7
        await bob.ask("PRIVMSG spark-ori :hi")
        assert dict((await ori.sync())[0].tags) == {}


async def test_an_invitation_carries_the_account(serve: Serve) -> None:
    """IRCv3 account-tag"""
    async with (
        serve(authenticator=ByPassword()) as ircd,
        registered(ircd.port, "spark-ori", "account-tag") as ori,
        connected(ircd.port) as ada,
    ):
        await log_in(ada, "ada")
        await ada.join("#room")
        await ada.ask("INVITE spark-ori #room")
        (invited,) = await ori.sync()
        assert (invited.verb, dict(invited.tags)) == ("INVITE", {"account": "ada"})


async def test_going_away_is_shown_to_those_who_asked(crowd: Crowd) -> None:
    """IRCv3 away-notify; nothing to oneself, nothing when nothing changed"""
    ori = await crowd.join("spark-ori", "#a", "#b", caps="away-notify")
    ada = await crowd.join("spark-ada", "#a", "#b", caps="away-notify")
    bob = await crowd.join("spark-bob", "#a")
    for client in (ori, ada):
        await client.sync()
    assert codes(await ada.ask("AWAY :lunch")) == ["306"]
    assert codes(await ada.ask("AWAY :lunch")) == ["306"]
    (away,) = await ori.sync()
    assert (away.verb, away.params) == ("AWAY", ("lunch",))
    assert away.source.startswith("spark-ada!")
    await ada.ask("AWAY")
    assert lines(await ori.sync()) == [("AWAY",)]
    assert await bob.sync() == []


async def test_who_comes_in_and_is_away_is_shown_to_be(crowd: Crowd) -> None:
    """IRCv3 away-notify: on JOIN, not to oneself"""
    ori = await crowd.join("spark-ori", "#room", caps="away-notify")
    bob = await crowd.join("spark-bob", "#room")
    ada = await crowd.join("spark-ada", caps="away-notify")
    await ori.sync()
    await ada.ask("AWAY :lunch")
    assert codes(await ada.join("#room")) == ["JOIN", "353", "366"]
    assert lines(await ori.sync()) == [("JOIN", "#room"), ("AWAY", "lunch")]
    assert lines(await bob.sync()) == [("JOIN", "#room")]


@pytest.mark.parametrize("invite_only", [False, True])
async def test_members_who_could_invite_see_who_does(crowd: Crowd, invite_only: bool) -> None:
    """IRCv3 invite-notify: the target always, members with the capability, with +i only operators among them"""
    ori = await crowd.join("spark-ori", "#room", caps="invite-notify")
    ada = await crowd.join("spark-ada", "#room", caps="invite-notify")
    bob = await crowd.join("spark-bob", "#room", caps="invite-notify")
    plain = await crowd.join("spark-plain", "#room")
    eve = await crowd.join("spark-eve", caps="invite-notify")
    await ori.ask("MODE #room +o spark-ada")
    if invite_only:
        await ori.ask("MODE #room +i")
    for client in (ada, bob, plain):
        await client.sync()
    assert codes(await ori.ask("INVITE spark-eve #room")) == ["341"]
    told = [("INVITE", "spark-eve", "#room")]
    assert lines(await ada.sync()) == told
    assert lines(await bob.sync()) == ([] if invite_only else told)
    assert lines(await eve.sync()) == told
    assert await plain.sync() == []


async def test_another_host_is_shown_to_those_who_asked(ircd: IRCd, crowd: Crowd) -> None:
    """IRCv3 chghost: from the old source, once; what comes afterwards has the new one"""
    ori = await crowd.join("spark-ori", "#a", "#b", caps="chghost")
    ada = await crowd.join("spark-ada", "#a", "#b", caps="chghost")
    bob = await crowd.join("spark-bob", "#a", "#b")
    for client in (ori, ada):
        await client.sync()
    old = source_of(ircd, "spark-ada")
    publish(ircd, HostSet(ircd.parts.router.ids.stamp(), old, "~ada", "far.example"))
    for client in (ori, ada):
        assert await client.sync() == [Message("CHGHOST", ("~ada", "far.example"), old)]
    assert await bob.sync() == []
    await ada.ask("PRIVMSG #a :hello")
    assert (await ori.sync())[0].source == (await bob.sync())[0].source == "spark-ada!~ada@far.example"
    assert source_of(ircd, "spark-ada") == "spark-ada!~ada@far.example"
