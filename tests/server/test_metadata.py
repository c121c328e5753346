"""What users and channels say of themselves (IRCv3 draft/metadata-3)."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from culture.protocol.message import Message
from culture.protocol.vocabulary import AgentState, ChannelKey, UserKey
from culture.server.ircd import IRCd
from tests.server.logins import ByPassword
from tests.support.client import Client, connected, registered
from tests.support.servers import Serve, serving

CAPS = "batch draft/metadata-3"


@pytest.fixture
async def ircd(tmp_path: Path) -> AsyncIterator[IRCd]:
    async with serving(tmp_path, ByPassword()) as running:
        yield running


@pytest.fixture
async def room(ircd: IRCd) -> AsyncIterator[tuple[Client, Client]]:
    """ori, operator of #a, and ada in it."""
    async with AsyncExitStack() as stack:
        ori = await stack.enter_async_context(registered(ircd.port, "spark-ori", CAPS))
        ada = await stack.enter_async_context(registered(ircd.port, "spark-ada", CAPS))
        await ori.join("#a")
        await ada.join("#a")
        await ori.sync()
        yield ori, ada


def plain(messages: list[Message]) -> list[str]:
    """The lines without tags and source, batches left out."""
    return [str(Message(each.verb, each.params)) for each in messages if each.verb != "BATCH"]


def batch(messages: list[Message], *params: str) -> list[Message]:
    """The lines of the one batch with these parameters."""
    [name] = [each.params[0][1:] for each in messages if each.verb == "BATCH" and each.params[1:] == params]
    assert [each for each in messages if each.verb == "BATCH" and each.params == (f"-{name}",)]
    return [each for each in messages if each.tags.get("batch") == name and each.verb != "BATCH"]


async def test_set_get_list_and_clear(room: tuple[Client, Client]) -> None:
    ori, ada = room
    assert plain(await ori.ask("METADATA * SET avatar :a picture")) == ["761 spark-ori spark-ori avatar * :a picture"]
    assert plain(await ori.ask("METADATA spark-ORI SET color red")) == ["761 spark-ori spark-ori color * red"]
    got = batch(await ada.ask("METADATA spark-ori GET color nothing BAD avatar"), "metadata", "spark-ori")
    assert [(each.verb, each.params[2]) for each in got] == [
        ("761", "color"),
        ("766", "nothing"),
        ("WARN", "BAD"),
        ("761", "avatar"),
    ]
    assert got[2].params[:3] == ("METADATA", "INVALID_KEY", "BAD")
    listed = batch(await ada.ask("METADATA spark-ori LIST"), "metadata", "spark-ori")
    assert {each.params[2]: each.params[4] for each in listed} == {"avatar": "a picture", "color": "red"}
    assert plain(await ori.ask("METADATA * SET color")) == ["766 spark-ori spark-ori color :key not set"]
    assert plain(await ori.ask("METADATA * SET color")) == ["766 spark-ori spark-ori color :key not set"]
    cleared = batch(await ori.ask("METADATA * CLEAR"), "metadata", "spark-ori")
    assert [each.params[1:3] for each in cleared] == [("spark-ori", "avatar")]
    assert batch(await ori.ask("METADATA * LIST"), "metadata", "spark-ori") == []


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("METADATA spark-nobody LIST", "FAIL METADATA INVALID_TARGET spark-nobody"),
        ("METADATA #nowhere GET a", "FAIL METADATA INVALID_TARGET #nowhere"),
        ("METADATA * SNEEZE", "FAIL METADATA INVALID_PARAMS SNEEZE"),
        ("METADATA * :two words", "FAIL METADATA INVALID_PARAMS *"),
        ("METADATA * GET", "FAIL METADATA INVALID_PARAMS GET"),
        ("METADATA * SET", "FAIL METADATA INVALID_PARAMS SET"),
        ("METADATA * SET Avatar x", "FAIL METADATA INVALID_KEY Avatar"),
        ("METADATA * SET :key with space", "FAIL METADATA INVALID_KEY *"),
        (f"METADATA * SET {'k' * 65} x", f"FAIL METADATA INVALID_KEY {'k' * 65}"),
        (f"METADATA * SET k :{'é' * 151}", "FAIL METADATA INVALID_VALUE k"),
        ("METADATA spark-ori SET color x", "FAIL METADATA KEY_NO_PERMISSION spark-ori color"),
        ("METADATA spark-ori CLEAR", "FAIL METADATA KEY_NO_PERMISSION spark-ori *"),
        ("METADATA #a SET color x", "FAIL METADATA KEY_NO_PERMISSION #a color"),
        ("METADATA #a CLEAR", "FAIL METADATA KEY_NO_PERMISSION #a *"),
        ("METADATA spark-ori SUB color", "FAIL METADATA INVALID_TARGET spark-ori"),
        ("METADATA #a SUBS", "FAIL METADATA INVALID_TARGET #a"),
        ("METADATA *", "461 spark-ada METADATA"),
    ],
)
async def test_what_is_refused_and_how(room: tuple[Client, Client], line: str, answer: str) -> None:
    _, ada = room
    [got] = await ada.ask(line)
    assert str(Message(got.verb, got.params)).startswith(answer)


