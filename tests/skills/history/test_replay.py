"""The last messages for whoever comes in with a client that cannot ask for them."""

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from culture.config.skills import Embeddings, HistoryConfig
from culture.protocol.message import Message
from culture.skills.history.store import Unavailable
from tests.federation.meshes import linked
from tests.skills.history.playing import CAPS, EVENTS, Room, room, texts
from tests.support.client import Client
from tests.support.people import accounts_of
from tests.support.waiting import PATIENCE, until

NUMBERS = [str(number) for number in range(5)]


def replaying(most: int) -> HistoryConfig:
    return HistoryConfig(replay=most, semantic=Embeddings(enabled=False))


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Room]:
    async with room(tmp_path, history=replaying(3)) as opened:
        yield opened


async def spoken(here: Room) -> Client:
    """Somebody who said something in #a."""
    ori = await here.join("spark-ori", "#a")
    await here.say(ori, "#a", *NUMBERS)
    return ori


async def come(here: Room, client: Client, channel: str = "#a") -> list[Message]:
    """What a client gets that comes in, once nothing is being read for anybody any more."""
    shown = await client.join(channel)
    skill = here.ircd.parts.skills.get("history")
    assert skill is not None
    await asyncio.gather(*skill.host._tasks)
    return shown + await client.sync()


async def test_what_was_said_last_comes_after_the_names_in_a_batch(here: Room) -> None:
    await spoken(here)
    ada = await here.join("spark-ada", caps="server-time batch")
    ada.send("JOIN #a")
    await ada.expect("366")
    opening = await ada.receive()
    rows = [await ada.receive() for _ in range(3)]
    closing = await ada.receive()
    name = opening.params[0][1:]
    assert (opening.verb, opening.params[1:]) == ("BATCH", ("chathistory", "#a"))
    assert [(row.verb, row.params, row.tags.keys()) for row in rows] == [
        ("PRIVMSG", ("#a", text), {"batch", "time"}) for text in NUMBERS[-3:]
    ]
    assert rows[0].source.startswith("spark-ori!")
    assert (closing.verb, closing.params) == ("BATCH", (f"-{name}",))


async def test_without_batch_come_lines_with_their_time_between_notices_that_tell_it(here: Room) -> None:
    """irssi knows server-time, and shows all the same when a line arrived."""
    await spoken(here)
    ada = await here.join("spark-ada", caps="server-time")
    ada.send("JOIN #a")
    await ada.expect("366")
    opening, *rows, closing = [await ada.receive() for _ in range(5)]
    when = "from 2027-01-15 08:00:03 to 08:00:05 UTC"
    assert (opening.source, opening.verb) == ("spark", "NOTICE")
    assert opening.params == ("#a", f"--- #a: 3 earlier messages, {when} ---")
    assert closing.params == ("#a", "--- #a: end of the earlier messages ---")
    assert [(row.verb, row.params, row.tags["time"]) for row in rows] == [
        ("PRIVMSG", ("#a", text), f"2027-01-15T08:00:0{int(text) + 1}.000Z") for text in NUMBERS[-3:]
    ]


@pytest.mark.parametrize("caps", ["", "message-tags batch", CAPS, EVENTS])
async def test_who_would_take_it_for_new_or_can_ask_gets_none(here: Room, caps: str) -> None:
    await spoken(here)
    ada = await here.join("spark-ada", caps=caps)
    assert [message.verb for message in await come(here, ada)] == ["JOIN", "353", "366"]


async def test_it_can_be_switched_off(tmp_path: Path) -> None:
    async with room(tmp_path, history=replaying(0)) as here:
        await spoken(here)
        ada = await here.join("spark-ada", caps="server-time")
        assert [message.verb for message in await come(here, ada)] == ["JOIN", "353", "366"]


async def test_nothing_comes_twice(here: Room) -> None:
    """What is said after the join is heard, and not replayed as well."""
    ori = await spoken(here)
    ada = await here.join("spark-ada", caps="server-time")
    ada.send("JOIN #a")
    await ada.expect("JOIN")
    await here.say(ori, "#a", "welcome")
    await come(here, ada, "#b")
    heard = [message.params[-1] for message in ada.seen if message.verb == "PRIVMSG"]
    assert sorted(heard) == [*NUMBERS[-3:], "welcome"]


