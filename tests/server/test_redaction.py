"""REDACT: messages taken back by whoever said them, or by the operators of the channel (draft/message-redaction)."""

import pytest

from culture.server.core.ids import EventId
from culture.server.core.network import Network
from culture.server.core.recent_messages import RecentMessages
from culture.server.core.router import Router
from culture.server.events import Left, Renamed, Said
from culture.server.ircd import IRCd
from tests.server.conftest import Crowd
from tests.support.client import Client, registered
from tests.support.servers import Serve

CAPS = "message-tags echo-message draft/message-redaction"


async def say(client: Client, target: str, text: str = "oops") -> str:
    """The id of what was said."""
    [echo] = [each for each in await client.ask(f"PRIVMSG {target} :{text}") if each.verb == "PRIVMSG"]
    return echo.tags["msgid"]


def told(messages: list) -> list[tuple[str, ...]]:
    return [(each.verb, *(each.params[:-1] if each.verb == "FAIL" else each.params)) for each in messages]


async def test_what_one_said_one_may_take_back(crowd: Crowd) -> None:
    eve = await crowd.join("spark-eve", "#a", caps=CAPS)
    ori = await crowd.join("spark-ori", "#a", caps=CAPS)
    plain = await crowd.join("spark-plain", "#a", caps="message-tags")
    msgid = await say(ori, "#a")
    for client in (eve, plain):
        await client.sync()
    [seen] = await ori.ask(f"REDACT #A {msgid} :wrong channel")
    assert (seen.source.partition("!")[0], seen.verb, seen.params) == (
        "spark-ori",
        "REDACT",
        ("#a", msgid, "wrong channel"),
    )
    assert told(await eve.sync()) == [("REDACT", "#a", msgid, "wrong channel")]
    assert await plain.sync() == []
    assert told(await ori.ask(f"REDACT #a {msgid}")) == [("FAIL", "REDACT", "UNKNOWN_MSGID", "#a", msgid)]


async def test_operators_take_back_anything_in_their_channel_and_others_nothing(crowd: Crowd) -> None:
    ori = await crowd.join("spark-ori", "#a", caps=CAPS)
    ada = await crowd.join("spark-ada", "#a", caps=CAPS)
    eve = await crowd.join("spark-eve", "#a", caps=CAPS)
    msgid = await say(ada, "#a")
    await eve.sync()
    assert told(await eve.ask(f"REDACT #a {msgid}")) == [("FAIL", "REDACT", "REDACT_FORBIDDEN", "#a", msgid)]
    await ori.sync()
    assert told(await ori.ask(f"REDACT #a {msgid} :")) == [("REDACT", "#a", msgid)]
    assert told(await ada.sync()) == [("REDACT", "#a", msgid)]


async def test_a_private_message_is_taken_back_from_both_and_by_its_sender_only(crowd: Crowd) -> None:
    ori = await crowd.join("spark-ori", caps=CAPS)
    ada = await crowd.join("spark-ada", caps=CAPS)
    eve = await crowd.join("spark-eve", caps=CAPS)
    msgid = await say(ori, "spark-ada")
    await ada.sync()
    assert told(await ada.ask(f"REDACT spark-ori {msgid}")) == [
        ("FAIL", "REDACT", "REDACT_FORBIDDEN", "spark-ori", msgid)
    ]
    for target in ("spark-ori", "spark-ada"):
        assert told(await eve.ask(f"REDACT {target} {msgid}")) == [("FAIL", "REDACT", "UNKNOWN_MSGID", target, msgid)]
    await ada.ask("NICK spark-ada2")
    assert told(await ori.ask(f"REDACT SPARK-ADA2 {msgid}")) == [("REDACT", "spark-ada2", msgid)]
    assert told(await ada.sync()) == [("REDACT", "spark-ada2", msgid)]
    assert await eve.sync() == []