async def test_subscribing(room: tuple[Client, Client]) -> None:
    _, ada = room
    got = plain(await ada.ask("METADATA * SUB avatar $x color avatar"))
    assert got[0] == "770 spark-ada avatar color"
    assert got[1].startswith("WARN METADATA INVALID_KEY $x ")
    assert got[2].startswith("774 spark-ada *ALL 0 ")
    assert plain(await ada.ask("METADATA spark-ada SUB color")) == ["770 spark-ada color"]
    shown = batch(await ada.ask("METADATA * SUBS"), "metadata-subs")
    assert [each.params for each in shown] == [("spark-ada", "avatar", "color")]
    assert plain(await ada.ask("METADATA * UNSUB color other")) == ["771 spark-ada color other"]
    assert plain(await ada.ask("METADATA * SUBS")) == ["772 spark-ada avatar"]
    await ada.ask("METADATA * UNSUB avatar")
    assert batch(await ada.ask("METADATA * SUBS"), "metadata-subs") == []


async def test_subscribers_who_share_a_channel_are_told_and_nobody_else(
    ircd: IRCd, room: tuple[Client, Client]
) -> None:
    ori, ada = room
    async with registered(ircd.port, "spark-eve", CAPS) as eve:
        for each in (ori, ada, eve):
            await each.ask("METADATA * SUB color")
        assert plain(await ori.ask("METADATA * SET color red")) == ["761 spark-ori spark-ori color * red"]
        await ori.ask("METADATA * SET color red")
        await ori.ask("METADATA * SET other x")
        assert plain(await ada.sync()) == ["761 spark-ada spark-ori color * red"]
        await ori.ask("METADATA * SET color")
        assert plain(await ada.sync()) == ["766 spark-ada spark-ori color :key not set"]
        await ori.ask("METADATA #a SET color blue")
        await ori.ask("METADATA #a CLEAR")
        assert plain(await ada.sync()) == ["761 spark-ada #a color * blue", "766 spark-ada #a color :key not set"]
        assert await eve.sync() == []
        await ada.ask("METADATA * UNSUB color")
        await ori.ask("METADATA * SET color green")
        assert await ada.sync() == []


async def test_whoever_meets_somebody_learns_what_was_set_before(ircd: IRCd, room: tuple[Client, Client]) -> None:
    ori, ada = room
    async with registered(ircd.port, "spark-eve", CAPS) as eve:
        for each in (ada, eve):
            await each.ask("METADATA * SUB color shape")
        await ori.ask("METADATA * SET color red")
        await ori.ask("METADATA #a SET shape round")
        await ori.ask("METADATA #a SET color grey")
        await eve.ask("METADATA * SET shape square")
        await eve.ask("METADATA * SET size 3")
        await ada.sync()
        seen = batch(await eve.join("#a"), "metadata", "#a")
        assert sorted(each.params[1:3] for each in seen) == [
            ("#a", "color"),
            ("#a", "shape"),
            ("spark-eve", "shape"),
            ("spark-ori", "color"),
        ]
        assert [each.verb for each in await ada.sync()] == ["JOIN", "761"]
        await ada.join("#b")
        await eve.join("#b")
        assert "761" not in [each.verb for each in await ada.sync()], "they know each other already"
        again = batch(await eve.ask("METADATA #a SYNC"), "metadata", "#a")
        assert [each.params for each in again] == [each.params for each in seen]
        every = batch(await eve.ask("METADATA *ALL SYNC"), "metadata", "*ALL")
        assert sorted(each.params for each in every) == sorted(each.params for each in seen)
        own = batch(await eve.ask("METADATA spark-ori SYNC"), "metadata", "spark-ori")
        assert plain(own) == ["761 spark-eve spark-ori color * red"]


