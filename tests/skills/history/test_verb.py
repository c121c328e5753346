"""HISTORY as its page says, over TCP."""

import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from culture.config.skills import HistoryConfig
from culture.protocol import message as protocol
from culture.protocol.message import Message
from culture.server.ircd import IRCd
from culture.skills.history.semantic import Semantic
from culture.skills.history.sqlite import SQLiteStore
from culture.skills.history.store import Kept, TooSlow
from tests.support.client import Client, registered
from tests.support.clock import Clock, ClockedRuntime
from tests.support.servers import Serve, config_for, serving

PAGES = Path(protocol.__file__).parent / "extensions"
CAPS = "message-tags echo-message"
STRANGE = [
    "C++",
    "it's",
    "spark-harper",
    "日本",
    "本語",
    "語",
    '"',
    "AND OR NOT",
    "NEAR(",
    "*",
    "a*",
    "'; --",
    "🎉",
    "-",
    "café",
]


class Room:
    """Clients in one server."""

    def __init__(self, ircd: IRCd, stack: AsyncExitStack) -> None:
        self.ircd = ircd
        self._stack = stack

    async def join(self, nick: str, *channels: str, caps: str = "") -> Client:
        client = await self._stack.enter_async_context(registered(self.ircd.port, nick, caps))
        for channel in channels:
            await client.join(channel)
        return client


@pytest.fixture
async def room(tmp_path: Path) -> AsyncIterator[Room]:
    async with AsyncExitStack() as stack:
        ircd = await stack.enter_async_context(serving(tmp_path))
        yield Room(ircd, stack)


def texts(answer: list[Message]) -> list[str]:
    assert answer[-1].verb == "HISTORYEND", answer
    assert [row.verb for row in answer[:-1]] == ["HISTORY"] * (len(answer) - 1)
    return [row.params[-1] for row in answer[:-1]]


@pytest.mark.requirement("D03", "D06", "D07", "D09")
async def test_recent_gives_the_last_messages_in_the_documented_form(room: Room) -> None:
    ori = await room.join("spark-ori", "#a")
    for number in range(5):
        ori.send(f"PRIVMSG #a :line {number}")
    ori.send("NOTICE #a :done")
    ori.send("HISTORY RECENT #a 3")
    rows = [(await ori.line()).decode() for _ in range(4)]
    form = r":spark HISTORY #a spark-ori \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ :(.*)\r\n"
    assert [found[1] for row in rows[:3] if (found := re.fullmatch(form, row))] == ["line 3", "line 4", "done"]
    assert rows[3] == ":spark HISTORYEND #a :End of results\r\n"


@pytest.mark.requirement("D09")
@pytest.mark.parametrize("caps", ["", "server-time", "message-tags batch labeled-response"])
async def test_every_client_gets_the_same_form(room: Room, caps: str) -> None:
    ori = await room.join("spark-ori", "#a", caps=caps)
    ori.send("PRIVMSG #a :hello")
    [row, end] = await ori.ask("HISTORY RECENT #a 1")
    assert (row.verb, row.params[0], row.params[1], row.params[3]) == ("HISTORY", "#a", "spark-ori", "hello")
    assert end.params == ("#a", "End of results")
    assert ("msgid" in row.tags) == ("message-tags" in caps)


@pytest.mark.requirement("D08")
async def test_search_finds_all_the_words_in_any_order(room: Room) -> None:
    ori = await room.join("spark-ori", "#a", "#b")
    for text in ("the build is red", "red wine", "Build it RED again", "rebuild"):
        ori.send(f"PRIVMSG #a :{text}")
    ori.send("PRIVMSG #b :the build is red elsewhere")
    assert texts(await ori.ask("HISTORY SEARCH #a :red build")) == ["the build is red", "Build it RED again"]
    assert texts(await ori.ask("HISTORY SEARCH #a :nothing of it")) == []


@pytest.mark.requirement("D08")
@pytest.mark.fault("B19")
async def test_any_text_is_a_legal_question(room: Room) -> None:
    ori = await room.join("spark-ori", "#a")
    said = ["my C++ builds", "it's so", "ask spark-harper", "日本語のテスト", "a party 🎉", "un café", "plain"]
    for text in said:
        ori.send(f"PRIVMSG #a :{text}")
    found = {text: texts(await ori.ask(f"HISTORY SEARCH #a :{text}")) for text in STRANGE}
    assert found["C++"] == ["my C++ builds"]
    assert found["it's"] == ["it's so"]
    assert found["spark-harper"] == ["ask spark-harper"]
    assert found["日本"] == found["本語"] == found["語"] == ["日本語のテスト"]
    assert found["🎉"] == ["a party 🎉"]
    assert found["café"] == ["un café"]


