"""Finding others: WHO and WHOX, WHOIS, WHOWAS, ISON, USERHOST."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from culture.config.model import Operator
from culture.protocol.message import Message
from culture.server.auth.authenticator import Credentials, ServerIdentity
from culture.server.ircd import IRCd
from tests.server.conftest import Crowd
from tests.support.client import Client
from tests.support.clock import Clock, ClockedRuntime
from tests.support.servers import Serve, config_for

ROOT = Operator(name="root", password="secret")
HOST = "127.0.0.1"


def rows(messages: list[Message], *verbs: str) -> list[tuple[str, ...]]:
    """The parameters of these replies, without the nick they are for."""
    return [message.params[1:] for message in messages if message.verb in verbs]


def nicks(messages: list[Message]) -> list[str]:
    """Whom a WHO told of."""
    return sorted(row[4] for row in rows(messages, "352"))


@asynccontextmanager
async def crowd_of(ircd: IRCd) -> AsyncIterator[Crowd]:
    async with AsyncExitStack() as stack:
        yield Crowd(ircd, stack)


async def operator(crowd: Crowd, nick: str) -> Client:
    """A client that is operator of the server."""
    client = await crowd.join(nick)
    client.send("OPER root secret")
    await client.expect("381")
    await client.sync()
    return client


class TestWho:
    """RFC 2812 §3.6.1"""

    @pytest.mark.requirement("C05")
    async def test_the_members_of_a_channel(self, crowd: Crowd) -> None:
        ori = await crowd.join("spark-ori", "#Room")
        await crowd.join("spark-ada", "#room")
        await ori.sync()
        got = await ori.ask("WHO #ROOM")
        assert [(message.verb, *message.params) for message in got] == [
            ("352", "spark-ori", "#Room", "~tester", HOST, "spark", "spark-ori", "H@", "0 A Tester"),
            ("352", "spark-ori", "#Room", "~tester", HOST, "spark", "spark-ada", "H", "0 A Tester"),
            ("315", "spark-ori", "#ROOM", "End of WHO list"),
        ]

    @pytest.mark.requirement("C05")
    async def test_agents_are_told_from_people(self, serve: Serve) -> None:
        """The flag B, by class and by the user's own word (ISUPPORT BOT); P by a person's account alone."""

        class ByNick:
            def authenticate(self, connection: Credentials) -> ServerIdentity:
                kinds = {"spark-agent": "agent", "spark-person": "human"}
                kind = kinds.get(connection.nick)
                return ServerIdentity(connection.nick, kind) if kind else ServerIdentity()

        async with serve(authenticator=ByNick()) as ircd, crowd_of(ircd) as crowd:
            ori = await crowd.join("spark-ori", "#room")
            await crowd.join("spark-agent", "#room")
            await crowd.join("spark-person", "#room")
            bot = await crowd.join("spark-bot", "#room")
            await bot.ask("MODE spark-bot +B")
            flags = {row[4]: row[5] for row in rows(await ori.ask("WHO #room"), "352")}
        assert flags == {"spark-ori": "H@", "spark-agent": "HB", "spark-person": "HP", "spark-bot": "HB"}

    async def test_flags_of_away_operator_and_rank(self, serve: Serve) -> None:
        async with serve(operators=(ROOT,)) as ircd, crowd_of(ircd) as crowd:
            root = await operator(crowd, "spark-root")
            await root.join("#room")
            await root.ask("MODE #room +v spark-root")
            await root.ask("AWAY :out")
            ori = await crowd.join("spark-ori", "#room")
            both = await crowd.join("spark-both", "#room", caps="multi-prefix")
            assert rows(await ori.ask("WHO #room"), "352")[0][5] == "G*@"
            assert rows(await both.ask("WHO #room"), "352")[0][5] == "G*@+"
            assert nicks(await ori.ask("WHO #room o")) == ["spark-root"]

    async def test_a_mask_finds_by_nick_user_host_server_and_name(self, crowd: Crowd) -> None:
        ori = await crowd.join("spark-ori")
        ada = await crowd.join("spark-ada")
        await ori.ask("MODE spark-ori -i")
        await ada.ask("MODE spark-ada -i")
        assert nicks(await ori.ask("WHO *-A?A")) == ["spark-ada"]
        for mask in ("~test*", "127.0.0.?", "spar?", "*test?r", "*!*@127.*", "*", "0", ""):
            assert nicks(await ori.ask(f"WHO {mask}")) == ["spark-ada", "spark-ori"], mask
        for mask in ("nobody", "no*", "*!*@10.*", "#nowhere"):
            assert rows(await ori.ask(f"WHO {mask}"), "315", "352") == [(mask, "End of WHO list")]

    async def test_a_mask_with_spaces_does_no_harm(self, crowd: Crowd) -> None:
        ori = await crowd.join("spark-ori")
        assert nicks(await ori.ask("WHO :a tester")) == ["spark-ori"]
        assert rows(await ori.ask("WHO :no one"), "315") == [("*", "End of WHO list")]

    async def test_the_invisible_are_found_by_nick_and_by_those_who_share_a_channel(self, serve: Serve) -> None:
        async with serve(operators=(ROOT,)) as ircd, crowd_of(ircd) as crowd:
            ada = await crowd.join("spark-ada", "#room")
            await ada.ask("MODE spark-ada +i")
            ori = await crowd.join("spark-ori")
            root = await operator(crowd, "spark-root")
            assert nicks(await ori.ask("WHO *ad*")) == []
            assert nicks(await ori.ask("WHO #room")) == []
            assert nicks(await ori.ask("WHO SPARK-ADA")) == ["spark-ada"]
            assert nicks(await root.ask("WHO *ad*")) == ["spark-ada"]
            assert nicks(await root.ask("WHO #room")) == ["spark-ada"]
            await ori.join("#room")
            assert nicks(await ori.ask("WHO *ad*")) == ["spark-ada"]
            await ori.ask("PART #room")
            await ada.ask("MODE spark-ada -i")
            assert nicks(await ori.ask("WHO #room")) == ["spark-ada"]

    async def test_a_secret_channel_is_shown_to_members_and_operators_only(self, serve: Serve) -> None:
        async with serve(operators=(ROOT,)) as ircd, crowd_of(ircd) as crowd:
            ada = await crowd.join("spark-ada", "#hidden")
            await ada.ask("MODE #hidden +s")
            await ada.ask("MODE spark-ada -i")
            ori = await crowd.join("spark-ori")
            root = await operator(crowd, "spark-root")
            assert nicks(await ori.ask("WHO #hidden")) == []
            assert rows(await ori.ask("WHO spark-ada"), "352")[0][0] == "*"
            assert nicks(await ada.ask("WHO #hidden")) == ["spark-ada"]
            assert nicks(await root.ask("WHO #hidden")) == ["spark-ada"]


class TestWhox:
    """IRCv3 WHOX"""

    async def test_columns_come_in_their_own_order(self, crowd: Crowd) -> None:
        ori = await crowd.join("spark-ori", "#room")
        got = await ori.ask("WHO #room %roaldfnshiuct,42")
        everything = (
            "42",
            "#room",
            "~tester",
            HOST,
            HOST,
            "spark",
            "spark-ori",
            "H@",
            "0",
            "0",
            "0",
            "n/a",
            "A Tester",
        )
        assert rows(got, "354") == [everything]
        assert rows(got, "315") == [("#room", "End of WHO list")]

    async def test_only_what_was_asked_for(self, crowd: Crowd) -> None:
        ori = await crowd.join("spark-ori")
        assert rows(await ori.ask("WHO spark-ori %nf"), "354") == [("spark-ori", "H")]
        assert rows(await ori.ask("WHO spark-ori o%n"), "354") == []

    @pytest.mark.parametrize("token", ["", ",", ",1234", ",abc", ",1 2"])
    async def test_a_token_is_at_most_three_digits(self, crowd: Crowd, token: str) -> None:
        ori = await crowd.join("spark-ori")
        assert rows(await ori.ask(f"WHO spark-ori :%tn{token}"), "354") == [("0", "spark-ori")]

    async def test_without_a_known_column_it_is_an_ordinary_who(self, crowd: Crowd) -> None:
        ori = await crowd.join("spark-ori")
        assert nicks(await ori.ask("WHO spark-ori %Z")) == ["spark-ori"]


class Ages(NamedTuple):
    ircd: IRCd
    clock: Clock


@pytest.fixture
async def ages(tmp_path: Path) -> AsyncIterator[Ages]:
    """A server whose clock the test moves."""
    clock = Clock()
    async with IRCd(config_for(tmp_path), runtime=ClockedRuntime(clock)).running() as ircd:
        yield Ages(ircd, clock)


class TestWhois:
    """RFC 2812 §3.6.2"""

    @pytest.mark.requirement("C06")
    async def test_what_is_told_of_somebody(self, crowd: Crowd) -> None:
        ada = await crowd.join("spark-ada", "#b", "#a")
        ori = await crowd.join("spark-ori", "#b", "#a")
        await ada.ask("MODE #b -o+v spark-ada spark-ada")
        await ori.sync()
        got = [(message.verb, *message.params) for message in await ori.ask("WHOIS SPARK-ada")]
        assert got[:3] == [
            ("311", "spark-ori", "spark-ada", "~tester", HOST, "*", "A Tester"),
            ("319", "spark-ori", "spark-ada", "@#a +#b"),
            ("312", "spark-ori", "spark-ada", "spark", "culture IRC server"),
        ]
        assert got[3][:3] == ("317", "spark-ori", "spark-ada")
        assert got[4:] == [("318", "spark-ori", "SPARK-ada", "End of WHOIS list")]

    @pytest.mark.requirement("C06")
    async def test_a_wrong_nick_gets_401_with_the_nearest_one(self, crowd: Crowd) -> None:
        """The nearest of those the asker may see: an invisible stranger is no hint."""
        ori = await crowd.join("spark-ori", "#room")
        claire = await crowd.join("spark-claire", "#room")
        bartholomew = await crowd.join("spark-bartholomew")
        await claire.ask("MODE spark-claire +i")
        await bartholomew.ask("MODE spark-bartholomew +i")
        for wrong, hint in (("spark-clare", "; did you mean spark-claire?"), ("spark-bartholomev", ""), ("x y", "")):
            name = "*" if " " in wrong else wrong
            assert rows(await ori.ask(f"WHOIS :{wrong}"), "401", "318") == [
                (name, f"No such nick/channel{hint}"),
                (name, "End of WHOIS list"),
            ]

    async def test_without_a_nick(self, crowd: Crowd) -> None:
        ori = await crowd.join("spark-ori")
        for line in ("WHOIS", "WHOIS :"):
            assert rows(await ori.ask(line), "431") == [("No nickname given",)]

    async def test_a_server_may_be_named_by_itself_or_by_somebody_on_it(self, crowd: Crowd) -> None:
        ori = await crowd.join("spark-ori")
        for server in ("spark", "SPA*", "spark-ori"):
            assert len(rows(await ori.ask(f"WHOIS {server} spark-ori"), "311")) == 1
        assert rows(await ori.ask("WHOIS thor spark-ori"), "402", "318") == [("thor", "No such server")]

    @pytest.mark.requirement("C06")
    async def test_away_operators_accounts_and_agents_show(self, serve: Serve) -> None:
        class Agents:
            def authenticate(self, connection: Credentials) -> ServerIdentity:
                kind = {"spark-agent": "agent", "spark-person": "human"}.get(connection.nick)
                return ServerIdentity(connection.nick, kind) if kind else ServerIdentity()

        async with serve(operators=(ROOT,), authenticator=Agents()) as ircd, crowd_of(ircd) as crowd:
            root = await operator(crowd, "spark-root")
            await root.ask("AWAY :out to lunch")
            await crowd.join("spark-agent")
            await crowd.join("spark-person")
            bot = await crowd.join("spark-bot")
            await bot.ask("MODE spark-bot +B")
            special = ("301", "313", "320", "335", "330")
            assert rows(await bot.ask("WHOIS spark-root"), *special) == [
                ("spark-root", "out to lunch"),
                ("spark-root", "is an IRC operator"),
            ]
            assert rows(await bot.ask("WHOIS spark-agent"), *special) == [
                ("spark-agent", "is an agent"),
                ("spark-agent", "spark-agent", "is logged in as"),
            ]
            assert rows(await bot.ask("WHOIS spark-person"), *special) == [
                ("spark-person", "is a person"),
                ("spark-person", "spark-person", "is logged in as"),
            ]
            assert rows(await root.ask("WHOIS spark-bot"), *special) == [("spark-bot", "is a bot")]

    async def test_which_channels_show(self, serve: Serve) -> None:
        """Those both are in; others only of the visible, and if not secret; operators see all."""
        async with serve(operators=(ROOT,)) as ircd, crowd_of(ircd) as crowd:
            ada = await crowd.join("spark-ada", "#both", "#open", "#hidden")
            await ada.ask("MODE #hidden +s")
            await ada.ask("MODE spark-ada +i")
            ori = await crowd.join("spark-ori", "#both")
            root = await operator(crowd, "spark-root")
            everything = [("spark-ada", "@#both @#hidden @#open")]
            assert rows(await ori.ask("WHOIS spark-ada"), "319") == [("spark-ada", "@#both")]
            await ada.ask("MODE spark-ada -i")
            assert rows(await ori.ask("WHOIS spark-ada"), "319") == [("spark-ada", "@#both @#open")]
            assert rows(await root.ask("WHOIS spark-ada"), "319") == everything
            assert rows(await ada.ask("WHOIS spark-ada"), "319") == everything

    async def test_many_channels_take_several_lines(self, crowd: Crowd) -> None:
        ori = await crowd.join("spark-ori")
        names = [f"#{'x' * 58}{number}" for number in range(20, 40)]
        for name in names:
            await ori.join(name)
        got = rows(await ori.ask("WHOIS spark-ori"), "319")
        assert [name for row in got for name in row[1].split(" ")] == [f"@{name}" for name in names]
        assert len(got) > 1

    async def test_idle_counts_from_the_last_word_of_any_session(self, ages: Ages) -> None:
        async with crowd_of(ages.ircd) as crowd:
            ori = await crowd.join("spark-ori")
            start = int(ages.clock.now)
            ages.clock.now += 90.5
            assert rows(await ori.ask("WHOIS spark-ori"), "317") == [
                ("spark-ori", "90", str(start), "seconds idle, signon time")
            ]
            assert rows(await ori.ask("WHO spark-ori %l"), "354") == [("90",)]
            await ori.ask("PRIVMSG spark-ori :still here")
            ages.clock.now += 5
            assert rows(await ori.ask("WHOIS spark-ori"), "317")[0][1] == "5"


class TestWhowas:
    """RFC 2812 §3.6.3"""

    async def test_the_latest_comes_first(self, ages: Ages) -> None:
        async with crowd_of(ages.ircd) as crowd:
            ori = await crowd.join("spark-ori")
            for name in ("one", "two", "three"):
                ages.clock.now += 1
                gone = await crowd.connect()
                gone.send(f"NICK spark-ada\r\nUSER {name} 0 * :Number {name}\r\nQUIT")
                await gone.ended()
            entry = ("spark-ada", "~three", HOST, "*", "Number three")
            got = [(message.verb, *message.params[1:]) for message in await ori.ask("WHOWAS SPARK-ADA 1")]
            assert got == [
                ("314", *entry),
                ("312", "spark-ada", "spark", "2027-01-15T08:00:03.000Z"),
                ("369", "SPARK-ADA", "End of WHOWAS"),
            ]
            for count in ("", "0", "-1", "7", "many", "99999999999999"):
                names = [row[1] for row in rows(await ori.ask(f"WHOWAS spark-ada {count}"), "314")]
                assert names == ["~three", "~two", "~one"], count

    async def test_a_former_nick_is_remembered(self, crowd: Crowd) -> None:
        ori = await crowd.join("spark-ori")
        await ori.ask("NICK spark-new")
        assert rows(await ori.ask("WHOWAS spark-ori"), "314") == [("spark-ori", "~tester", HOST, "*", "A Tester")]

    async def test_nobody_had_it(self, crowd: Crowd) -> None:
        ori = await crowd.join("spark-ori")
        assert rows(await ori.ask("WHOWAS spark-ada"), "406", "369") == [
            ("spark-ada", "There was no such nickname"),
            ("spark-ada", "End of WHOWAS"),
        ]
        assert rows(await ori.ask("WHOWAS"), "431") == [("No nickname given",)]


async def test_ison_tells_who_is_here(crowd: Crowd) -> None:
    """RFC 2812 §4.9"""
    ori = await crowd.join("spark-ori")
    await crowd.join("spark-ada")
    assert rows(await ori.ask("ISON spark-nobody SPARK-ada :spark-ori  spark-x"), "303") == [("spark-ada spark-ori",)]
    assert rows(await ori.ask("ISON spark-nobody"), "303") == [("",)]
    assert rows(await ori.ask("ISON"), "461") == [("ISON", "Not enough parameters")]


async def test_userhost_tells_operators_and_the_away(serve: Serve) -> None:
    """RFC 2812 §4.8; at most five are answered."""
    async with serve(operators=(ROOT,)) as ircd, crowd_of(ircd) as crowd:
        root = await operator(crowd, "spark-root")
        ori = await crowd.join("spark-ori")
        await ori.ask("AWAY :out")
        got = await root.ask("USERHOST spark-root spark-nobody SPARK-ORI a b spark-ori")
        assert rows(got, "302") == [(f"spark-root*=+~tester@{HOST} spark-ori=-~tester@{HOST}",)]


async def test_a_long_who_waits_for_its_reader_and_outlives_those_it_tells_of(serve: Serve) -> None:
    """Rows are made as the socket drains; whoever left meanwhile is left out."""
    async with serve(limits={"pull_queue": 400}) as ircd, crowd_of(ircd) as crowd:
        ori = await crowd.join("spark-ori", "#room")
        others = await asyncio.gather(*(crowd.join(f"spark-n{number}", "#room") for number in range(30)))
        await ori.sync()
        got = await ori.ask("WHO #room")
        assert len(nicks(got)) == 31
        assert got[-1].verb == "315"
        for other in others[10:]:
            other.send("QUIT")
            await other.ended()
        assert len(nicks(await ori.ask("WHO #room"))) == 11