async def test_who_watches_is_told_from_afar(ircd: IRCd) -> None:
    """IRCv3 MONITOR: online or coming on line, with what is known of them."""
    async with registered(ircd.port, "spark-eve", CAPS) as eve, connected(ircd.port) as ori:
        await eve.ask("METADATA * SUB color")
        await eve.ask("MONITOR + spark-ori,spark-bob")
        ori.send(f"CAP REQ :{CAPS}\r\nMETADATA * SET color red")
        await ori.register("spark-ori", CAPS)
        got = plain(await eve.sync())
        assert got[0].startswith("730 ") and got[1].startswith("774 spark-eve spark-ori 0 ")
        assert got[2] == "761 spark-eve spark-ori color * red"
        await ori.ask("METADATA * SET color blue")
        assert plain(await eve.sync()) == ["761 spark-eve spark-ori color * blue"]
        await eve.ask("MONITOR C")
        await ori.ask("METADATA * SET color green")
        seen = await eve.ask("MONITOR + spark-ori")
        assert plain(batch(seen, "metadata", "spark-ori")) == ["761 spark-eve spark-ori color * green"]


async def test_before_registration_what_is_set_is_shown_with_the_welcome(ircd: IRCd) -> None:
    async with connected(ircd.port) as ori:
        ori.send("CAP LS 302")
        offered = await ori.expect("CAP", None, "LS", where=lambda each: "metadata" in each.params[-1])
        [word] = [each for each in offered.params[-1].split(" ") if each.startswith("draft/metadata-3")]
        assert word == "draft/metadata-3=before-connect,max-subs=50,max-keys=50,max-key-bytes=64,max-value-bytes=300"
        ori.send(f"CAP REQ :{CAPS}")
        for line, answer in (
            ("METADATA * SET color red", "761 * * color * red"),
            ("METADATA * SET shape round", "761 * * shape * round"),
            ("METADATA * SET shape", "766 * * shape :key not set"),
            ("METADATA * SUB color", "770 * color"),
            ("METADATA spark-ori SET color x", "FAIL METADATA INVALID_TARGET spark-ori"),
        ):
            ori.send(line)
            verb, *words = answer.split(" :")[0].split(" ")
            await ori.expect(verb, *words)
        ori.send("METADATA * LIST\r\nMETADATA * GET color\r\nMETADATA * SYNC\r\nMETADATA * SUBS")
        await ori.expect("772", "*", "color")
        ori.send("NICK spark-ori\r\nUSER o 0 * :O\r\nCAP END")
        await ori.expect("001")
        welcome = await ori.sync()
        assert plain(batch(welcome, "metadata", "spark-ori")) == ["761 spark-ori spark-ori color * red"]
        verbs = [each.verb for each in welcome]
        assert verbs.index("761") < verbs.index("376")
        assert plain(await ori.ask("METADATA * SUBS")) == ["772 spark-ori color"]


async def test_whois_shows_it_to_those_who_know_metadata(ircd: IRCd, room: tuple[Client, Client]) -> None:
    ori, ada = room
    await ori.ask("METADATA * SET color red")
    assert "760 spark-ada spark-ori color * red" in plain(await ada.ask("WHOIS spark-ori"))
    async with registered(ircd.port, "spark-eve") as eve:
        assert "760" not in [each.verb for each in await eve.ask("WHOIS spark-ori")]


