"""The server about itself: MOTD, LUSERS, VERSION, TIME, INFO, ADMIN, LINKS, STATS, HELP."""

from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from culture import __version__
from culture.config.model import Admin, Operator
from culture.protocol.message import Message
from culture.server.ircd import IRCd
from tests.server.conftest import Crowd
from tests.support.client import registered
from tests.support.clock import Clock, ClockedRuntime
from tests.support.servers import Serve, config_for

DAY = 86_400


def replies(messages: list[Message]) -> list[tuple[str, ...]]:
    """Each answer: its number, then its parameters without the nick they are for."""
    return [(message.verb, *message.params[1:]) for message in messages]


def codes(messages: list[Message]) -> list[str]:
    return [message.verb for message in messages]


@pytest.mark.requirement("B16")
async def test_the_standard_questions_get_their_standard_answers(crowd: Crowd) -> None:
    """MOTD, LUSERS, VERSION, ISON, USERHOST, AWAY, INVITE, KICK and the queries of MODE (RFC 2812 §3 and §4)."""
    ori = await crowd.join("spark-ori", "#room")
    ada = await crowd.join("spark-ada")
    answers = {
        "MOTD": ["375", "372", "376"],
        "LUSERS": ["251", "252", "253", "254", "255", "265", "266"],
        "ISON spark-ada": ["303"],
        "USERHOST spark-ada": ["302"],
        "MODE #room": ["324", "329"],
        "MODE #room b": ["368"],
        "MODE spark-ori": ["221"],
        "INVITE spark-ada #room": ["341"],
        "KICK #room spark-ada": ["441"],
        "AWAY :out": ["306"],
        "AWAY": ["305"],
    }
    for line, expected in answers.items():
        assert codes(await ori.ask(line)) == expected, line
    version = codes(await ori.ask("VERSION"))
    assert version[0] == "351"
    assert set(version[1:]) == {"005"}
    assert codes(await ada.sync()) == ["INVITE"]
    await ada.join("#room")
    assert codes(await ori.ask("KICK #room spark-ada :enough")) == ["JOIN", "KICK"]
    await ori.ask("AWAY :out")
    assert replies(await ada.ask("PRIVMSG spark-ori :there?")) == [
        ("KICK", "spark-ada", "enough"),
        ("301", "spark-ori", "out"),
    ]


async def test_the_message_of_the_day_line_by_line(serve: Serve) -> None:
    """RFC 2812 §3.4.1"""
    async with serve(motd="first\n\n  second") as ircd, AsyncExitStack() as stack:
        ori = await Crowd(ircd, stack).join("spark-ori")
        assert replies(await ori.ask("MOTD")) == [
            ("375", "- spark Message of the day - "),
            ("372", "- first"),
            ("372", "- "),
            ("372", "-   second"),
            ("376", "End of MOTD command"),
        ]


async def test_without_a_message_of_the_day(serve: Serve) -> None:
    async with serve(motd="") as ircd, AsyncExitStack() as stack:
        ori = await Crowd(ircd, stack).join("spark-ori")
        assert replies(await ori.ask("MOTD")) == [("422", "There is no MOTD")]


async def test_lusers_counts_people_connections_and_channels(serve: Serve) -> None:
    """RFC 2812 §3.4.2"""
    async with serve(operators=(Operator(name="root", password="secret"),)) as ircd, AsyncExitStack() as stack:
        crowd = Crowd(ircd, stack)
        ori = await crowd.join("spark-ori", "#room")
        ada = await crowd.join("spark-ada")
        await ada.ask("MODE spark-ada +i")
        await ada.ask("OPER root secret")
        waiting = await crowd.connect()
        waiting.send("CAP LS")
        await waiting.expect("CAP")
        expected = [
            ("251", "There are 1 users and 1 invisible on 1 servers"),
            ("252", "1", "operator(s) online"),
            ("253", "1", "unknown connection(s)"),
            ("254", "2", "channels formed"),
            ("255", "I have 2 clients and 0 servers"),
            ("265", "2", "2", "Current local users 2, max 2"),
            ("266", "2", "2", "Current global users 2, max 2"),
        ]
        assert replies(await ori.ask("LUSERS")) == expected
        ada.send("QUIT")
        await ada.ended()
        after = replies(await ori.ask("LUSERS"))
        assert after[0] == ("251", "There are 1 users and 0 invisible on 1 servers")
        assert after[-1] == ("266", "1", "2", "Current global users 1, max 2")


async def test_the_version_comes_with_the_features(crowd: Crowd) -> None:
    """RFC 2812 §3.4.3; the tokens are those of the welcome."""
    ori = await crowd.join("spark-ori")
    welcome = [message.params[1:] for message in ori.seen if message.verb == "005"]
    got = await ori.ask("VERSION")
    assert replies(got[:1]) == [("351", f"culture-{__version__}", "spark", "culture IRC server")]
    assert [message.params[1:] for message in got[1:]] == welcome


async def test_time_and_uptime(tmp_path: Path) -> None:
    """RFC 2812 §3.4.6 and §3.4.4"""
    clock = Clock()
    async with IRCd(config_for(tmp_path), runtime=ClockedRuntime(clock)).running() as ircd, AsyncExitStack() as stack:
        ori = await Crowd(ircd, stack).join("spark-ori")
        clock.now += 3 * DAY + 3_723.5
        assert replies(await ori.ask("TIME")) == [("391", "spark", "2027-01-18T09:02:03.500Z")]
        assert replies(await ori.ask("STATS u")) == [
            ("242", "Server Up 3 days 1:02:03"),
            ("219", "u", "End of STATS report"),
        ]


