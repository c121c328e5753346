"""RENAME: a channel under another name, with all that is in it."""

import pytest

from culture.protocol.stream import LINE_LIMIT
from culture.server.ircd import IRCd
from tests.server.conftest import Crowd
from tests.server.rooms import codes, lines, modes_of
from tests.server.test_notify import ByPassword, log_in
from tests.support.client import Client, connected, registered
from tests.support.servers import Serve

CAP = "draft/channel-rename"


async def people(crowd: Crowd) -> list[Client]:
    """The operator of #old and a member who know RENAME, and one who does not."""
    ori = await crowd.join("spark-ori", "#old", caps=CAP)
    ada = await crowd.join("spark-ada", "#old", caps=CAP)
    bob = await crowd.join("spark-bob", "#old")
    for client in (ori, ada):
        await client.sync()
    return [ori, ada, bob]


async def test_the_same_channel_under_another_name(ircd: IRCd, crowd: Crowd) -> None:
    """draft/channel-rename: members, modes, topic and bans stay; the old name is free"""
    ori, ada, bob = await people(crowd)
    await ori.ask("PRIVMSG #old :so that it is known who hears the channel")
    for line in ("TOPIC #old :tea", "MODE #old +klb beer 9 eve"):
        await ori.ask(line)
    for client in (ada, bob):
        await client.sync()
    assert lines(await ori.ask("RENAME #OLD #new :better")) == [("RENAME", "#old", "#new", "better")]
    (seen,) = await ada.sync()
    assert (seen.verb, seen.params) == ("RENAME", ("#old", "#new", "better"))
    assert seen.source.startswith("spark-ori!")
    assert await modes_of(ori, "#new") == ("+ntkl", "beer", "9")
    assert codes(await ori.ask("MODE #new b")) == ["367", "368"]
    assert codes(await ori.ask("MODE #old")) == ["403"]
    assert {channel.name for channel in ircd.parts.network.users["spark-ada"].channels} == {"#new"}

    await bob.sync()
    await ori.ask("PRIVMSG #new :hello")
    for client in (ada, bob):
        assert lines(await client.sync()) == [("PRIVMSG", "#new", "hello")]
    assert codes(await ada.ask("PRIVMSG #old :hello")) == ["403"]
    await ada.ask("PART #new")
    assert codes(await ori.sync()) == ["PART"]

    assert codes(await bob.join("#old"))[:2] == ["PART", "JOIN"]
    assert codes(await bob.ask("MODE #old +k beer")) == ["MODE"]
    assert await ori.sync() == []


async def test_a_client_that_knows_no_rename_leaves_and_comes(crowd: Crowd) -> None:
    """draft/channel-rename: PART with the reason, JOIN, topic and names; nobody else is seen to move"""
    ori, ada, bob = await people(crowd)
    await ori.ask("TOPIC #old :tea")
    await bob.sync()
    await ori.ask("RENAME #old #new")
    shown = await bob.sync()
    assert codes(shown) == ["PART", "JOIN", "332", "333", "353", "366"]
    assert shown[0].source == shown[1].source == "spark-bob!~tester@127.0.0.1"
    assert shown[0].params == ("#old", "Renamed to #new")
    assert shown[1].params == ("#new",)
    assert set(shown[4].params[-1].split(" ")) == {"@spark-ori", "spark-ada", "spark-bob"}
    assert codes(await ada.sync()) == ["TOPIC", "RENAME"]
    await ori.ask("MODE #new +o spark-bob")
    await bob.sync()
    assert codes(await bob.ask("RENAME #new #old :back again"))[:2] == ["PART", "JOIN"]
    assert lines(await ori.sync()) == [("RENAME", "#new", "#old", "back again")]


async def test_the_join_of_such_a_client_is_as_it_wants_it(crowd: Crowd) -> None:
    """draft/channel-rename with extended-join, under a label"""
    ori = await crowd.join("spark-ori", "#old", caps="extended-join batch labeled-response")
    shown = await ori.ask("@label=x RENAME #old #new :why not")
    assert codes(shown) == ["BATCH", "PART", "JOIN", "353", "366", "BATCH"]
    assert shown[1].params == ("#old", "why not")
    assert shown[2].params == ("#new", "*", "A Tester")


