"""URLS over the wire: what is remembered, who may read it, in which form."""

import asyncio
import logging
import sqlite3
import threading
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from culture.lib.files import private_directory
from culture.protocol import message as protocol
from culture.protocol.message import Message
from culture.server.ircd import IRCd
from culture.skills.urlindex import skill
from culture.skills.urlindex.facts import LinkPage
from culture.skills.urlindex.skill import UrlIndex
from tests.protocol.test_extensions import examples
from tests.skills.urlindex.conftest import CAPS, Indexing
from tests.support.client import Client, registered
from tests.support.clock import Clock
from tests.support.fuzz import SAMPLES, variants
from tests.support.waiting import PATIENCE

PAGE = Path(protocol.__file__).parent / "extensions" / "urls.md"
TEN = 1_773_914_400.0  # 2026-03-19 10:00 UTC


class Room:
    """Clients of one server."""

    def __init__(self, ircd: IRCd, stack: AsyncExitStack) -> None:
        self.ircd = ircd
        self._stack = stack

    async def join(self, nick: str, *channels: str) -> Client:
        client = await self._stack.enter_async_context(registered(self.ircd.port, nick, CAPS))
        for channel in channels:
            await client.join(channel)
        return client


@pytest.fixture
async def room(indexing: Indexing) -> AsyncIterator[Room]:
    async with indexing() as ircd, AsyncExitStack() as stack:
        yield Room(ircd, stack)


def lines(got: list[Message]) -> list[str]:
    return [str(message) for message in got]


def links(got: list[Message]) -> list[tuple[str, str, str]]:
    """Channel, how often, and link of each row."""
    return [(each.params[0], each.params[3], each.params[4]) for each in got if each.verb == "URLS"]


def refused(got: list[Message]) -> list[tuple[str, ...]]:
    return [(each.verb, *each.params[:-1]) for each in got]


async def say(client: Client, target: str, text: str, verb: str = "PRIVMSG") -> str:
    """The id of what was said."""
    echoed = await client.ask(f"{verb} {target} :{text}")
    return next(each.tags["msgid"] for each in echoed if each.verb == verb)


async def say_lines(client: Client, first: str, second: str, joined: bool = False) -> str:
    """The id of a message of two lines."""
    client.send("BATCH +1 draft/multiline #a")
    client.send(f"@batch=1 {first}")
    client.send(f"@batch=1{';draft/multiline-concat' if joined else ''} {second}")
    echoed = await client.ask("BATCH -1")
    return next(each.tags["msgid"] for each in echoed if each.verb == "BATCH" and "msgid" in each.tags)


@pytest.mark.requirement("D12", "D03")
async def test_the_page_shows_what_happens(room: Room, clock: Clock) -> None:
    """Every line of the extension's page is sent and comes, in its order."""
    ori, ada = await room.join("spark-ori", "#general"), await room.join("spark-ada", "#lab", "#general")
    eve = await room.join("spark-eve", "#general")
    for minute, client, channel, text in (
        (-60, ada, "#lab", "another plan: https://example.org/7"),
        (-50, ada, "#general", "the plan: https://example.org/plan"),
        (-40, ori, "#general", "HTTPS://EXAMPLE.org/plan, once more"),
        (-30, ada, "#general", "(see https://example.org/a_(b))"),
        (0, ori, "#general", "moved to https://example.org/plan"),
    ):
        clock.now = TEN + 60 * minute
        await say(client, channel, text)
    sent, answered = examples(PAGE)
    await eve.sync()
    got = [message for line in sent for message in await eve.ask(str(line))]
    assert lines(got) == lines(answered)