async def test_what_a_link_brings_while_the_replay_is_read_comes_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was said in a split, before the JOIN, and arrives after it: it is shown live, and the rest is replayed."""
    edge = ("spark", "thor")
    async with linked(tmp_path, edge, [edge], history=replaying(3)) as servers:
        ada = await servers.client("thor-ada", "#x", caps="echo-message message-tags")
        ori = await servers.client("spark-ori", "#x")
        for number in NUMBERS:
            ada.send(f"PRIVMSG #x :before {number}")
            await ori.expect("PRIVMSG", "#x", f"before {number}")
        await servers.cut(*edge)
        for number in NUMBERS:
            ada.send(f"PRIVMSG #x :in the split {number}")
        await ada.expect("PRIVMSG", "#x", "in the split 4")
        skill: Any = servers["spark"].parts.skills.get("history")
        page, asked, gate = skill._archive.store.page, threading.Event(), threading.Event()

        def read(*args: Any, **named: Any) -> Any:
            asked.set()
            assert gate.wait(PATIENCE)
            return page(*args, **named)

        monkeypatch.setattr(skill._archive.store, "page", read)
        bob = await servers.client("spark-bob", caps="message-tags server-time")
        bob.send("JOIN #x")
        await until(asked.is_set)
        servers.heal(*edge)
        await bob.expect("PRIVMSG", "#x", "in the split 4")
        await until(lambda: skill._writer.waiting == 0)
        gate.set()
        await bob.expect("PRIVMSG", "#x", "before 4")
        await bob.sync()
        assert not skill._places[-1]._arrivals.channels
        heard = Counter(message.params[-1] for message in bob.seen if message.verb == "PRIVMSG")
        assert heard == Counter([f"in the split {number}" for number in NUMBERS] + [f"before {n}" for n in (2, 3, 4)])


async def test_what_came_before_from_a_clock_that_is_ahead_is_replayed(here: Room) -> None:
    ori = await here.join("spark-ori", "#a")
    await here.say(ori, "#a", "of tomorrow", apart=86400.0)
    here.clock.now -= 86400
    ada = await here.join("spark-ada", caps="server-time")
    shown = await come(here, ada)
    assert [message.params[-1] for message in shown if message.verb == "PRIVMSG"] == ["of tomorrow"]


async def test_nobody_is_called_again(here: Room) -> None:
    """An old message that calls somebody is a message; the notice that went with it is not said again."""
    ori = await here.join("spark-ori", "#a")
    ada = await here.join("spark-ada", "#a", caps="server-time")
    await here.say(ori, "#a", "@spark-ada look")
    await ada.expect("NOTICE")
    await ada.ask("PART #a")
    ada.send("JOIN #a")
    await ada.expect("PRIVMSG", "#a", "@spark-ada look")
    heard = [message.params[-1] for message in await come(here, ada, "#b") if message.verb == "NOTICE"]
    assert heard == ["--- #a: end of the earlier messages ---"]


async def test_no_client_answers_a_question_of_the_past(here: Room) -> None:
    """CTCP requests are left out; an action is what somebody said."""
    ori = await here.join("spark-ori", "#a")
    await here.say(ori, "#a", "\x01VERSION\x01", "\x01ACTION waves\x01")
    ada = await here.join("spark-ada", caps="server-time")
    ada.send("JOIN #a")
    await ada.expect("366")
    await ada.expect("NOTICE", "#a")
    assert (await ada.receive()).params == ("#a", "\x01ACTION waves\x01")


async def test_it_shows_what_a_member_may_read(here: Room) -> None:
    """Nothing that was said to a rank, nothing of a secret channel that is no more."""
    ori = await here.join("spark-ori", "#a", "#b")
    await here.say(ori, "@#a", "to operators")
    await ori.ask("MODE #b +s")
    await here.say(ori, "#b", "secret")
    await ori.ask("PART #b")
    here.clock.now += 1
    ada = await here.join("spark-ada", caps="server-time")
    for channel in ("#a", "#b"):
        assert [message.verb for message in await come(here, ada, channel)] == ["JOIN", "353", "366"]


async def test_under_a_label_it_comes_after_the_answer(here: Room) -> None:
    await spoken(here)
    ada = await here.join("spark-ada", caps="server-time batch labeled-response")
    ada.send("@label=1 JOIN #a")
    answer = [await ada.receive() for _ in range(5)]
    assert [message.verb for message in answer] == ["BATCH", "JOIN", "353", "366", "BATCH"]
    assert (await ada.receive()).params[1:] == ("chathistory", "#a")


async def test_it_comes_to_every_session_that_wants_it(here: Room) -> None:
    await spoken(here)
    desk = await here.join("spark-ada", caps="server-time", account="ada")
    phone = await here.join("spark-ada", caps="server-time", account="ada")
    able = await here.join("spark-ada", caps=CAPS, account="ada")
    desk.send("JOIN #a")
    for client in (desk, phone):
        await client.expect("366")
        await client.expect("NOTICE", "#a")
        assert [(await client.receive()).params[-1] for _ in range(3)] == NUMBERS[-3:]
    await able.expect("JOIN", "#a")
    assert await texts(able, "LATEST #a * 10") == NUMBERS
    assert not [message for message in able.seen if message.verb == "PRIVMSG" and "batch" not in message.tags]


async def test_it_is_left_out_while_the_store_cannot_be_read(here: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    await spoken(here)
    skill = here.ircd.parts.skills.get("history")

    def away(*args: object, **named: object) -> None:
        raise Unavailable("gone")

    monkeypatch.setattr(skill._archive.store, "page", away)
    ada = await here.join("spark-ada", caps="server-time")
    assert [message.verb for message in await ada.join("#a")] == ["JOIN", "353", "366"]
    assert {message.params[1] for message in await ada.ask("HISTORY RECENT #a 1")} == {"UNAVAILABLE"}
    monkeypatch.undo()
    assert "history" not in here.ircd.parts.skills.off
    await ada.ask("PART #a")
    ada.send("JOIN #a")
    assert (await ada.expect("PRIVMSG")).params == ("#a", "2")


@pytest.fixture
async def with_accounts(tmp_path: Path) -> AsyncIterator[Room]:
    """A server on which ada stays when she disconnects."""
    accounts_of(tmp_path, "ada")
    async with room(tmp_path, history=replaying(3)) as opened:
        yield opened


async def missing(here: Room) -> tuple[Client, Client]:
    """Ada was in #a and #b, and does not hear what ori says in #a from here on."""
    ori = await here.join("spark-ori", "#a")
    ada = await here.join("spark-ada", "#a", "#b", caps="", account="ada")
    await here.say(ori, "#a", "heard")
    ada.send("QUIT")
    await ada.ended()
    here.clock.now += 1
    return ori, ada