async def test_a_channel_tells_outsiders_only_where_anybody_may_come_in(
    ircd: IRCd, room: tuple[Client, Client]
) -> None:
    ori, _ = room
    await ori.ask(f"METADATA #a SET {ChannelKey.PURPOSE} :secret plans")
    async with registered(ircd.port, "spark-eve", CAPS) as eve:
        await eve.ask(f"METADATA * SUB {ChannelKey.PURPOSE}")
        asked = (f"METADATA #a GET {ChannelKey.PURPOSE}", "METADATA #a LIST", "METADATA #a SYNC")
        for line in asked:
            assert "secret plans" in " ".join(plain(await eve.ask(line)))
        for mode in ("+i", "-i+k key"):
            await ori.ask(f"MODE #a {mode}")
            for line in asked:
                [got] = plain(await eve.ask(line))
                assert got.startswith("FAIL METADATA KEY_NO_PERMISSION #a *")
        await ori.ask("MODE #a +s")
        for line in asked:
            [got] = plain(await eve.ask(line))
            assert got.startswith("FAIL METADATA INVALID_TARGET #a")


async def test_outsiders_do_not_learn_who_is_in_a_channel_and_invisible(
    ircd: IRCd, room: tuple[Client, Client]
) -> None:
    ori, _ = room
    for member in room:
        await member.ask("METADATA * SET avatar :picture")
    await ori.ask("MODE spark-ori +i")
    async with registered(ircd.port, "spark-eve", CAPS) as eve:
        await eve.ask("METADATA * SUB avatar")
        [row] = batch(await eve.ask("METADATA #a SYNC"), "metadata", "#a")
        assert row.params[1] == "spark-ada"
        await eve.ask("JOIN #a")
        assert len(batch(await eve.ask("METADATA #a SYNC"), "metadata", "#a")) == 2


async def test_the_limits_are_settings(serve: Serve) -> None:
    limits = {"metadata_keys": 2, "metadata_subs": 2, "metadata_key": 5, "metadata_value": 4}
    async with (
        serve(authenticator=ByPassword(), limits=limits) as ircd,
        registered(ircd.port, "spark-ori", CAPS) as ori,
    ):
        for line in ("METADATA * SET a 1", "METADATA * SET b 2", "METADATA * SET a 3333", "METADATA * SET abcde"):
            assert plain(await ori.ask(line))[0][:3] in ("761", "766")
        for line, answer in (
            ("METADATA * SET c 3", "FAIL METADATA LIMIT_REACHED SET spark-ori 2"),
            ("METADATA * SET a 12345", "FAIL METADATA INVALID_VALUE a"),
            ("METADATA * SET abcdef", "FAIL METADATA INVALID_KEY abcdef"),
        ):
            [got] = plain(await ori.ask(line))
            assert got.startswith(answer)
        got = plain(await ori.ask("METADATA * SUB a b c a"))
        assert got[0] == "770 spark-ori a b"
        assert got[1].startswith("FAIL METADATA LIMIT_REACHED SUB c 2 ")
        assert plain(await ori.ask("METADATA * SUBS")) == ["772 spark-ori a b"]


async def test_the_longest_value_comes_whole_to_the_longest_nick(serve: Serve) -> None:
    name = "n" * 63
    settings = {"name": name, "nick_prefix": "off", "limits": {"metadata_value": 500}}
    key, nick = "k" * 64, "x" * 32
    async with serve(authenticator=ByPassword(), **settings) as ircd, registered(ircd.port, nick, CAPS) as ori:
        channel = "#" + "c" * 63
        await ori.join(channel)
        [refused] = await ori.ask(f"METADATA {channel} SET {key} :{'v' * 300}")
        left = int(refused.params[-1].split()[5])
        [told] = await ori.ask(f"METADATA {channel} SET {key} :v {'v' * (left - 2)}")
        assert told.params[-1] == "v " + "v" * (left - 2)
        assert len(bytes(told)) == 512


async def test_without_the_capability_nothing_is_told_and_no_batch_comes(
    ircd: IRCd, room: tuple[Client, Client]
) -> None:
    ori, ada = room
    await ada.ask("METADATA * SUB color")
    await ada.ask("CAP REQ -draft/metadata-3")
    await ori.ask("METADATA * SET color red")
    assert await ada.sync() == []
    await ada.ask("CAP REQ draft/metadata-3")
    assert plain(await ada.ask("METADATA * SUBS")) == []
    async with registered(ircd.port, "spark-eve") as eve:
        assert [str(each) for each in await eve.ask("METADATA spark-ori LIST")] == [
            ":spark 761 spark-eve spark-ori color * red"
        ]


