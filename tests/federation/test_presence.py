"""Who is there and what they do looks the same on every server, over one link and over two."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from culture.server.channels.registered_channels import parse
from tests.federation.meshes import Servers, linked
from tests.support.waiting import until

CAPS = "away-notify account-notify setname chghost extended-join draft/channel-rename draft/metadata-3 batch"


@pytest.fixture
async def line(tmp_path: Path) -> AsyncIterator[Servers]:
    """spark – thor – odin."""
    async with linked(tmp_path, ("spark", "thor", "odin"), (("thor", "spark"), ("odin", "thor"))) as servers:
        yield servers


@pytest.mark.requirement("E04", "E12", "E15")
async def test_what_users_do_is_seen_two_links_away(line: Servers) -> None:
    ori = await line.client("spark-ori", "#room", caps=CAPS)
    eve = await line.client("odin-eve", caps=CAPS)
    await line.whole()
    assert any("@spark-ori" in row.params[-1] for row in await eve.join("#room") if row.verb == "353")
    joined = await ori.expect("JOIN", "#room")
    assert joined.source.startswith("odin-eve!")
    ori.send("AWAY :at lunch")
    assert (await eve.expect("AWAY")).params == ("at lunch",)
    ori.send("AWAY")
    assert (await eve.expect("AWAY")).params == ()
    ori.send("SETNAME :Ori the Second")
    assert (await eve.expect("SETNAME")).params == ("Ori the Second",)
    ori.send("TOPIC #room :new things")
    assert (await eve.expect("TOPIC", "#room")).params[1] == "new things"
    ori.send("MODE #room +ilk 5 sesame")
    assert (await eve.expect("MODE", "#room")).params[1:] == ("+ilk", "5", "sesame")
    ori.send("MODE #room +b *!*@bad.example")
    await eve.expect("MODE", "#room", "+b", "*!*@bad.example")
    ori.send("MODE #room +v odin-eve")
    await eve.expect("MODE", "#room", "+v", "odin-eve")
    ori.send("NICK spark-ada")
    assert (await eve.expect("NICK")).params == ("spark-ada",)
    ori.send("RENAME #room #place :better")
    assert (await eve.expect("RENAME")).params[:2] == ("#room", "#place")
    ori.send("METADATA #place SET color :blue")
    ori.send("METADATA * SET url :https://example.org")
    await until(lambda: all(channel.metadata == {"color": "blue"} for channel in line.channels("#place")))
    await line.whole()
    ori.send("KICK #place odin-eve :out")
    assert (await eve.expect("KICK", "#place", "odin-eve")).params[2] == "out"
    await line.whole()
    ori.send("QUIT :good night")
    await until(lambda: line["odin"].parts.network.user("spark-ada") is None)
    await line.whole()
    assert not line["odin"].parts.network.channel("#place")


@pytest.mark.requirement("E12")
async def test_parts_and_quits_have_their_reasons(line: Servers) -> None:
    ori, eve = await line.client("spark-ori", "#room"), await line.client("odin-eve")
    await line.whole()
    await eve.join("#room")
    await ori.expect("JOIN", "#room")
    ori.send("PART #room :to lunch")
    assert (await eve.expect("PART", "#room")).params[1] == "to lunch"
    await ori.join("#room")
    await eve.expect("JOIN", "#room")
    ori.send("QUIT :good night")
    assert (await eve.expect("QUIT")).params == ("Quit: good night",)


@pytest.mark.requirement("B05")
async def test_who_loses_their_connection_has_left_everywhere(line: Servers) -> None:
    ori, eve = await line.client("spark-ori", "#room"), await line.client("odin-eve")
    await line.whole()
    await eve.join("#room")
    await ori.expect("JOIN", "#room")
    ori.close()
    assert (await eve.expect("QUIT")).source.startswith("spark-ori!")


async def test_an_invitation_crosses(line: Servers) -> None:
    ori, eve = await line.client("spark-ori", "#room"), await line.client("odin-eve")
    await line.whole()
    await ori.ask("MODE #room +i")
    await line.whole()
    assert any(row.verb == "473" for row in await eve.ask("JOIN #room"))
    ori.send("INVITE odin-eve #room")
    assert (await eve.expect("INVITE")).params == ("odin-eve", "#room")
    assert any(row.verb == "JOIN" for row in await eve.ask("JOIN #room"))


@pytest.mark.requirement("E04")
async def test_who_comes_later_hears_of_everything(tmp_path: Path) -> None:
    """What was set before the link was there comes with the burst, with who did it and when."""
    async with linked(tmp_path, ("spark", "thor", "odin"), (("thor", "spark"), ("odin", "thor"))) as line:
        await line.cut("thor", "odin")
        ori = await line.client("spark-ori", "#room", caps=CAPS)
        for command in (
            "AWAY :at lunch",
            "TOPIC #room :new things",
            "MODE #room +mk sesame",
            "MODE #room +b *!*@bad.example",
            "METADATA #room SET color :blue",
            "METADATA * SET url :https://example.org",
            "MODE spark-ori +B",
        ):
            await ori.ask(command)
        line.heal("thor", "odin")
        await line.whole()
        user = line["odin"].parts.network.user("spark-ori")
        assert user is not None
        assert (user.away, user.metadata, user.modes & {"B"}) == ("at lunch", {"url": "https://example.org"}, {"B"})
        topics = {(each.topic and each.topic.by, each.topic and int(each.topic.at)) for each in line.channels("#room")}
        assert len(topics) == 1
        bans = [channel.lists["b"]["*!*@bad.example"] for channel in line.channels("#room")]
        assert {(ban.by, int(ban.at)) for ban in bans} == {(bans[0].by, int(bans[0].at))}
        assert bans[0].by.startswith("spark-ori!")


async def test_the_same_room_founded_on_both_sides_has_the_operator_of_the_earlier_one(line: Servers) -> None:
    """Nobody becomes operator by riding a split."""
    ori = await line.client("spark-ori", "#room", caps=CAPS)
    await line.whole()
    await line.cut("thor", "spark")
    eve = await line.client("odin-eve", "#room")
    assert any(row.verb == "353" and "@odin-eve" in row.params[-1] for row in await eve.ask("NAMES #room"))
    line.heal("thor", "spark")
    assert (await eve.expect("MODE", "#room")).params[1:] == ("-o", "odin-eve")
    await line.whole()
    assert [{user.nick: rank for user, rank in each.members.items()} for each in line.channels("#room")] == [
        {"spark-ori": "o", "odin-eve": ""}
    ] * 3
    assert any(row.verb == "482" for row in await eve.ask("MODE #room +m"))
    await ori.ask("MODE #room +o odin-eve")
    await eve.expect("MODE", "#room", "+o", "odin-eve")


async def test_what_both_sides_set_while_they_were_apart_becomes_one(line: Servers) -> None:
    """Each thing is as it was set last."""
    ori, eve = await line.client("spark-ori", "#room"), await line.client("odin-eve")
    await line.whole()
    await eve.join("#room")
    await ori.expect("JOIN", "#room")
    await ori.ask("MODE #room +o odin-eve")
    await eve.expect("MODE", "#room", "+o", "odin-eve")
    await line.whole()
    await line.cut("thor", "spark")
    await ori.ask("TOPIC #room :first")
    await ori.ask("MODE #room +bm *!*@one.example")
    await eve.ask("MODE #room +bs *!*@two.example")
    await eve.ask("TOPIC #room :second")
    line.heal("thor", "spark")
    await line.whole()
    for channel in line.channels("#room"):
        assert channel.topic is not None and channel.topic.text == "second"
        assert set(channel.lists["b"]) == {"*!*@one.example", "*!*@two.example"}
        assert {"m", "s"} <= channel.flags


@pytest.mark.fault("D24")
async def test_a_nick_of_a_server_that_is_gone_is_nobody_elses(line: Servers) -> None:
    eve = await line.client("odin-eve", "#room")
    await line.whole()
    await line.cut("thor", "odin")
    await until(lambda: line["spark"].parts.network.user("odin-eve") is None)
    ori = await line.client("spark-ori")
    assert any(row.verb == "432" for row in await ori.ask("NICK odin-eve"))
    line.heal("thor", "odin")
    await line.whole()
    user = line["spark"].parts.network.user("odin-eve")
    assert user is not None and user.server == "odin"
    assert await eve.sync() is not None


async def test_a_nick_that_changes_while_somebody_gives_it_a_rank(line: Servers) -> None:
    """Whoever hears of it in which order, the rank goes to the person."""
    ori, eve = await line.client("spark-ori", "#room"), await line.client("odin-eve")
    await line.whole()
    await eve.join("#room")
    await ori.expect("JOIN", "#room")
    ori.send("MODE #room +v odin-eve")
    eve.send("NICK odin-ada")
    await until(
        lambda: (
            line.agree()
            and all(
                {user.nick: rank for user, rank in each.members.items()}.get("odin-ada") == "v"
                for each in line.channels("#room")
            )
        )
    )


async def test_a_server_whose_clock_was_set_back_is_believed(tmp_path: Path) -> None:
    """What others remember of it does not count more than what it says."""
    async with linked(tmp_path, ("spark", "thor", "odin"), (("thor", "spark"), ("odin", "thor"))) as line:
        mesh: Any = line["odin"].parts.skills.get("federation")
        now = mesh.host.now
        before = mesh.presence._version
        mesh.presence._version, mesh.host.now = 1, lambda: now() - 86_400
        await line.cut("thor", "odin")
        line.heal("thor", "odin")
        await line.whole()
        assert line["spark"].parts.network.servers["odin"].hops == 2
        assert mesh.presence._version > before


async def test_a_registered_channel_is_the_same_for_who_comes_from_elsewhere(line: Servers) -> None:
    """It is there without members: whoever founds one of its name elsewhere comes into this one, and leads nothing."""
    network = line["spark"].parts.network
    kept = {
        "name": "#kept",
        "created": 1_000.0,
        "founder": "ori",
        "topic": {"text": "rules", "by": "spark-ori!o@h", "at": 2_000.0},
        "modes": "mnt",
        "lists": {"b": {"*!*@bad.example": {"by": "spark-ori!o@h", "at": 3_000.0}}},
    }
    [channel] = parse(json.dumps({"schema": 1, "channels": [kept]}).encode())
    network.restore(channel)
    eve = await line.client("odin-eve", "#kept")
    await until(lambda: line.agree() and bool(channel.members))
    changes = [row.params[1:] for row in (*eve.seen, *await eve.sync()) if row.verb == "MODE" and row.source == "odin"]
    assert ("-o+m", "odin-eve") in changes
    for each in line.channels("#kept"):
        assert {user.nick: rank for user, rank in each.members.items()} == {"odin-eve": ""}
        assert each.topic is not None and (each.topic.text, each.topic.at) == ("rules", 2_000.0)
        assert list(each.lists["b"]) == ["*!*@bad.example"]
        assert ("P" in each.flags) == (each is channel)


async def test_who_said_what_is_remembered_whoever_speaks_in_between(line: Servers) -> None:
    """Without an account only the server's memory tells whose a message is."""
    caps = "echo-message message-tags draft/message-redaction"
    ori = await line.client("spark-ori", "#room", caps=caps)
    eve = await line.client("odin-eve", caps=caps)
    await line.whole()
    await eve.join("#room")
    await ori.expect("JOIN", "#room")
    ori.send("PRIVMSG #room :one")
    mine = (await ori.expect("PRIVMSG", "#room", "one")).tags["msgid"]
    eve.send("PRIVMSG #room :two")
    theirs = (await ori.expect("PRIVMSG", "#room", "two")).tags["msgid"]
    assert any(row.verb == "FAIL" for row in await eve.ask(f"REDACT #room {mine}"))
    ori.send(f"REDACT #room {mine} :never mind")
    assert (await eve.expect("REDACT", "#room")).params[1] == mine
    ori.send(f"REDACT #room {theirs} :said the operator")
    assert (await eve.expect("REDACT", "#room")).params[1] == theirs


async def test_who_comes_or_goes_while_a_channel_is_renamed(tmp_path: Path) -> None:
    async with linked(tmp_path, ("spark", "thor"), [("spark", "thor")]) as pair:
        ori = await pair.client("spark-ori", "#old")
        bob, eve = await pair.client("thor-bob", "#old"), await pair.client("thor-eve")
        await pair.whole()
        pair.delay("spark", "thor", 0.3)
        ori.send("RENAME #old #new :better")
        bob.send("PART #old")
        eve.send("JOIN #old")
        await until(lambda: pair["thor"].parts.network.channel("#new") is not None)
        await pair.whole()
        for channel in pair.channels("#new"):
            assert {user.nick for user in channel.members} == {"spark-ori", "thor-eve"}