@pytest.mark.requirement("D12")
async def test_a_link_said_in_any_way_to_a_channel_is_remembered(room: Room) -> None:
    ori = await room.join("spark-ori", "#a")
    await say(ori, "#a", "https://a.b/notice", "NOTICE")
    await say(ori, "#a", "\x01ACTION likes https://a.b/action\x01")
    await say_lines(ori, "PRIVMSG #a :two lines, and in the second", "PRIVMSG #a :https://a.b/lines")
    got = await ori.ask("urls #A")
    assert [link for _, _, link in links(got)] == ["https://a.b/lines", "https://a.b/action", "https://a.b/notice"]
    assert got[0].params[-1] == "two lines, and in the second https://a.b/lines"
    assert lines(got)[-1] == ":spark URLSEND #a :End of results"


@pytest.mark.requirement("D12")
async def test_what_is_not_said_to_the_whole_channel_is_not_remembered(room: Room) -> None:
    ori, ada = await room.join("spark-ori", "#a"), await room.join("spark-ada", "#a")
    await ori.ask("PRIVMSG spark-ada :https://a.b/private")
    await ori.ask("PRIVMSG @#a :https://a.b/status")
    await ori.ask("@+x=https://a.b/tag TAGMSG #a")
    await ada.sync()
    for question in ("URLS #a", "URLS SEARCH :a.b"):
        assert [each.verb for each in await ada.ask(question)] == ["URLSEND"]


async def test_numbers_and_subcommands_in_any_form(room: Room) -> None:
    ori = await room.join("spark-ori", "#a")
    for number in range(15):
        await say(ori, "#a", f"https://a.b/{number}")
    assert len(links(await ori.ask("URLS #a"))) == 10
    assert links(await ori.ask("Urls #A 002")) == [("#a", "1", "https://a.b/14"), ("#a", "1", "https://a.b/13")]
    assert len(links(await ori.ask(f"URLS #a {'9' * 30}"))) == 15
    assert len(links(await ori.ask("urls search A.B"))) == 15
    assert len(links(await ori.ask("URLS SEARCH :"))) == 15
    await say(ori, "#a", "three  words https://a.b/words")
    assert len(links(await ori.ask("URLS SeArCh three words"))) == 1
    assert len(links(await ori.ask("URLS SEARCH :  \x02Three\x02   words"))) == 1


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("URLS #a 0", ("FAIL", "URLS", "INVALID_PARAMS", "0")),
        ("URLS #a -1", ("FAIL", "URLS", "INVALID_PARAMS", "-1")),
        ("URLS #a ten", ("FAIL", "URLS", "INVALID_PARAMS", "ten")),
        ("URLS #a ٣", ("FAIL", "URLS", "INVALID_PARAMS", "٣")),
        ("URLS spark-ori", ("FAIL", "URLS", "INVALID_PARAMS", "spark-ori")),
        ("URLS :", ("FAIL", "URLS", "INVALID_PARAMS", "*")),
        ("URLS SEARCH", ("461", "spark-ori", "URLS")),
        ("URLS", ("461", "spark-ori", "URLS")),
        ("URLS 5", ("461", "spark-ori", "URLS")),
        ("URLS #nowhere", ("403", "spark-ori", "#nowhere")),
        ("URLS #", ("403", "spark-ori", "#")),
    ],
)
async def test_what_makes_no_sense_is_refused(room: Room, line: str, answer: tuple[str, ...]) -> None:
    ori = await room.join("spark-ori")
    assert refused(await ori.ask(line)) == [answer]


@pytest.mark.requirement("D12", "D17")
async def test_without_a_channel_people_read_those_of_where_they_are(room: Room) -> None:
    ori = await room.join("spark-ori", "#a", "#b")
    assert lines(await ori.ask("urls")) == [":spark NOTICE spark-ori :No links were shared in #b"]
    await say(ori, "#a", "https://a.b/")
    await say(ori, "#a", "https://a.b/ https://c.d/" + "x" * 350)
    got = await ori.ask("urls 5")
    assert [each.verb for each in got] == ["NOTICE"] * 3
    assert got[0].params[-1] == "Links in #a, newest first:"
    assert {"(2 times)" in each.params[-1] for each in got[1:]} == {True, False}