async def test_only_the_case_may_change(ircd: IRCd, crowd: Crowd) -> None:
    """draft/channel-rename: the others are told in the same way"""
    ori, _, bob = await people(crowd)
    assert lines(await ori.ask("RENAME #old #OLD")) == [("RENAME", "#old", "#OLD", "")]
    assert lines(await bob.sync())[:2] == [("PART", "#old", "Renamed to #OLD"), ("JOIN", "#OLD")]
    assert ircd.parts.network.channels["#old"].name == "#OLD"
    assert lines(await ori.ask("PRIVMSG #old :hello")) == []
    assert lines(await bob.sync()) == [("PRIVMSG", "#OLD", "hello")]


async def test_an_invitation_goes_with_the_channel(crowd: Crowd) -> None:
    ori, *_ = await people(crowd)
    eve = await crowd.join("spark-eve")
    await ori.ask("MODE #old +i")
    await ori.ask("INVITE spark-eve #old")
    await ori.ask("RENAME #old #new")
    assert codes(await eve.join("#new"))[:2] == ["INVITE", "JOIN"]


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("RENAME #old", ("461", "spark-ori", "RENAME")),
        ("RENAME #none #new", ("403", "spark-ori", "#none")),
        ("RENAME #other #new", ("442", "spark-ori", "#other")),
        ("RENAME #mine #new", ("482", "spark-ori", "#mine")),
        ("RENAME #old #other", ("FAIL", "RENAME", "CHANNEL_NAME_IN_USE", "#old", "#other")),
        ("RENAME #old #OTHER", ("FAIL", "RENAME", "CHANNEL_NAME_IN_USE", "#old", "#OTHER")),
        ("RENAME #old #old", ("FAIL", "RENAME", "CANNOT_RENAME", "#old", "#old")),
        ("RENAME #old new", ("FAIL", "RENAME", "CANNOT_RENAME", "#old", "new")),
        ("RENAME #old :#a b", ("FAIL", "RENAME", "CANNOT_RENAME", "#old", "*")),
        ("RENAME #old :", ("FAIL", "RENAME", "CANNOT_RENAME", "#old", "*")),
        ("RENAME #old #" + "x" * 64, ("FAIL", "RENAME", "CANNOT_RENAME", "#old", "#" + "x" * 64)),
        ("RENAME #general #new", ("FAIL", "RENAME", "CANNOT_RENAME", "#general", "#new")),
        ("RENAME #old #new :" + "x" * 480, ("417", "spark-ori")),
    ],
)
async def test_what_may_not_be_is_refused(crowd: Crowd, line: str, answer: tuple[str, ...]) -> None:
    """draft/channel-rename; RFC 2812 §5.2"""
    await crowd.join("spark-eve", "#other", "#mine")
    ori = await crowd.join("spark-ori", "#old", "#mine", "#general", caps=f"standard-replies {CAP}")
    (refused,) = lines(await ori.ask(line))
    assert refused[: len(answer)] == answer
    assert codes(await ori.ask("MODE #old")) == ["324", "329"]


async def test_a_registered_channel_is_renamed_by_its_founder(serve: Serve) -> None:
    """draft/channel-rename, +P: its other operators could take it away else"""
    async with (
        serve(authenticator=ByPassword()) as ircd,
        connected(ircd.port) as ori,
        registered(ircd.port, "spark-ada") as ada,
    ):
        await log_in(ori, "ori", CAP)
        await ori.join("#old")
        await ada.join("#old")
        await ori.ask("MODE #old +Po spark-ada")
        assert lines(await ada.ask("RENAME #old #new"))[-1][:3] == ("FAIL", "RENAME", "CANNOT_RENAME")
        assert codes(await ori.ask("RENAME #old #new")) == ["RENAME"]
        assert await modes_of(ori, "#new") == ("+Pnt",)


async def test_every_line_fits(ircd: IRCd, crowd: Crowd) -> None:
    """RFC 2812 §2.3: the longest reason, to those with the longest nick"""
    old, new = "#" + "a" * 63, "#" + "b" * 63
    ori = await crowd.join("spark-ori", old, caps=CAP)
    bob = await crowd.join("spark-" + "b" * 26, old)
    await ori.sync()
    longest = 400
    while codes(await ori.ask(f"RENAME {old} {new} :{'x' * longest}")) == ["417"]:
        longest -= 1
    assert ircd.parts.network.channels.keys() == {"#general", new}
    assert len(await bob.line()) <= LINE_LIMIT