async def test_the_operators_are_shown_to_operators_only_and_never_their_passwords(serve: Serve) -> None:
    async with serve(operators=(Operator(name="root", password="secret"),)) as ircd, AsyncExitStack() as stack:
        ori = await Crowd(ircd, stack).join("spark-ori")
        assert codes(await ori.ask("STATS o")) == ["481"]
        await ori.ask("OPER root secret")
        assert replies(await ori.ask("STATS o")) == [
            ("243", "O", "*", "*", "root"),
            ("219", "o", "End of STATS report"),
        ]


async def test_statistics_nobody_keeps(crowd: Crowd) -> None:
    ori = await crowd.join("spark-ori")
    assert replies(await ori.ask("STATS z")) == [("219", "z", "End of STATS report")]
    assert replies(await ori.ask("STATS :")) == [("219", "*", "End of STATS report")]
    assert codes(await ori.ask("STATS")) == ["461"]


async def test_info_says_what_runs(crowd: Crowd) -> None:
    """RFC 2812 §3.4.10"""
    ori = await crowd.join("spark-ori")
    *lines, end = await ori.ask("INFO")
    assert end.verb == "374"
    assert {message.verb for message in lines} == {"371"}
    assert __version__ in lines[0].params[1]


async def test_whom_to_ask(serve: Serve) -> None:
    """RFC 2812 §3.4.9"""
    about = Admin(location1="The cellar", email="ori@example.org")
    async with serve(admin=about) as ircd, AsyncExitStack() as stack:
        ori = await Crowd(ircd, stack).join("spark-ori")
        assert replies(await ori.ask("ADMIN")) == [
            ("256", "spark", "Administrative info"),
            ("257", "The cellar"),
            ("259", "ori@example.org"),
        ]


async def test_nobody_to_ask(crowd: Crowd) -> None:
    ori = await crowd.join("spark-ori")
    assert replies(await ori.ask("ADMIN")) == [("423", "spark", "No administrative info available")]


async def test_the_servers_of_the_network(serve: Serve) -> None:
    """RFC 2812 §3.4.5; for operators, the others see none"""
    operators = (Operator(name="ori", password="choose-your-own"),)
    async with serve(operators=operators) as ircd, registered(ircd.port, "spark-ori") as ori:
        assert replies(await ori.ask("LINKS")) == [("365", "*", "End of LINKS list")]
        await ori.ask("OPER ori choose-your-own")
        here = ("364", "spark", "spark", "0 culture IRC server")
        assert replies(await ori.ask("LINKS")) == [here, ("365", "*", "End of LINKS list")]
        assert replies(await ori.ask("LINKS SP*")) == [here, ("365", "SP*", "End of LINKS list")]
        assert replies(await ori.ask("LINKS thor")) == [("365", "thor", "End of LINKS list")]


@pytest.mark.parametrize("verb", ["MOTD", "VERSION", "TIME", "INFO", "ADMIN", "LUSERS *", "STATS u"])
async def test_another_server_is_not_asked(crowd: Crowd, verb: str) -> None:
    """402; the server itself may be named, by a mask or by somebody who is on it."""
    ori = await crowd.join("spark-ori")
    assert replies(await ori.ask(f"{verb} thor.example")) == [("402", "thor.example", "No such server")]
    for server in ("SPARK", "sp?rk", "spark-ori"):
        assert codes(await ori.ask(f"{verb} {server}"))[0] != "402"


class TestHelp:
    """The HELP command of Modern IRC"""

    async def test_every_verb_is_explained(self, crowd: Crowd, ircd: IRCd) -> None:
        ori = await crowd.join("spark-ori")
        index = await ori.ask("HELP")
        assert (index[0].verb, index[-1].verb) == ("704", "706")
        verbs = [verb for message in index[1:-1] for verb in message.params[2].split(" ")]
        assert verbs == sorted(ircd.parts.commands)
        for verb in verbs:
            got = await ori.ask(f"HELP {verb}")
            assert {message.params[1] for message in got} == {verb}
            assert codes(got)[0] == "704"
            assert codes(got)[1:-1] == ["705"] * (len(got) - 2)
            assert verb in got[0].params[2]
            assert any(len(message.params[2]) > 3 for message in got[1:-1]), f"{verb} has no explanation"

    async def test_helpop_and_lower_case_are_the_same(self, crowd: Crowd) -> None:
        ori = await crowd.join("spark-ori")
        assert replies(await ori.ask("HELPOP part")) == replies(await ori.ask("HELP part"))
        assert replies(await ori.ask("help part"))[0] == ("704", "part", "PART #a,#b :reason")

    @pytest.mark.parametrize("verb", ["HELP", "HELPOP"])
    async def test_what_is_no_verb(self, crowd: Crowd, verb: str) -> None:
        ori = await crowd.join("spark-ori")
        assert replies(await ori.ask(f"{verb} PRIVMGS")) == [
            ("524", "PRIVMGS", "No help available on this topic; did you mean PRIVMSG?")
        ]
        assert replies(await ori.ask(f"{verb} xyzzy")) == [("524", "xyzzy", "No help available on this topic")]
        assert codes(await ori.ask(f"{verb} :two words")) == ["524"]
