"""Rooms in a browser: what one sees, says, and is told."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from urllib.parse import quote

import httpx
import pytest

from culture.server.ircd import IRCd
from culture.transport import IRCTransport, Message
from tests.support.client import Client, connected
from tests.support.clock import sleep
from tests.support.people import PASSWORD, authenticate, come_in, plain
from tests.support.waiting import until
from tests.support.web import Browser, Site, texts


@asynccontextmanager
async def client_of(ircd: IRCd, account: str) -> AsyncIterator[Client]:
    """Another device of somebody, with any IRC client."""
    async with connected(ircd.port) as client:
        await authenticate(client, "PLAIN", plain(account, PASSWORD))
        await come_in(client, f"spark-{account}")
        client.send("JOIN #general")
        await client.sync()
        yield client


async def said(browser: Browser, room: str, text: str) -> httpx.Response:
    """What the box for messages sends."""
    return await browser.post("/say", {"HX-Request": "true"}, room=room, text=text)


async def test_two_people_talk_in_two_browsers(site: Site) -> None:
    ori, ada = await site.browser().come_in("ori"), await site.browser().come_in("ada")
    async with ada.listening() as news:
        assert (await said(ori, "#general", "hello & <b>good</b> morning")).status_code == 204
        (heard,) = await until(lambda: [each for kind, each in news if kind == "message"])
    assert heard["room"] == "#general" and "hello &amp; &lt;b&gt;" in heard["html"]
    page = (await ada.get("/rooms/%23general")).text
    assert texts(page) == ["hello & <b>good</b> morning"]
    assert 'data-sender="spark-ori"' in page and '<a href="/rooms/spark-ori">spark-ori</a>' in page


async def test_whois_says_via_web(site: Site, ircd: IRCd) -> None:
    await site.browser().come_in("ori")
    async with client_of(ircd, "ada") as ada:
        lines = await ada.ask("WHOIS spark-ori")
    assert "is here via web" in [line.params[-1] for line in lines]


async def test_earlier_messages_come_page_by_page(site: Site, ircd: IRCd) -> None:
    ori = await site.browser().come_in("ori")
    async with client_of(ircd, "ada") as ada:
        for number in range(120):
            ada.send(f"PRIVMSG #general :number {number}")
        await ada.sync()
    page, shown = (await ori.get("/rooms/%23general")).text, list[str]()
    while True:
        shown = texts(page) + shown
        earlier = re.search(r'hx-get="([^"]+before=[^"]+)"', page)
        if earlier is None:
            break
        page = (await ori.get(earlier[1], **{"HX-Request": "true"})).text
    assert shown == [f"number {number}" for number in range(120)]


async def test_what_the_server_refuses_is_shown_with_its_words(site: Site, ircd: IRCd) -> None:
    ori = await site.browser().come_in("ori")
    async with client_of(ircd, "ada") as ada:
        ada.send("JOIN #quiet\r\nMODE #quiet +m")
        await ada.sync()
        refusals = {
            "a moderated room": await said(ori, "#quiet", "hello"),
            "nobody of that name": await said(ori, "spark-adda", "hello"),
            "nothing": await said(ori, "#general", "  \n "),
            "no such command": await said(ori, "#general", "/nonsense"),
            "a name that is none": await said(ori, "#general", "/join #a,b"),
        }
    assert {why for why, answer in refusals.items() if answer.headers.get("x-refused") != "1"} == set()
    assert "spark-ada" in refusals["nobody of that name"].text
    assert "/nonsense" in refusals["no such command"].text
    whole = await ori.post("/say", room="spark-adda", text="hello")
    assert whole.status_code == 409 and "spark-ada" in whole.text
    unknown = await ori.get("/rooms/%23nowhere")
    assert unknown.status_code == 409 and "#nowhere" not in (await ori.get("/rooms")).text


async def test_commands_begin_with_a_slash(site: Site, ircd: IRCd) -> None:
    ori = await site.browser().come_in("ori")
    async with client_of(ircd, "ada") as ada:
        await said(ori, "#general", "/me waves")
        assert (await ada.expect("PRIVMSG")).params == ("#general", "\x01ACTION waves\x01")
        await said(ori, "#general", "//me is a command")
        assert (await ada.expect("PRIVMSG")).params[-1] == "/me is a command"
        await said(ori, "#general", "two\nlines")
        assert [(await ada.expect("PRIVMSG")).params[-1] for _ in range(2)] == ["two", "lines"]
        await said(ori, "#general", "/topic all about it")
        assert (await ada.expect("TOPIC")).params[-1] == "all about it"
        going = await said(ori, "#general", "/msg spark-ada psst")
        assert going.headers["hx-redirect"] == "/rooms/spark-ada"
        assert (await ada.expect("PRIVMSG")).params == ("spark-ada", "psst")
        going = await said(ori, "#general", "/join #new")
        assert going.headers["hx-redirect"] == "/rooms/%23new"
        await said(ori, "#general", "/away at lunch")
        assert "at lunch" in [line.params[-1] for line in await ada.ask("WHOIS spark-ori")]
        await said(ori, "#general", "/away")
        assert "at lunch" not in [line.params[-1] for line in await ada.ask("WHOIS spark-ori")]
        assert (await said(ori, "#new", "/part")).headers["hx-redirect"] == "/rooms"
    page = (await ori.get("/rooms/%23general")).text
    assert "own action" in page
    assert "all about it" in page and "#new" not in page


async def test_what_is_unread_is_counted_and_read_on_all_devices(site: Site, ircd: IRCd) -> None:
    ori = await site.browser().come_in("ori")
    async with client_of(ircd, "ada") as ada, ori.listening() as news:
        ada.send("PRIVMSG #general :good morning\r\nPRIVMSG #general :@ori are you there?\r\nPRIVMSG spark-ori :psst")
        await until(lambda: len([each for kind, each in news if kind == "message"]) == 3)
        page = (await ori.get("/rooms")).text
        assert re.findall(r'data-room="([^"]+)".*?<b class="([^"]+)"[^>]*>(\d+)</b>', page) == [
            ("#general", "count mention", "2"),
            ("spark-ada", "count mention", "1"),
        ]
        assert [each["calls"] for kind, each in news if kind == "message"] == [False, True, True]
        async with client_of(ircd, "ori") as other:
            other.send("CAP REQ draft/read-marker")
            await other.sync()
            assert (await ori.post("/read", room="#general")).status_code == 204
            assert (await other.expect("MARKREAD", "#general")).params[1].startswith("timestamp=")
            assert 'data-room="#general"' in (page := (await ori.get("/rooms")).text)
            assert re.findall(r'data-room="([^"]+)".*?<b class="[^"]+"[^>]*>(\d+)</b>', page) == [("spark-ada", "1")]
            other.send("MARKREAD spark-ada timestamp=2099-01-01T00:00:00.000Z")
            await other.sync()
        await until(lambda: ("rooms", {}) in news)
        assert '<b class="count' not in (await ori.get("/rooms")).text


async def test_what_was_unread_before_the_page_was_opened_is_counted_too(site: Site, ircd: IRCd) -> None:
    async with client_of(ircd, "ori") as other, client_of(ircd, "ada") as ada:
        ada.send("PRIVMSG #general :read")
        await other.expect("PRIVMSG")
        other.send("MARKREAD #general timestamp=2099-01-01T00:00:00.000Z")
        await other.sync()
        await sleep(0.005)  # a mark has milliseconds
        ada.send("PRIVMSG #general :one\r\nPRIVMSG #general :@ori two\r\nPRIVMSG spark-ori :in private")
        await ada.sync()
    page = (await (await site.browser().come_in("ori")).get("/rooms")).text
    assert re.findall(r'data-room="([^"]+)".*?<b class="([^"]+)"[^>]*>(\d+)</b>', page) == [
        ("#general", "count mention", "2")
    ]
    assert 'data-room="spark-ada"' in page


async def test_what_is_said_while_the_unread_are_counted_counts_once(
    site: Site, ircd: IRCd, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = IRCTransport.read

    async def interrupted(irc: IRCTransport, channel: str, since: datetime | None = None) -> list[Message]:
        await ada.ask("PRIVMSG #general :@ori two")
        await irc.request("PING", "heard")
        return await read(irc, channel, since)

    async with client_of(ircd, "ori") as other, client_of(ircd, "ada") as ada:
        ada.send("PRIVMSG #general :read")
        await other.expect("PRIVMSG")
        other.send("MARKREAD #general timestamp=2099-01-01T00:00:00.000Z")
        await other.sync()
        await sleep(0.005)  # a mark has milliseconds
        await ada.ask("PRIVMSG #general :one")
        monkeypatch.setattr(IRCTransport, "read", interrupted)
        page = (await (await site.browser().come_in("ori")).get("/rooms")).text
    assert re.findall(r'data-room="([^"]+)".*?<b class="([^"]+)"[^>]*>(\d+)</b>', page) == [
        ("#general", "count mention", "2")
    ]


async def test_who_could_not_be_seated_in_time_is_not_left_on_the_server(
    site: Site, ircd: IRCd, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached = asyncio.Event()

    async def hangs(*_: object) -> None:
        reached.set()
        await asyncio.Event().wait()

    monkeypatch.setattr("culture.web.connection_pool._OPEN_TIMEOUT", 2.0)
    monkeypatch.setattr("culture.web.connection_pool.load_unread", hangs)
    ori = site.browser()
    await ori.log_in("ori")
    assert reached.is_set()
    assert "does not answer" in (await ori.get("/rooms")).text
    # The page's own connection stays, and no other.
    await until(lambda: len(ircd.parts.sessions) == 1)


async def test_a_conversation_is_a_room_of_two(site: Site) -> None:
    ori, ada = await site.browser().come_in("ori"), await site.browser().come_in("ada")
    await said(ori, "spark-ada", "between us")
    await said(ada, "spark-ori", "yes?")
    assert texts((await ori.get("/rooms/spark-ada")).text) == ["between us", "yes?"]
    assert texts((await ada.get("/rooms/spark-ori")).text) == ["between us", "yes?"]


async def test_a_search_finds_the_place(site: Site, ircd: IRCd) -> None:
    ori = await site.browser().come_in("ori")
    async with client_of(ircd, "ada") as ada:
        for number in range(60):
            ada.send(f"PRIVMSG #general :number {number}")
        ada.send("JOIN #other\r\nPRIVMSG #other :C++ builds again")
        await ada.sync()
        await said(ori, "#general", "/join #other")
        found = (await ori.get("/search?q=number+7")).text
        assert texts(found) == ["number 7"]
        place = re.search(r'class="where" href="([^"#]+)#m-([^"]+)"', found)
        assert place is not None
        page = (await ori.get(place[1])).text
        assert "number 7" in texts(page) and "number 12" in texts(page) and f'id="m-{place[2]}"' in page
        assert texts((await ori.get(f"/search?q={quote('c++')}&room=%23other")).text) == ["C++ builds again"]
        assert "No messages match" in (await ori.get("/search?q=nowhere")).text
        # No model is loaded in this server: the page says what the server says.
        assert 'class="refusal"' in (await ori.get("/search?q=anything&how=meaning")).text


async def test_rooms_to_join_are_listed_and_joined(site: Site, ircd: IRCd) -> None:
    ori = await site.browser().come_in("ori")
    async with client_of(ircd, "ada") as ada:
        ada.send("JOIN #other\r\nTOPIC #other :something else\r\nPRIVMSG #other :for all to read")
        await ada.sync()
        page = (await ori.get("/rooms")).text
        assert "#other" in page and "something else" in page
        assert texts((await ori.get("/rooms/%23other")).text) == ["for all to read"]
        assert (await ori.post("/join", room="#other")).headers["location"] == "/rooms/%23other"
        assert (await ada.expect("JOIN")).source.startswith("spark-ori!")
        assert (await ori.post("/leave", room="#other")).status_code == 303
        assert (await ada.expect("PART")).source.startswith("spark-ori!")