@pytest.mark.requirement("D16")
async def test_whoever_may_join_may_read(room: Room) -> None:
    ori, eve = await room.join("spark-ori", "#a"), await room.join("spark-eve")
    await say(ori, "#a", "https://a.b/open")
    assert links(await eve.ask("URLS #a")) == [("#a", "1", "https://a.b/open")]
    assert len(links(await eve.ask("URLS SEARCH :open"))) == 1


@pytest.mark.requirement("D16")
@pytest.mark.parametrize("mode", ["+i", "+k key", "+s", "+b spark-eve!*@*"])
async def test_where_not_everybody_may_join_members_read(room: Room, mode: str) -> None:
    ori, ada, eve = await room.join("spark-ori", "#a"), await room.join("spark-ada", "#a"), await room.join("spark-eve")
    await say(ori, "#a", "https://a.b/before")
    await ori.ask(f"MODE #a {mode}")
    await say(ori, "#a", "https://a.b/after")
    await ada.sync()
    assert refused(await eve.ask("URLS #a")) == [("442", "spark-eve", "#a")]
    assert lines(await eve.ask("URLS SEARCH :a.b")) == [":spark URLSEND * :End of results"]
    assert len(links(await ada.ask("URLS #a"))) == len(links(await ada.ask("URLS SEARCH :a.b"))) == 2


async def test_an_exception_to_the_ban_may_read(room: Room) -> None:
    ori, eve = await room.join("spark-ori", "#a"), await room.join("spark-eve")
    await say(ori, "#a", "https://a.b/")
    await ori.ask("MODE #a +be spark-*!*@* spark-eve!*@*")
    assert len(links(await eve.ask("URLS #a"))) == 1


@pytest.mark.requirement("D16")
async def test_what_was_shared_while_closed_stays_with_the_members(room: Room) -> None:
    ori, eve = await room.join("spark-ori", "#a"), await room.join("spark-eve")
    await say(ori, "#a", "https://a.b/open https://a.b/both")
    await ori.ask("MODE #a +s")
    await say(ori, "#a", "https://a.b/closed https://a.b/both")
    await ori.ask("MODE #a -s")
    assert links(await eve.ask("URLS #a")) == [("#a", "1", "https://a.b/both"), ("#a", "1", "https://a.b/open")]
    assert len(links(await eve.ask("URLS SEARCH :closed"))) == 0
    wanted = [("#a", "2", "https://a.b/both"), ("#a", "1", "https://a.b/closed"), ("#a", "1", "https://a.b/open")]
    assert links(await ori.ask("URLS #a")) == wanted
    assert links(await ori.ask("URLS SEARCH :a.b")) == wanted


@pytest.mark.requirement("D16")
async def test_a_vanished_secret_channel_leaves_nothing_to_whoever_makes_it_again(room: Room, clock: Clock) -> None:
    ori, eve = await room.join("spark-ori", "#a", "#secret"), await room.join("spark-eve")
    await ori.ask("MODE #secret +s")
    await say(ori, "#secret", "https://a.b/secret")
    await say(ori, "#a", "https://a.b/open")
    clock.now += 60
    await ori.ask("PART #a,#secret")
    assert links(await eve.ask("URLS #a")) == [("#a", "1", "https://a.b/open")]
    assert refused(await eve.ask("URLS #secret")) == [("403", "spark-eve", "#secret")]
    await eve.join("#secret")
    assert refused(await eve.ask("URLS #secret")) == [("URLSEND", "#secret")]
    await eve.ask("MODE #secret +s")
    assert links(await eve.ask("URLS #secret")) == []
    assert links(await eve.ask("URLS SEARCH :a.b")) == [("#a", "1", "https://a.b/open")]


async def test_who_comes_first_into_an_empty_standing_channel_finds_nothing_closed(room: Room, clock: Clock) -> None:
    ori, eve = await room.join("spark-ori", "#general"), await room.join("spark-eve")
    await ori.ask("MODE #general +i")
    await say(ori, "#general", "https://a.b/closed")
    clock.now += 60
    await ori.ask("PART #general")
    await eve.join("#general")
    assert refused(await eve.ask("URLS #general")) == [("URLSEND", "#general")]
    assert links(await eve.ask("URLS SEARCH :closed")) == []
    await say(eve, "#general", "https://a.b/mine")
    assert links(await eve.ask("URLS #general")) == [("#general", "1", "https://a.b/mine")]


