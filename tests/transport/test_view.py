"""Who is where, kept true through everything that happens."""

from pathlib import Path

import pytest

from culture.protocol.message import Message as Line
from culture.protocol.vocabulary import UserClass, UserKey
from culture.server.ircd import IRCd
from culture.transport.view import NetworkView
from culture.transport.view_updates import apply
from tests.support.client import registered
from tests.support.mesh import mesh
from tests.transport.conftest import Come


def shown(*lines: str) -> NetworkView:
    view = NetworkView("ada")
    for line in lines:
        apply(view, Line.parse(line))
    return view


WELCOME = (
    ":s 001 ada :Welcome",
    ":s 005 ada CASEMAPPING=ascii PREFIX=(qov)~@+ CHANMODES=b,k,l,imnst BOT=B :are supported by this server",
    ":ada!a@host JOIN #general",
    ":s 332 ada #general :tea at four",
    ":s 353 ada = #general :~@ori +bob ada",
)


def ranks(view: NetworkView, channel: str = "#general") -> dict[str, str]:
    return {member.nick: member.modes for member in view.members(channel)}


def test_a_channel_is_shown_with_ranks_and_topic() -> None:
    view = shown(*WELCOME)
    assert ranks(view) == {"ada": "", "ori": "qo", "bob": "v"}
    assert view.channels == ["#general"] and view.topic("#GENERAL") == "tea at four"
    assert view.operators("#general") == ["ori"]
    assert view.prefix == "ada!a@host"


@pytest.mark.parametrize(
    ("line", "left"),
    [
        (":ori!o@h PART #general :bye", {"ada": "", "bob": "v"}),
        (":ori!o@h QUIT :bye", {"ada": "", "bob": "v"}),
        (":ori!o@h KICK #general bob :bye", {"ada": "", "ori": "qo"}),
        (":ori!o@h NICK rio", {"ada": "", "rio": "qo", "bob": "v"}),
        (":ori!o@h NICK ORI", {"ada": "", "ORI": "qo", "bob": "v"}),
        (":ori!o@h MODE #general +o-v+o bob bob ada", {"ada": "o", "ori": "qo", "bob": "o"}),
        (":ori!o@h MODE #general +bkl-i *!*@* key 5", {"ada": "", "ori": "qo", "bob": "v"}),
        (":eve!e@h JOIN #general eve :Eve", {"ada": "", "ori": "qo", "bob": "v", "eve": ""}),
        (":eve!e@h JOIN #elsewhere", {"ada": "", "ori": "qo", "bob": "v"}),
        (":ori!o@h KICK #general ada :bye", {}),
        (":ada!a@host PART #general", {}),
    ],
)
def test_whoever_comes_goes_or_changes(line: str, left: dict[str, str]) -> None:
    view = shown(*WELCOME, line)
    assert ranks(view) == left
    assert {user.nick for user in map(view.user, left) if user} == set(left)
    assert view.user("bob") is None or "bob" in left


def test_a_new_nick_of_ones_own() -> None:
    view = shown(*WELCOME, ":ada!a@host NICK ada2")
    assert view.nick == "ada2" and view.is_self("ADA2!x@y") and not view.is_self("ada")
    assert "ada2" in ranks(view)


def test_a_channel_with_another_name() -> None:
    view = shown(*WELCOME, ":ori!o@h RENAME #general #tea :better")
    assert view.channels == ["#tea"] and set(ranks(view, "#tea")) == {"ada", "ori", "bob"}
    assert view.topic("#tea") == "tea at four"


def test_facts_about_people() -> None:
    view = shown(
        *WELCOME,
        "@account=bob;agentirc.dev/class=agent :bob!b@host PRIVMSG #general :hello",
        ":bob!b@host AWAY :lunch",
        ":ori!o@h CHGHOST oo hh",
        ":ori!oo@hh SETNAME :Ori of old",
        ":s 761 ada ori agentirc.dev/state * working",
        ":s METADATA bob agentirc.dev/state * idle",
        ":s 761 ada #general agentirc.dev/purpose * tea",
    )
    bob, ori = view.user("bob"), view.user("ori")
    assert bob is not None and ori is not None
    assert (bob.account, bob.kind, bob.away, bob.metadata) == (
        "bob",
        UserClass.AGENT,
        True,
        {"agentirc.dev/state": "idle"},
    )
    assert (ori.user, ori.host, ori.realname, ori.metadata) == (
        "oo",
        "hh",
        "Ori of old",
        {"agentirc.dev/state": "working"},
    )
    assert view.channel_metadata("#general") == {"agentirc.dev/purpose": "tea"}
    for line in (":bob!b@host AWAY", ":bob!b@host ACCOUNT *", ":s 766 ada ori agentirc.dev/state :key not set"):
        apply(view, Line.parse(line))
    bob, ori = view.user("bob"), view.user("ori")
    assert bob is not None and ori is not None
    assert (bob.account, bob.kind, bob.away) == (None, UserClass.UNKNOWN, False)
    assert ori.metadata == {}