async def test_a_batch_inside_a_labelled_answer_is_nested(ircd: IRCd) -> None:
    """IRCv3 batch: what is inside carries the tag of the inner batch alone."""
    async with registered(ircd.port, "spark-ori", f"{CAPS} labeled-response") as ori:
        await ori.ask("METADATA * SET color red")
        outer, inner, row, inner_end, outer_end = await ori.ask("@label=7 METADATA * LIST")
        assert outer.tags == {"label": "7"} and outer.params[1:] == ("labeled-response",)
        name = outer.params[0][1:]
        assert inner.tags == inner_end.tags == {"batch": name} and inner.params[1:] == ("metadata", "spark-ori")
        assert row.tags == {"batch": inner.params[0][1:]} and row.params[-1] == "red"
        assert inner_end.params == (f"-{inner.params[0][1:]}",) and outer_end.params == (f"-{name}",)


async def test_sessions_subscribe_for_themselves(ircd: IRCd, room: tuple[Client, Client]) -> None:
    """Two devices of one person (decision 1): one hears, the other does not; what one sets the other hears of."""
    ori, _ = room
    async with connected(ircd.port) as desk, connected(ircd.port) as phone:
        for device in (desk, phone):
            device.send("PASS eve")
            await device.register("spark-eve", CAPS)
        await desk.ask("METADATA * SUB color")
        await phone.ask("JOIN #a")
        assert "774 spark-eve #a 0" in " ".join(plain(await desk.sync()))
        await phone.sync()
        await ori.ask("METADATA * SET color red")
        assert plain(await desk.sync()) == ["761 spark-eve spark-ori color * red"]
        assert await phone.sync() == []
        await phone.ask("METADATA * SET color blue")
        assert plain(await desk.sync()) == ["761 spark-eve spark-eve color * blue"]


async def test_an_agent_publishes_its_state_and_a_person_sees_it(ircd: IRCd) -> None:
    """Decision 39: the state of an agent is one of our keys, in the values of the registry."""
    async with connected(ircd.port) as agent, registered(ircd.port, "spark-ori", CAPS) as person:
        agent.send("PASS a-claude")
        await agent.register("spark-claude", CAPS)
        await person.ask(f"METADATA * SUB {UserKey.STATE} {UserKey.TASK}")
        await person.join("#general")
        await agent.ask(f"METADATA * SET {UserKey.STATE} {AgentState.IDLE}")
        await agent.join("#general")
        seen = plain(await person.sync())
        assert seen[-1] == f"761 spark-ori spark-claude {UserKey.STATE} * {AgentState.IDLE}"
        await agent.ask(f"METADATA * SET {UserKey.STATE} {AgentState.WORKING}")
        await agent.ask(f"METADATA * SET {UserKey.TASK} :port the tests")
        assert plain(await person.sync()) == [
            f"761 spark-ori spark-claude {UserKey.STATE} * {AgentState.WORKING}",
            f"761 spark-ori spark-claude {UserKey.TASK} * :port the tests",
        ]
        whois = plain(await person.ask("WHOIS spark-claude"))
        assert f"760 spark-ori spark-claude {UserKey.STATE} * {AgentState.WORKING}" in whois


async def test_nothing_is_kept_of_a_session_that_ended(ircd: IRCd) -> None:
    async with registered(ircd.port, "spark-ori", CAPS) as ori, connected(ircd.port) as eve:
        await ori.ask("METADATA * SUB color shape")
        eve.send(f"CAP REQ :{CAPS}\r\nMETADATA * SET color red\r\nMETADATA * SUB color")
        await eve.expect("770")
        subscriptions = ircd.parts.subscriptions
        assert len(subscriptions._keys) == 2 and subscriptions.early
        for each in (ori, eve):
            each.send("QUIT")
            await each.ended()
        assert not subscriptions._keys and not subscriptions._hearers and not subscriptions.early