@pytest.mark.requirement("D16")
async def test_a_channel_that_takes_a_name_inherits_no_secrets_of_it(room: Room, clock: Clock) -> None:
    ori, eve = await room.join("spark-ori", "#vault"), await room.join("spark-eve", "#mine")
    clock.now += 60
    await ori.ask("MODE #vault +s")
    await say(ori, "#vault", "https://a.b/vault")
    await ori.ask("PART #vault")
    await ori.ask("JOIN #vault")
    await ori.ask("MODE #vault +s")
    await say(ori, "#vault", "https://a.b/vault")
    await ori.ask("PART #vault")
    await eve.ask("RENAME #mine #vault")
    await say(eve, "#vault", "https://a.b/mine")
    assert links(await eve.ask("URLS #vault")) == [("#vault", "1", "https://a.b/mine")]
    assert len(links(await eve.ask("URLS SEARCH :a.b"))) == 1


@pytest.mark.requirement("D12")
async def test_a_message_taken_back_takes_its_link_with_it(room: Room) -> None:
    ori = await room.join("spark-ori", "#a")
    await say(ori, "#a", "https://a.b/ first")
    second = await say(ori, "#a", "https://a.b/ second http://c.d/")
    await ori.ask(f"REDACT #a {second}")
    got = await ori.ask("URLS #a")
    assert links(got) == [("#a", "1", "https://a.b/")]
    assert got[0].params[-1] == "https://a.b/ first"
    assert links(await ori.ask("URLS SEARCH :second")) == []


async def test_a_renamed_channel_takes_its_links_along(room: Room) -> None:
    ori = await room.join("spark-ori", "#old")
    await ori.ask("MODE #old +s")
    await say(ori, "#old", "https://a.b/")
    await ori.ask("RENAME #old #new")
    assert links(await ori.ask("URLS #new")) == [("#new", "1", "https://a.b/")]
    assert refused(await ori.ask("URLS #old")) == [("403", "spark-ori", "#old")]


async def test_a_long_link_leaves_less_room_for_the_text_and_is_never_cut(room: Room) -> None:
    ori = await room.join("spark-ori", "#a")
    long, longer = "https://a.b/" + "x" * 380, "https://a.b/" + "y" * 700
    await say(ori, "#a", f"so {long} " + "é" * 20)
    msgid = await say_lines(ori, f"PRIVMSG #a :{longer[:400]}", f"PRIVMSG #a :{longer[400:]}", joined=True)
    first, second, _ = await ori.ask("URLS #a")
    assert first.params[4] == "*"
    assert "712 bytes" in first.params[5] and first.params[5].endswith(msgid)
    assert second.params[4] == long
    assert f"so {long}".startswith(second.params[5])
    assert [len(str(each).encode()) <= 510 for each in (first, second)] == [True, True]
    assert "712 bytes" in (await ori.ask("URLS"))[1].params[-1]


@pytest.mark.fault("B18")
async def test_an_answer_has_a_bound(indexing: Indexing) -> None:
    """B18"""
    async with indexing(urlindex={"rows": 5, "keep": 8}) as ircd, registered(ircd.port, "spark-ori", CAPS) as ori:
        await ori.join("#a")
        for number in range(12):
            await say(ori, "#a", f"https://a.b/{number}")
        for question in ("URLS #a 1000", "URLS SEARCH :a.b", "URLS #a"):
            assert len(links(await ori.ask(question))) == 5
        assert links(await ori.ask("URLS SEARCH :/3")) == []  # dropped: only the newest eight are kept