async def test_a_tagmsg_and_a_message_of_several_lines_are_messages_too(crowd: Crowd) -> None:
    ori = await crowd.join("spark-ori", "#a", caps=f"{CAPS} batch draft/multiline")
    [reaction] = await ori.ask("@+draft/react=👍 TAGMSG #a")
    assert told(await ori.ask(f"REDACT #a {reaction.tags['msgid']}"))[0][0] == "REDACT"
    for line in ("BATCH +x draft/multiline #a", "@batch=x PRIVMSG #a :one", "@batch=x PRIVMSG #a :two"):
        ori.send(line)
    opening, *_ = await ori.ask("BATCH -x")
    assert told(await ori.ask(f"REDACT #a {opening.tags['msgid']}"))[0][0] == "REDACT"


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("REDACT #nowhere x.y.1", ("FAIL", "REDACT", "INVALID_TARGET", "#nowhere")),
        ("REDACT #other x.y.1", ("FAIL", "REDACT", "INVALID_TARGET", "#other")),
        ("REDACT spark-nobody x.y.1", ("FAIL", "REDACT", "INVALID_TARGET", "spark-nobody")),
        ("REDACT #a nonsense", ("FAIL", "REDACT", "UNKNOWN_MSGID", "#a", "nonsense")),
        ("REDACT #a :", ("FAIL", "REDACT", "UNKNOWN_MSGID", "#a", "*")),
        ("REDACT #a x.y.٣", ("FAIL", "REDACT", "UNKNOWN_MSGID", "#a", "x.y.٣")),
        ("REDACT #a", ("461", "spark-ori", "REDACT", "Not enough parameters")),
    ],
)
async def test_what_cannot_be_taken_back_is_told(crowd: Crowd, line: str, answer: tuple[str, ...]) -> None:
    await crowd.join("spark-ada", "#other")
    ori = await crowd.join("spark-ori", "#a", caps=CAPS)
    assert told(await ori.ask(line)) == [answer]


async def test_it_takes_the_capability(crowd: Crowd) -> None:
    ori = await crowd.join("spark-ori", "#a", caps="message-tags echo-message")
    msgid = await say(ori, "#a")
    assert [each.verb for each in await ori.ask(f"REDACT #a {msgid}")] == ["421"]


async def test_the_nick_of_somebody_else_gives_no_right(crowd: Crowd) -> None:
    """A nick that changed hands, and one's own under another name."""
    await crowd.join("spark-op", "#a")
    ori = await crowd.join("spark-ori", "#a", caps=CAPS)
    eve = await crowd.join("spark-eve", "#a", caps=CAPS)
    first, second = await say(ori, "#a"), await say(ori, "#a")
    await ori.ask("NICK spark-orion")
    await eve.ask("NICK spark-ori")
    assert told(await eve.ask(f"REDACT #a {first}")) == [("FAIL", "REDACT", "REDACT_FORBIDDEN", "#a", first)]
    assert ("REDACT", "#a", first) in told(await ori.ask(f"REDACT #a {first}"))
    ori.send("QUIT")
    await ori.ended()
    await eve.ask("NICK spark-orion")
    assert told(await eve.ask(f"REDACT #a {second}"))[-1] == ("FAIL", "REDACT", "REDACT_FORBIDDEN", "#a", second)


async def test_a_channel_that_was_made_anew_knows_nothing_of_the_old_one(crowd: Crowd) -> None:
    ori = await crowd.join("spark-ori", "#a", caps=CAPS)
    msgid = await say(ori, "#a")
    await ori.ask("PART #a")
    eve = await crowd.join("spark-eve", "#a", caps=CAPS)
    assert told(await eve.ask(f"REDACT #a {msgid}")) == [("FAIL", "REDACT", "UNKNOWN_MSGID", "#a", msgid)]


async def test_only_the_last_messages_can_be_taken_back(serve: Serve) -> None:
    """``limits.redactable``"""
    async with serve(limits={"redactable": 2}) as ircd, registered(ircd.port, "spark-ori", CAPS) as ori:
        await ori.join("#a")
        ids = [await say(ori, "#a") for _ in range(3)]
        answers = [told(await ori.ask(f"REDACT #a {each}"))[0][:3] for each in ids]
        assert answers == [("FAIL", "REDACT", "UNKNOWN_MSGID"), ("REDACT", "#a", ids[1]), ("REDACT", "#a", ids[2])]


def said(seq: int, target: str) -> Said:
    return Said(EventId("spark", "e", seq, float(seq)), "spark-ori!u@h", "PRIVMSG", target, "x", None, "human", {})


@pytest.fixture
def router(ircd: IRCd) -> Router:
    return Router("spark", Network(), ircd.parts.router.ids, [])


async def test_the_whole_stays_within_bounds(router: Router) -> None:
    """Those to whom nobody has spoken for longest are forgotten first; nothing is kept of those who left."""
    recent = RecentMessages(router, most=2)
    for seq in range(300):
        router.publish(said(seq, f"#{seq // 3}"))
    recent.trim()
    assert [bool(recent.find(f"#{number}", f"spark.e.{number * 3 + 2}")) for number in (0, 49, 50, 99)] == [
        False,
        False,
        True,
        True,
    ]
    router.publish(said(1000, "spark-ada"))
    router.publish(Renamed(EventId("spark", "e", 1001, 1001.0), "spark-ada!u@h", "spark-eve"))
    assert recent.find("spark-ada", "spark.e.1000") is None
    assert recent.find("spark-eve", "spark.e.1000") is not None
    router.publish(Left(EventId("spark", "e", 1002, 1002.0), "spark-eve!u@h", "bye"))
    assert recent.find("spark-eve", "spark.e.1000") is None
