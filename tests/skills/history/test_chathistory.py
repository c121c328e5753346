"""CHATHISTORY: paging through what was said (IRCv3 draft/chathistory)."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from culture.config.skills import Embeddings, HistoryConfig
from culture.protocol.message import Message
from culture.skills.history.store import Unavailable
from tests.skills.history.playing import ALL, CAPS, EVENTS, Room, failure, history, room, targets, texts
from tests.support.client import Client

MULTILINE = f"{CAPS} draft/multiline labeled-response"
NUMBERS = [str(number) for number in range(10)]


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Room]:
    async with room(tmp_path) as opened:
        yield opened


def msgid(message: Message) -> str:
    return f"msgid={message.tags['msgid']}"


def time(message: Message) -> str:
    return f"timestamp={message.tags['time']}"


def shown(message: Message) -> tuple[str | None, str, tuple[str, ...], dict[str, str]]:
    tags = {key: value for key, value in message.tags.items() if key != "batch"}
    return message.source, message.verb, message.params, tags


async def test_latest_gives_the_last_messages_as_they_were(here: Room) -> None:
    ori = await here.join("spark-ori", "#a")
    said = await here.say(ori, "#a", *NUMBERS)
    for limit in (1, 5, 100):
        rows = await history(ori, f"LATEST #a * {limit}", "#a")
        assert [shown(row) for row in rows] == [shown(message) for message in said[-limit:]]


@pytest.mark.parametrize("reference", [msgid, time])
async def test_every_way_to_ask_by_id_and_by_time(here: Room, reference) -> None:
    ori = await here.join("spark-ori", "#a")
    said = [reference(message) for message in await here.say(ori, "#a", *NUMBERS)]
    first, third, sixth, last = said[0], said[3], said[6], said[9]
    asked = {
        f"LATEST #a {third} 100": "456789",
        f"LATEST #a {third} 2": "89",
        f"BEFORE #a {sixth} 100": "012345",
        f"BEFORE #a {sixth} 2": "45",
        f"AFTER #a {third} 100": "456789",
        f"AFTER #a {third} 2": "45",
        f"AROUND #a {sixth} 1": "6",
        f"AROUND #a {sixth} 3": "567",
        f"AROUND #a {sixth} 4": "4567",
        f"AROUND #a {last} 4": "6789",
        f"AROUND #a {first} 4": "0123",
        f"BETWEEN #a {third} {sixth} 100": "45",
        f"BETWEEN #a {sixth} {third} 100": "45",
        f"BETWEEN #a {first} {last} 3": "123",
        f"BETWEEN #a {last} {first} 3": "678",
        f"BETWEEN #a {first} {first} 3": "",
    }
    assert {question: "".join(await texts(ori, question)) for question in asked} == asked


async def test_paging_by_id_misses_nothing_that_was_said_at_the_same_moment(here: Room) -> None:
    ori = await here.join("spark-ori", "#a")
    await here.say(ori, "#a", *NUMBERS, apart=0.0)
    page = await history(ori, "LATEST #a * 3")
    paged = [row.params[-1] for row in page]
    while page:
        page = await history(ori, f"BEFORE #a {msgid(page[0])} 3")
        paged[:0] = [row.params[-1] for row in page]
    assert paged == NUMBERS


async def test_no_answer_is_longer_than_005_says(tmp_path: Path) -> None:
    async with room(tmp_path, history=HistoryConfig(rows=3, semantic=Embeddings(enabled=False))) as here:
        ori = await here.join("spark-ori", "#a")
        words = {word for message in ori.seen if message.verb == "005" for word in message.params}
        assert {"CHATHISTORY=3", "MSGREFTYPES=msgid,timestamp"} <= words
        await here.say(ori, "#a", *NUMBERS)
        assert await texts(ori, "LATEST #a * 100000000000000000000") == NUMBERS[-3:]


@pytest.mark.fault("B18")
async def test_a_long_history_comes_in_bounds(here: Room) -> None:
    """B18: nobody gets more than a thousand rows at once, however many there are."""
    ori = await here.join("spark-ori", "#a", caps=f"{CAPS} labeled-response")
    for number in range(1_200):
        ori.send(f"PRIVMSG #a :{number}")
    await ori.sync()
    assert await texts(ori, "LATEST #a * 5000") == [str(number) for number in range(200, 1_200)]


async def test_the_history_outlives_the_server(tmp_path: Path) -> None:
    async with room(tmp_path) as here:
        ori = await here.join("spark-ori", "#a")
        said = await here.say(ori, "#a", "before")
    async with room(tmp_path) as here:
        ori = await here.join("spark-ori", "#a")
        assert [shown(row) for row in await history(ori, "LATEST #a * 10")] == [shown(each) for each in said]


async def test_a_label_is_on_a_batch_around_the_batch(here: Room) -> None:
    ori = await here.join("spark-ori", "#a", caps=f"{CAPS} labeled-response")
    await here.say(ori, "#a", "one", "two")
    outer, inner, one, two, inner_end, end = await ori.ask("@label=7 CHATHISTORY LATEST #a * 10")
    assert (outer.tags, outer.params[1:]) == ({"label": "7"}, ("labeled-response",))
    assert (inner.tags, inner.params[1:]) == ({"batch": outer.params[0][1:]}, ("chathistory", "#a"))
    assert {one.tags["batch"], two.tags["batch"]} == {inner.params[0][1:]}
    assert inner_end.params == (f"-{inner.params[0][1:]}",)
    assert end.params == (f"-{outer.params[0][1:]}",)


async def test_nothing_to_tell_is_an_empty_batch(here: Room) -> None:
    ori = await here.join("spark-ori", "#a")
    assert await history(ori, "LATEST #a * 10", "#a") == []
    assert await history(ori, "LATEST spark-nobody * 10", "spark-nobody") == []
    assert await targets(ori) == []


async def test_the_answer_names_the_channel_as_it_is_spelled(here: Room) -> None:
    ori = await here.join("spark-ori", "#Room")
    await here.say(ori, "#Room", "hello")
    assert [row.params for row in await history(ori, "latest #rOOM * 10", "#Room")] == [("#Room", "hello")]


async def test_without_batch_come_plain_lines(here: Room) -> None:
    """And no more tags than the client knows."""
    ori = await here.join("spark-ori", "#a")
    plain = await here.join("spark-ada", "#a", caps="labeled-response draft/event-playback")
    await here.say(ori, "#a", "one", "two")
    await plain.sync()
    answer = await plain.ask("CHATHISTORY LATEST #a * 10")
    assert [(each.verb, each.params, each.tags) for each in answer] == [
        ("PRIVMSG", ("#a", "one"), {}),
        ("PRIVMSG", ("#a", "two"), {}),
    ]
    assert [each.verb for each in await plain.ask(f"CHATHISTORY TARGETS {ALL}")] == ["CHATHISTORY"]
    [nothing] = await plain.ask("@label=1 CHATHISTORY LATEST spark-ori * 10")
    assert (nothing.verb, nothing.tags) == ("ACK", {"label": "1"})


async def long_message(client: Client, target: str) -> str:
    client.send(f"BATCH +x draft/multiline {target}")
    for line in ("one", "", "three"):
        client.send(f"@batch=x PRIVMSG {target} :{line}")
    client.send("BATCH -x")
    return (await client.expect("BATCH", None, "draft/multiline")).tags["msgid"]


async def test_a_message_of_several_lines_is_a_batch_within_the_batch(here: Room) -> None:
    ori = await here.join("spark-ori", "#a", caps=MULTILINE)
    sent = await long_message(ori, "#a")
    await ori.sync()
    outer, inner, *lines, inner_end, end = await ori.ask("CHATHISTORY LATEST #a * 1")
    name, inner_name = outer.params[0][1:], inner.params[0][1:]
    assert (inner.verb, inner.params[1:]) == ("BATCH", ("draft/multiline", "#a"))
    assert (inner.tags["batch"], inner.tags["msgid"]) == (name, sent)
    assert [line.tags for line in lines] == [{"batch": inner_name}] * 3
    assert [line.params[-1] for line in lines] == ["one", "", "three"]
    assert (inner_end.params, inner_end.tags) == ((f"-{inner_name}",), {"batch": name})
    assert (end.params, end.tags) == ((f"-{name}",), {})


async def test_to_others_its_lines_are_messages_of_which_the_first_has_the_id(here: Room) -> None:
    ori = await here.join("spark-ori", "#a", caps=MULTILINE)
    ada = await here.join("spark-ada", "#a")
    sent = await long_message(ori, "#a")
    await ori.sync(), await ada.sync()
    rows = await history(ada, "LATEST #a * 1")
    assert [(row.verb, row.params[-1], row.tags.get("msgid")) for row in rows] == [
        ("PRIVMSG", "one", sent),
        ("PRIVMSG", "three", None),
    ]


async def busy(here: Room) -> tuple[Client, Client]:
    """A channel in which everything happened that is kept."""
    caps = f"{EVENTS} draft/message-redaction"
    ori = await here.join("spark-ori", "#a", caps=caps)
    ada = await here.join("spark-ada", "#a", caps=caps)
    eve = await here.join("spark-eve", "#a", caps=caps)
    [wrong] = await here.say(ori, "#a", "wrong")
    for client, line in (
        (ori, "TOPIC #a :tea"),
        (ori, "MODE #a +v spark-ada"),
        (ada, "@+draft/react=x TAGMSG #a"),
        (ada, "@+typing=active TAGMSG #a"),
        (eve, "NICK spark-mallory"),
        (ori, "KICK #a spark-mallory :out"),
        (eve, "JOIN #a"),
        (eve, "QUIT :gone"),
        (ada, "NOTICE #a :noted"),
        (ada, "PART #a :bye"),
        (ori, f"REDACT #a {wrong.tags['msgid']} :typo"),
    ):
        here.clock.now += 1
        client.send(line)
        await ori.sync() if client is ori or client is eve else await client.sync()
        if line.startswith("QUIT"):
            await client.ended()
        elif client is eve:
            await client.sync()
    return ori, ada


async def test_with_event_playback_comes_all_that_happened(here: Room) -> None:
    ori, _ = await busy(here)
    rows = await history(ori, "LATEST #a * 100")
    assert [(row.verb, *row.params[1:]) for row in rows] == [
        ("JOIN",),
        ("JOIN",),
        ("JOIN",),
        ("TOPIC", "tea"),
        ("MODE", "+v", "spark-ada"),
        ("TAGMSG",),
        ("NICK",),
        ("KICK", "spark-mallory", "out"),
        ("JOIN",),
        ("QUIT",),
        ("NOTICE", "noted"),
        ("PART", "bye"),
        ("REDACT", rows[-1].params[1], "typo"),
    ]
    assert rows[6].params == ("spark-mallory",) and rows[6].source.startswith("spark-eve!")
    assert rows[5].tags["+draft/react"] == "x"
    assert all(row.tags["time"] and row.tags["msgid"] for row in rows)


async def test_without_it_messages_alone(here: Room) -> None:
    await busy(here)
    for caps in (CAPS, EVENTS.replace("batch ", "")):
        ori = await here.join(f"spark-o{len(caps)}", "#a", caps=caps)
        answer = await ori.ask("CHATHISTORY LATEST #a * 100")
        assert [row.verb for row in answer if row.verb != "BATCH"] == ["NOTICE"]


async def test_who_knows_no_redaction_hears_of_none(here: Room) -> None:
    await busy(here)
    ada = await here.join("spark-zoe", "#a", caps=EVENTS)
    verbs = [row.verb for row in await history(ada, "LATEST #a * 3")]
    assert verbs == ["PART", "JOIN"]


async def test_what_was_taken_back_is_gone_and_can_still_be_counted_from(here: Room) -> None:
    ori = await here.join("spark-ori", "#a", caps=f"{CAPS} draft/message-redaction")
    said = await here.say(ori, "#a", "one", "two", "three")
    await ori.ask(f"REDACT #a {said[1].tags['msgid']}")
    assert await texts(ori, "LATEST #a * 10") == ["one", "three"]
    assert await texts(ori, f"BEFORE #a {msgid(said[1])} 10") == ["one"]
    assert await texts(ori, f"AFTER #a {msgid(said[1])} 10") == ["three"]
    assert await texts(ori, f"AROUND #a {msgid(said[1])} 10") == ["one", "three"]


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("", ("INVALID_PARAMS", "*")),
        ("OLDEST #a * 10", ("INVALID_PARAMS", "OLDEST")),
        ("LATEST", ("INVALID_PARAMS", "LATEST")),
        ("LATEST #a *", ("INVALID_PARAMS", "LATEST")),
        ("LATEST #a * 10 10", ("INVALID_PARAMS", "LATEST")),
        ("BETWEEN #a msgid=a 10", ("INVALID_PARAMS", "BETWEEN")),
        ("TARGETS timestamp=2026-03-19T10:00:00.000Z 10", ("INVALID_PARAMS", "TARGETS")),
        ("LATEST #a * 0", ("INVALID_PARAMS", "LATEST", "0")),
        ("LATEST #a * -1", ("INVALID_PARAMS", "LATEST", "-1")),
        ("LATEST #a * ten", ("INVALID_PARAMS", "LATEST", "ten")),
        ("LATEST #a * ٣", ("INVALID_PARAMS", "LATEST", "٣")),
        ("BEFORE #a * 10", ("INVALID_MSGREFTYPE", "BEFORE", "#a", "*")),
        ("BEFORE #a id=3 10", ("INVALID_MSGREFTYPE", "BEFORE", "#a", "id=3")),
        ("BEFORE #a msgid= 10", ("INVALID_PARAMS", "BEFORE", "msgid=")),
        ("BEFORE #a timestamp=today 10", ("INVALID_PARAMS", "BEFORE", "timestamp=today")),
        ("BEFORE #a timestamp=2026-13-19T10:00:00.000Z 10", ("INVALID_PARAMS", "BEFORE")),
        (f"TARGETS msgid=a {ALL.split()[1]} 10", ("INVALID_PARAMS", "TARGETS", "msgid=a")),
        ("BEFORE #a msgid=spark.5f0c2a91.42 10", ("MESSAGE_ERROR", "BEFORE", "#a", "msgid=spark.5f0c2a91.42")),
        ("BEFORE #a msgid=nonsense 10", ("MESSAGE_ERROR", "BEFORE", "#a", "msgid=nonsense")),
        ("LATEST #nowhere * 10", ("INVALID_TARGET", "LATEST", "#nowhere")),
        ("latest #b * 10", ("INVALID_TARGET", "LATEST", "#b")),
        ("LATEST * * 10", ("INVALID_TARGET", "LATEST", "*")),
        ("LATEST spark!x@y * 10", ("INVALID_TARGET", "LATEST", "spark!x@y")),
        ("LATEST #a,#b * 10", ("INVALID_TARGET", "LATEST", "#a,#b")),
    ],
)
async def test_what_makes_no_sense_fails(here: Room, question: str, words: tuple[str, ...]) -> None:
    ori = await here.join("spark-ori", "#a")
    await here.join("spark-ada", "#b")
    assert (await failure(ori, question))[: len(words)] == words


async def test_a_reference_is_to_a_message_of_that_target(here: Room) -> None:
    ori = await here.join("spark-ori", "#a", "#b")
    [elsewhere] = await here.say(ori, "#b", "hello")
    assert await failure(ori, f"AFTER #a {msgid(elsewhere)} 10") == ("MESSAGE_ERROR", "AFTER", "#a", msgid(elsewhere))
    await here.join("spark-ada")
    [private] = await here.say(ori, "spark-ada", "note")
    assert await failure(ori, f"AFTER #a {msgid(private)} 10") == (
        "MESSAGE_ERROR",
        "AFTER",
        "#a",
        msgid(private),
    )


async def test_while_the_store_cannot_be_read_it_says_so(here: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    ori = await here.join("spark-ori", "#a")
    skill = here.ircd.parts.skills.get("history")

    def away(*args: object, **named: object) -> None:
        raise Unavailable("gone")

    for name in ("page", "talks"):
        monkeypatch.setattr(skill._archive.store, name, away)
    assert await failure(ori, "LATEST #a * 10") == ("MESSAGE_ERROR", "LATEST", "#a")
    assert await failure(ori, f"TARGETS {ALL}") == ("MESSAGE_ERROR", "TARGETS")
    monkeypatch.undo()
    assert await texts(ori, "LATEST #a * 10") == []


async def test_targets_are_where_something_was_said_last_between_two_times(here: Room) -> None:
    ori = await here.join("spark-ori", "#a", "#b", "#silent")
    await here.join("spark-ada")
    said = [(await here.say(ori, target, "hello"))[0] for target in ("#a", "spark-ada", "#b")]
    assert [row.params[1:] for row in await history(ori, f"TARGETS {ALL}")] == [
        (target, message.tags["time"]) for target, message in zip(("#a", "spark-ada", "#b"), said, strict=True)
    ]
    begin, end = ALL.split()[:2]
    assert await targets(ori, f"{begin} {end} 2") == ["#a", "spark-ada"]
    assert await targets(ori, f"{end} {begin} 2") == ["spark-ada", "#b"]
    assert await targets(ori, f"{time(said[0])} {end} 10") == ["spark-ada", "#b"]
    assert await targets(ori, f"{begin} {time(said[2])} 10") == ["#a", "spark-ada"]
    await here.say(ori, "#a", "again")
    assert await targets(ori, f"{begin} {time(said[2])} 10") == ["spark-ada"]


async def test_targets_name_a_renamed_channel_as_it_is_called_now(here: Room) -> None:
    ori = await here.join("spark-ori", "#a", caps=f"{CAPS} draft/channel-rename")
    await here.say(ori, "#a", "hello")
    await ori.ask("RENAME #a #b :better")
    assert await targets(ori) == ["#b"]
    assert await texts(ori, "LATEST #b * 10") == ["hello"]
    assert await failure(ori, "LATEST #a * 10") == ("INVALID_TARGET", "LATEST", "#a")


async def test_a_client_reads_on_from_its_marker(here: Room) -> None:
    """With draft/read-marker beside it: what another device has read does not come again."""
    caps = f"{CAPS} draft/read-marker"
    desk = await here.join("spark-ori", "#a", caps=caps, account="ori")
    said = await here.say(desk, "#a", "read", "read too", "unread", "also unread")
    await desk.ask(f"MARKREAD #a {time(said[1])}")
    phone = await here.join("spark-ori", caps=caps, account="ori")
    marker = next(message for message in phone.seen if message.verb == "MARKREAD")
    assert marker.params == ("#a", time(said[1]))
    assert await texts(phone, f"AFTER #a {marker.params[1]} 10") == ["unread", "also unread"]