@pytest.mark.fault("B19")
async def test_a_search_that_takes_too_long_says_so(indexing: Indexing, monkeypatch: pytest.MonkeyPatch) -> None:
    """B19"""
    async with indexing() as ircd, registered(ircd.port, "spark-ori", CAPS) as ori:
        await ori.join("#a")
        for part in range(30):
            await say(ori, "#a", " ".join(f"https://a.b/{part}/{number}" for number in range(20)))
        index = ircd.parts.skills.get("urlindex")
        assert isinstance(index, skill.UrlIndex)
        monkeypatch.setattr(index._reader, "_patience", 0.0)
        got = await ori.ask("URLS SEARCH :nothing of this")
    assert refused(got) == [("WARN", "URLS", "TIMEOUT", "*"), ("URLSEND", "*")]


@pytest.mark.requirement("D12")
async def test_links_survive_a_restart(indexing: Indexing) -> None:
    for times in ("1", "2"):
        async with indexing() as ircd, registered(ircd.port, "spark-ori", CAPS) as ori:
            await ori.join("#a")
            ori.send("PRIVMSG #a :https://a.b/")
            ori.send("QUIT")
            await ori.ended()
        async with indexing() as ircd, registered(ircd.port, "spark-ori", CAPS) as ori:
            assert links(await ori.ask("URLS #a")) == [("#a", times, "https://a.b/")]


async def test_whether_it_is_the_same_channel_is_told_by_when_it_was_made(indexing: Indexing, clock: Clock) -> None:
    """A registered channel comes back with that time, any other is a new one."""
    async with indexing() as ircd, registered(ircd.port, "spark-ori", CAPS) as ori:
        await ori.join("#a")
        await ori.ask("MODE #a +s")
        await say(ori, "#a", "https://a.b/")
        made = ircd.parts.network.channels["#a"].created
    clock.now += 60
    async with indexing() as ircd, registered(ircd.port, "spark-ori", CAPS) as ori:
        await ori.join("#a")
        ircd.parts.network.channels["#a"].created = made  # as another server may say
        assert links(await ori.ask("URLS #a")) == []
        await ori.ask("PART #a")
        ircd.parts.network.open("#a", made).flags.add("P")
        await ori.join("#a")
        index = ircd.parts.skills.get("urlindex")
        assert isinstance(index, UrlIndex)
        index._access._founded.clear()  # as after a start
        assert len(links(await ori.ask("URLS #a"))) == 1