@pytest.mark.requirement("D06")
async def test_since_pages_through_everything_once(tmp_path: Path) -> None:
    async with (
        serving(tmp_path, history=HistoryConfig(rows=7)) as ircd,
        registered(ircd.port, "spark-ori", CAPS) as ori,
    ):
        await ori.join("#a")
        [first] = await ori.ask("PRIVMSG #a :0")
        for number in range(1, 20):
            ori.send(f"PRIVMSG #a :{number}")
        await ori.sync()
        got, last = [], first.tags["msgid"]
        while page := (await ori.ask(f"HISTORY SINCE #a {last}"))[:-1]:
            assert len(page) <= 7
            got += [row.params[-1] for row in page]
            last = page[-1].tags["msgid"]
        assert got == [str(number) for number in range(1, 20)]


@pytest.mark.fault("B18")
async def test_no_answer_has_more_than_a_thousand_rows(room: Room) -> None:
    ori = await room.join("spark-ori", "#a")
    for number in range(1100):
        ori.send(f"PRIVMSG #a :same {number}")
    await ori.sync()
    assert len(texts(await ori.ask("HISTORY RECENT #a 99999999999"))) == 1000
    assert texts(await ori.ask("HISTORY SEARCH #a same"))[0] == "same 100"


@pytest.mark.requirement("D15", "D17")
async def test_people_may_leave_the_channel_out(room: Room) -> None:
    ori = await room.join("spark-ori", "#a", "#b")
    bob = await room.join("spark-bob", "#a", "#b")
    for number in range(12):
        ori.send(f"PRIVMSG #a :line {number}")
    ori.send("PRIVMSG #a :\x01ACTION waves\x01")
    await ori.sync()
    await bob.sync()
    rows = await ori.ask("history recent 10")
    assert {row.verb for row in rows} == {"NOTICE"}
    shown = [row.params[1] for row in rows]
    assert shown[0] == "--- #a: 10 messages ---"
    assert re.fullmatch(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\] <spark-ori> line 3", shown[1])
    assert shown[10].endswith("* spark-ori waves")
    # The other one joined #b last and never spoke.
    assert [row.params[1] for row in await bob.ask("HISTORY Recent 5")] == ["--- #b: nothing found ---"]


async def test_a_text_of_several_lines_is_kept_as_one_and_shown_as_several(room: Room) -> None:
    caps = "batch draft/multiline message-tags echo-message"
    ori = await room.join("spark-ori", "#a", caps=caps)
    ori.send("BATCH +1 draft/multiline #a")
    ori.send("@batch=1 PRIVMSG #a :first")
    ori.send("@batch=1 PRIVMSG #a :second")
    ori.send("BATCH -1")
    await ori.sync()
    rows = await ori.ask("HISTORY RECENT #a 1")
    assert texts(rows) == ["first", "second"]
    assert ["msgid" in row.tags for row in rows[:2]] == [True, False]
    assert texts(await ori.ask("HISTORY SEARCH #a :second first")) == ["first", "second"]


async def test_a_text_that_just_fits_is_shown_whole(room: Room) -> None:
    ori = await room.join("spark-ori", "#a")
    longest = "x" * (512 - len(":spark-ori!~tester@127.0.0.1 PRIVMSG #a :\r\n"))
    ori.send(f"PRIVMSG #a :{longest}")
    ori.send("HISTORY RECENT #a 1")
    lines = [await ori.line() for _ in range(3)]
    assert max(map(len, lines)) <= 512
    assert "".join(line.decode().rstrip("\r\n").split(" :", 1)[1] for line in lines[:2]) == longest


async def test_a_message_that_was_taken_back_is_not_found_any_more(room: Room) -> None:
    ori = await room.join("spark-ori", "#a", caps="message-tags echo-message draft/message-redaction")
    [said] = await ori.ask("PRIVMSG #a :my password is swordfish")
    await ori.ask(f"REDACT #a {said.tags['msgid']} :oops")
    assert texts(await ori.ask("HISTORY SEARCH #a swordfish")) == []
    assert texts(await ori.ask("HISTORY RECENT #a 10")) == []


async def test_the_history_goes_with_a_channel_that_is_renamed(room: Room) -> None:
    ori = await room.join("spark-ori", "#a", caps="draft/channel-rename")
    ori.send("PRIVMSG #a :before")
    await ori.ask("RENAME #a #b :better")
    ori.send("PRIVMSG #b :after")
    assert texts(await ori.ask("HISTORY RECENT #b 10")) == ["before", "after"]
    assert (await ori.ask("HISTORY RECENT #a 10"))[0].verb == "403"