def test_names_compare_as_the_server_says() -> None:
    lines = (":s 005 ada CASEMAPPING=rfc1459 :are supported by this server", ":ada!a@h JOIN #a[b]")
    assert shown(":s 001 ada :Hi", *lines).channel("#A{B}") is not None
    assert shown(":s 001 ada :Hi", lines[0].replace("rfc1459", "ascii"), lines[1]).channel("#a{b}") is None


@pytest.mark.parametrize("verb", ["001", "005", "JOIN", "PART", "KICK", "NICK", "MODE", "353", "352", "761", "RENAME"])
def test_a_line_that_lacks_something_does_no_harm(verb: str) -> None:
    view = shown(*WELCOME)
    for params in ((), ("#general",), ("#general", "")):
        if verb != "NICK" or not params:
            apply(view, Line(verb, params, "ori!o@h"))
    assert "bob" in ranks(view)


async def test_the_view_of_a_real_server(ircd: IRCd, come: Come) -> None:
    ada = await come(ircd.port, "spark-ada", ["#general"])
    bob = await come(ircd.port, "spark-bob", ["#general"])
    async with registered(ircd.port, "spark-ori") as ori:
        await ori.join("#general")
        await bob.irc.set_away("lunch")
        await bob.irc.set_metadata(UserKey.STATE.value, "working")
        await ori.ask("NICK spark-rio")
        await ada.irc.request("PING", "here")
        members = {member.nick: member for member in ada.irc.members("#general")}
        assert set(members) == {"spark-ada", "spark-bob", "spark-rio"}
        assert members["spark-rio"].is_operator and not members["spark-ada"].is_operator
        assert members["spark-bob"].away and members["spark-bob"].metadata == {UserKey.STATE.value: "working"}
        found = {member.nick: member for member in await ada.irc.send_who("#general")}
        assert found["spark-bob"].kind is UserClass.BOT and found["spark-bob"].away
        assert found["spark-rio"].kind is UserClass.UNKNOWN
    assert await ada.irc.get_members("#general") == ["spark-ada", "spark-bob", "spark-rio"]


async def test_a_netsplit_and_its_end(tmp_path: Path, come: Come) -> None:
    async with mesh(tmp_path, ["spark", "thor"], [("thor", "spark")]) as servers:
        await servers.linked()
        ada = await come(servers.members["spark"].port, "spark-ada", ["#general"])
        bob = await come(servers.members["thor"].port, "thor-bob", ["#general"])
        await bob.irc.send_privmsg("#general", "from thor")
        await ada.hears("from thor")
        assert "thor-bob" in {member.nick for member in ada.irc.members("#general")}
        servers.proxy("thor", "spark").cut()
        await servers.reaches("spark", ["spark"])
        await ada.irc.request("PING", "here")
        assert {member.nick for member in ada.irc.members("#general")} == {"spark-ada"}
        await bob.irc.send_privmsg("#general", "said behind the split")
        servers.proxy("thor", "spark").heal()
        await ada.hears("said behind the split")
        await servers.linked()
        await ada.irc.request("PING", "here")
        assert "thor-bob" in {member.nick for member in ada.irc.members("#general")}


def test_the_modes_of_a_channel_are_known_from_its_answer_and_its_changes() -> None:
    view = shown(*WELCOME, ":s 324 ada #general +ntl 5", ":ori!o@h MODE #general +m-t+o bob")
    channel = view.channel("#general")
    assert channel is not None and channel.flags == {"n", "m"}
    assert ranks(view)["bob"] == "ov"


async def test_a_channel_s_modes_are_asked_for_when_it_is_entered(ircd: IRCd, come: Come) -> None:
    async with registered(ircd.port, "spark-ori") as ori:
        await ori.join("#general")
        await ori.ask("MODE #general +D")
        ada = await come(ircd.port, "spark-ada", ["#general"])
        channel = ada.irc.view.channel("#general")
        assert channel is not None and channel.flags == {"D", "n", "t"}