async def test_who_comes_back_sees_what_was_missed(with_accounts: Room) -> None:
    here = with_accounts
    ori, _ = await missing(here)
    await here.say(ori, "#a", "missed", "missed too")
    ada = await here.join("spark-ada", caps="server-time batch", account="ada")
    await come(here, ada, "#c")
    verbs = [message.verb for message in ada.seen]
    at = verbs.index("BATCH")
    assert ada.seen[at].params[1:] == ("chathistory", "#a")
    assert [message.params for message in ada.seen[at + 1 : at + 3]] == [("#a", "missed"), ("#a", "missed too")]
    assert [verb for verb in verbs[:at] if verb in ("JOIN", "366")][:4] == ["JOIN", "366", "JOIN", "366"]


async def test_not_more_than_after_a_join(with_accounts: Room) -> None:
    here = with_accounts
    ori, _ = await missing(here)
    await here.say(ori, "#a", *NUMBERS)
    ada = await here.join("spark-ada", caps="server-time", account="ada")
    await come(here, ada, "#c")
    assert [message.params[-1] for message in ada.seen if message.verb == "PRIVMSG"] == NUMBERS[-3:]


@pytest.mark.parametrize("caps", ["", CAPS])
async def test_who_would_take_what_was_missed_for_new_or_can_ask_gets_none(with_accounts: Room, caps: str) -> None:
    here = with_accounts
    ori, _ = await missing(here)
    await here.say(ori, "#a", "missed")
    ada = await here.join("spark-ada", caps=caps, account="ada")
    await come(here, ada, "#c")
    assert [message for message in ada.seen if message.verb in ("PRIVMSG", "BATCH")] == []


async def test_a_further_program_sees_the_last_lines_as_if_it_came_in(with_accounts: Room) -> None:
    """The one that is here already, such as that of `culture up`, may be read by nobody."""
    here = with_accounts
    ori = await here.join("spark-ori", "#a")
    desk = await here.join("spark-ada", "#a", caps="server-time", account="ada")
    await here.say(ori, "#a", *NUMBERS)
    await desk.expect("PRIVMSG", "#a", NUMBERS[-1])
    for line in ("AWAY :Not connected", "AWAY"):
        await desk.ask(line)
    here.clock.now += 1
    phone = await here.join("spark-ada", caps="server-time", account="ada")
    await come(here, phone, "#c")
    await desk.sync()
    assert [message.params[-1] for message in phone.seen if message.verb == "PRIVMSG"] == NUMBERS[-3:]
    assert [message.params[-1] for message in desk.seen if message.verb == "PRIVMSG"] == NUMBERS


async def test_who_said_to_be_away_and_left_sees_the_last_lines(with_accounts: Room) -> None:
    here = with_accounts
    ori = await here.join("spark-ori", "#a")
    ada = await here.join("spark-ada", "#a", account="ada")
    await ada.ask("AWAY :lunch")
    ada.send("QUIT")
    await ada.ended()
    await here.say(ori, "#a", "missed")
    here.clock.now += 1
    ada = await here.join("spark-ada", caps="server-time", account="ada")
    await come(here, ada, "#c")
    assert [message.params[-1] for message in ada.seen if message.verb == "PRIVMSG"] == ["missed"]


async def test_who_comes_and_goes_again_and_again_has_one_thing_read_at_a_time(here: Room) -> None:
    """And sees what was said before the last time."""
    ori = await spoken(here)
    ada = await here.join("spark-ada", caps="server-time")
    skill = here.ircd.parts.skills.get("history")
    assert skill is not None
    for _ in range(200):
        ada.send("JOIN #a")
        ada.send("PART #a")
    await ada.sync()
    assert len(skill.host._tasks) <= 2
    await here.say(ori, "#a", "the last")
    shown = await come(here, ada)
    assert [message.params[-1] for message in shown if message.verb == "PRIVMSG"][-1] == "the last"