@pytest.mark.requirement("D06")
async def test_what_was_said_survives_a_restart(tmp_path: Path) -> None:
    async with serving(tmp_path) as ircd, registered(ircd.port, "spark-ori") as ori:
        await ori.join("#a")
        await ori.ask("PRIVMSG #a :before the restart")
    async with serving(tmp_path) as ircd, registered(ircd.port, "spark-bob") as bob:
        assert texts(await bob.ask("HISTORY RECENT #a 10")) == ["before the restart"]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("HISTORY RECENT #a x", "INVALID_PARAMS"),
        ("HISTORY RECENT #a 0", "INVALID_PARAMS"),
        ("HISTORY RECENT #a -5", "INVALID_PARAMS"),
        ("HISTORY SEARCH #a", "NEED_MORE_PARAMS"),
        ("HISTORY SEARCH #a : ", "NEED_MORE_PARAMS"),
        ("HISTORY SINCE #a nonsense", "UNKNOWN_MSGID"),
        ("HISTORY SINCE #a spark.aaaa.99999999999999999999", "UNKNOWN_MSGID"),
        ("HISTORY NEXT #a", "UNKNOWN_COMMAND"),
    ],
)
async def test_a_question_that_is_none_is_explained(room: Room, line: str, code: str) -> None:
    ori = await room.join("spark-ori", "#a")
    [fail] = await ori.ask(line)
    assert (fail.verb, fail.params[:2]) == ("FAIL", ("HISTORY", code))


async def test_without_a_channel_of_ones_own_one_has_to_be_named(room: Room) -> None:
    ori = await room.join("spark-ori")
    [fail] = await ori.ask("history recent 5")
    assert fail.params[:2] == ("HISTORY", "NEED_MORE_PARAMS")


async def test_the_page_shows_what_the_server_answers(tmp_path: Path) -> None:
    """Each line of the answers on the page, with the ids and addresses of this server in their place."""
    _, shown = (PAGES / "history.md").read_text(encoding="utf-8").split("  Server → Client:\n")
    wanted = [line.strip() for line in shown.partition("\n\n")[0].splitlines()]
    clock = Clock()
    clock.now = 1773914400.0  # 2026-03-19T10:00:00Z
    async with (
        IRCd(config_for(tmp_path), runtime=ClockedRuntime(clock)).running() as ircd,
        registered(ircd.port, "spark-ori") as ori,
        registered(ircd.port, "spark-bob", CAPS) as bob,
    ):
        for client in (ori, bob):
            await client.join("#general")
        ori.send("PRIVMSG #general :hello, it's me")
        await ori.sync()
        clock.now += 7
        await bob.ask("PRIVMSG #general :my C++ builds again")
        await ori.sync()
        got = [_line(row) for row in await ori.ask("HISTORY RECENT #general 2")]
        assert got == wanted[:3]
        [since, _] = await bob.ask("HISTORY SEARCH #general :c++")
        assert _line(since._replace(tags={**since.tags, "msgid": "spark.5f3a9c01.42"})) == wanted[3]
        assert set(since.tags) == {"msgid", "agentirc.dev/class"}
        ori.send("PRIVMSG #general :\x01PING\x01")
        got = [_line(row) for row in await ori.ask("HISTORY RECENT 2")]
        assert [got[0].replace("2 messages", "1 message"), got[1]] == wanted[4:6]


def _line(message: Message) -> str:
    """As it came: the last parameter with its colon."""
    *words, last = message.params
    head = str(message._replace(params=tuple(words)))
    return f"{head} :{last}"


@pytest.mark.fault("B19")
@pytest.mark.parametrize(("action", "advice"), [("SEARCH", "ask with a rarer word"), ("SEMANTIC", "ask again")])
async def test_what_takes_too_long_is_given_up_with_advice(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, action: str, advice: str
) -> None:
    """B19"""

    def slow(*_: object) -> list[Kept]:
        raise TooSlow

    monkeypatch.setattr(SQLiteStore, "search", slow)
    monkeypatch.setattr(Semantic, "search", slow)
    monkeypatch.setattr(Semantic, "why_not", None)
    async with serve() as ircd, registered(ircd.port, "spark-ori") as ori:
        await ori.join("#x")
        [answer] = await ori.ask(f"HISTORY {action} #x :words")
        assert answer.params[:3] == ("HISTORY", "TOO_SLOW", "#x")
        assert advice in answer.params[-1]