async def test_a_locked_file_keeps_nobody_from_talking_and_reading(
    indexing: Indexing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(skill, "_PATIENCE", 0.05)
    operators = ({"name": "root", "password": "very secret"},)
    async with indexing(operators=operators) as ircd, registered(ircd.port, "spark-ori", CAPS) as ori:
        await ori.join("#a")
        await ori.ask("OPER root :very secret")
        await say(ori, "#a", "https://a.b/before")
        await ori.ask("URLS #a")
        other = sqlite3.connect(tmp_path / "data" / "urlindex" / "links.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        await say(ori, "#a", "https://a.b/during")
        assert links(await ori.ask("URLS #a")) == [("#a", "1", "https://a.b/before")]
        told = await ori.expect("NOTICE", where=lambda each: "cannot be written" in each.params[-1])
        assert "urlindex" in told.params[-1]
        other.execute("ROLLBACK")
        other.close()
        await ori.expect("NOTICE", where=lambda each: "none was lost" in each.params[-1])
        assert len(links(await ori.ask("URLS #a"))) == 2


async def test_a_file_that_is_locked_at_the_start_is_opened_later(
    indexing: Indexing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until then a question is declined, and counts for no failure of the skill; nothing that is said is lost."""
    monkeypatch.setattr(skill, "_OPEN_TIMEOUT", 0.0)
    monkeypatch.setattr(skill, "_PATIENCE", 0.05)
    folder = private_directory(tmp_path / "data" / "urlindex")
    other = sqlite3.connect(folder / "links.db", isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    async with indexing() as ircd, registered(ircd.port, "spark-ori", CAPS) as ori:
        await ori.join("#a")
        await say(ori, "#a", "https://a.b/early")
        for _ in range(4):
            assert refused(await ori.ask("URLS #a")) == [("FAIL", "URLS", "UNAVAILABLE")]
        other.execute("ROLLBACK")
        other.close()
        monkeypatch.setattr(skill, "_PATIENCE", PATIENCE)
        assert links(await ori.ask("URLS #a")) == [("#a", "1", "https://a.b/early")]
        assert ircd.parts.skills.off == {}


@pytest.mark.requirement("D05")
async def test_the_skill_is_nobody(room: Room) -> None:
    ori = await room.join("spark-ori", "#a")
    await say(ori, "#a", "https://a.b/")
    await ori.ask("URLS #a")
    assert [user.nick for user in room.ircd.parts.network.users.values()] == ["spark-ori"]
    assert await ori.ask("ISON urlindex spark-urlindex") != []
    [members] = [each for each in await ori.ask("NAMES #a") if each.verb == "353"]
    assert members.params[-1] == "@spark-ori"


async def test_switched_off_the_verb_is_unknown(indexing: Indexing) -> None:
    async with indexing(urlindex={"enabled": False}) as ircd, registered(ircd.port, "spark-ori") as ori:
        assert refused(await ori.ask("URLS #general")) == [("421", "spark-ori", "URLS")]


async def test_help_explains_it(room: Room) -> None:
    ori = await room.join("spark-ori")
    first, *_ = await ori.ask("HELP URLS")
    assert first.params[-1] == "URLS #channel [how many]"


@pytest.mark.fault("A14")
async def test_each_parameter_missing_doubled_empty_and_huge(room: Room, caplog: pytest.LogCaptureFixture) -> None:
    """A14"""
    ori = await room.join("spark-ori", "#fuzz")
    await say(ori, "#fuzz", "https://a.b/")
    for sample in (SAMPLES["URLS"], "URLS SEARCH :https", "URLS 5"):
        for line in variants(sample):
            assert await ori.ask(line) != [], line
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []


async def test_a_labelled_question_is_answered_under_its_label(indexing: Indexing) -> None:
    async with indexing() as ircd, registered(ircd.port, "spark-ori", "labeled-response batch echo-message") as ori:
        await ori.join("#a")
        await ori.ask("PRIVMSG #a :https://a.b/")
        begin, row, last, end = await ori.ask("@label=7 URLS #a")
        assert begin.tags["label"] == "7"
        assert [each.verb for each in (row, last, end)] == ["URLS", "URLSEND", "BATCH"]
        [refusal] = await ori.ask("@label=8 URLS #nowhere")
        assert (refusal.verb, refusal.tags["label"]) == ("403", "8")


async def test_two_who_ask_at_once_are_both_answered(room: Room) -> None:
    clients = [await room.join(f"spark-c{number}", "#a") for number in range(5)]
    await say(clients[0], "#a", "https://a.b/")
    for client in clients:
        client.send("URLS #a")
        client.send("URLS SEARCH :b")
    for client in clients:
        assert [each.verb for each in await client.sync() if each.verb[:4] == "URLS"] == ["URLS", "URLSEND"] * 2


async def test_searches_keep_nobody_from_the_latest_links(room: Room) -> None:
    """However many want one; who comes too many is told to come again."""
    ori = await room.join("spark-ori", "#a")
    await say(ori, "#a", "https://a.b/")
    index, gate = room.ircd.parts.skills.get("urlindex"), threading.Event()
    assert isinstance(index, UrlIndex)

    def long() -> LinkPage:
        gate.wait(PATIENCE)
        return LinkPage([], True)

    searches = [asyncio.create_task(index._run_search(long)) for _ in range(skill.MOST_SEARCHES)]
    assert links(await ori.ask("URLS #a")) == [("#a", "1", "https://a.b/")]
    assert refused(await ori.ask("URLS SEARCH :a.b")) == [("FAIL", "URLS", "UNAVAILABLE")]
    gate.set()
    await asyncio.gather(*searches)
    assert links(await ori.ask("URLS SEARCH :a.b")) == [("#a", "1", "https://a.b/")]
