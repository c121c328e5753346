"""What was missed: from a mark on disk, in pages, while much goes on, and on servers that know only CHATHISTORY."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from culture.config.skills import Embeddings, HistoryConfig
from culture.server.ircd import IRCd
from culture.transport import Message, ReceiveMark, catchup
from culture.transport.dedup import Delivery
from culture.transport.parse_messages import LOCAL
from tests.support.client import registered
from tests.support.mesh import mesh
from tests.support.proxy import proxied
from tests.support.servers import serving
from tests.transport.conftest import Come


class Notebook:
    """A cursor on paper: what it is shown it knows, in one step with the mark."""

    def __init__(self) -> None:
        self.pages: dict[str, Message] = {}
        self.mark: ReceiveMark | None = None

    def load(self) -> ReceiveMark | None:
        return self.mark

    def knows(self, msgid: str) -> bool:
        return msgid in self.pages

    def write(self, message: Message) -> None:
        before = self.mark.msgids if self.mark else ()
        self.pages[message.msgid] = message
        self.mark = ReceiveMark((message.msgid, *before)[:8], message.timestamp)


async def arrive_by_time(*_: Any) -> bool:
    """As on a server that does not know HISTORY MISSED."""
    return False


@pytest.fixture(params=["by arrival", "by time"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "by time":
        monkeypatch.setattr(catchup, "_by_arrival", arrive_by_time)
    return str(request.param)


SMALL = HistoryConfig(rows=4, semantic=Embeddings(enabled=False))


@pytest.mark.requirement("F24")
@pytest.mark.fault("E22")
async def test_a_new_process_goes_on_where_the_last_one_was(tmp_path: Path, come: Come, way: str) -> None:
    """With pages much smaller than what was missed, over two channels."""
    notebook = Notebook()
    async with serving(tmp_path, history=SMALL) as ircd, registered(ircd.port, "spark-ori") as ori:
        await ori.join("#general")
        await ori.join("#other")
        first = await come(ircd.port, "spark-ada", ["#general", "#other"], cursor=notebook)
        await ori.ask("PRIVMSG #general :before")
        notebook.write(await first.hears("before"))
        await first.irc.stop()
        said = [f"number {number}" for number in range(11)]
        for number, text in enumerate(said):
            await ori.ask(f"PRIVMSG {'#general' if number % 3 else '#other'} :{text}")
        second = await come(ircd.port, "spark-ada", ["#general", "#other"], cursor=notebook)
        await ori.ask("PRIVMSG #general :live")
        await second.hears("live")
    # Of two channels in the same millisecond the history does not tell which was first.
    for channel in ("#general", "#other"):
        texts = [message.text for message in second.heard if message.channel == channel]
        assert texts == [text for text in (*said, "live") if text in texts]
    assert sorted(second.texts) == sorted([*said, "live"]) and second.texts[-1] == "live"
    assert [message.missed for message in second.heard] == [True] * 11 + [False]


async def test_what_the_receiver_knows_is_not_shown_again(ircd: IRCd, come: Come, way: str) -> None:
    """The mark may lag behind what is on disk."""
    notebook = Notebook()
    async with registered(ircd.port, "spark-ori") as ori:
        await ori.join("#general")
        first = await come(ircd.port, "spark-ada", ["#general"], cursor=notebook)
        for text in ("one", "two"):
            await ori.ask(f"PRIVMSG #general :{text}")
            notebook.write(await first.hears(text))
        notebook.mark = ReceiveMark((first.heard[0].msgid,), first.heard[0].timestamp)
        await first.irc.stop()
        await ori.ask("PRIVMSG #general :three")
        second = await come(ircd.port, "spark-ada", ["#general"], cursor=notebook)
        await second.hears("three")
    assert second.texts == ["three"]


async def test_a_text_of_several_lines_is_missed_as_one(ircd: IRCd, come: Come, way: str) -> None:
    notebook = Notebook()
    bob = await come(ircd.port, "spark-bob", ["#general"])
    first = await come(ircd.port, "spark-ada", ["#general"], cursor=notebook)
    await bob.irc.send_privmsg("#general", "before")
    notebook.write(await first.hears("before"))
    await first.irc.stop()
    (msgid,) = await bob.irc.send_privmsg("#general", "one\n\ntwo", {"+agentirc.dev/hops": "2"})
    second = await come(ircd.port, "spark-ada", ["#general"], cursor=notebook)
    heard = await second.hears("one\n\ntwo")
    assert heard.msgid == msgid and heard.missed
    assert heard.tags["+agentirc.dev/hops"] == "2"


async def test_live_ones_wait_for_what_was_missed(ircd: IRCd, come: Come, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = Notebook()
    asked, go_on = asyncio.Event(), asyncio.Event()
    plain = catchup._by_arrival

    async def slowly(*arguments: Any) -> bool:
        asked.set()
        await go_on.wait()
        return await plain(*arguments)

    async with registered(ircd.port, "spark-ori") as ori:
        await ori.join("#general")
        first = await come(ircd.port, "spark-ada", ["#general"], cursor=notebook)
        await ori.ask("PRIVMSG #general :before")
        notebook.write(await first.hears("before"))
        await first.irc.stop()
        await ori.ask("PRIVMSG #general :missed")
        monkeypatch.setattr(catchup, "_by_arrival", slowly)
        second = await come(ircd.port, "spark-ada", ["#general"], cursor=notebook, wait=False)
        starting = asyncio.create_task(second.irc.start())
        await asked.wait()
        await ori.ask("PRIVMSG #general :live")
        await second.irc.request("PING", "here")
        assert second.texts == []
        go_on.set()
        await starting
    assert second.texts == ["missed", "live"]


async def test_more_than_can_wait_is_fetched_as_well(ircd: IRCd, come: Come, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("culture.transport.dedup._MAX_HELD", 2)
    notebook = Notebook()
    rounds = 0
    plain = catchup._by_arrival

    async def busily(session: Any, *more: Any) -> bool:
        nonlocal rounds
        rounds += 1
        done = await plain(session, *more)
        if rounds == 1:
            for number in range(5):
                await ori.ask(f"PRIVMSG #general :live {number}")
            await session.barrier()
        return done

    async with registered(ircd.port, "spark-ori") as ori:
        await ori.join("#general")
        first = await come(ircd.port, "spark-ada", ["#general"], cursor=notebook)
        await ori.ask("PRIVMSG #general :before")
        notebook.write(await first.hears("before"))
        await first.irc.stop()
        await ori.ask("PRIVMSG #general :missed")
        monkeypatch.setattr(catchup, "_by_arrival", busily)
        second = await come(ircd.port, "spark-ada", ["#general"], cursor=notebook)
    assert rounds == 2
    assert second.texts == ["missed", *(f"live {number}" for number in range(5))]


async def test_history_that_cannot_be_read_yet_is_read_later(
    ircd: IRCd, come: Come, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook = Notebook()
    plain = catchup._by_arrival
    tries = 0

    async def at_last(*arguments: Any) -> bool:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise catchup.HistoryUnavailable("the database sleeps")
        return await plain(*arguments)

    async with registered(ircd.port, "spark-ori") as ori:
        await ori.join("#general")
        first = await come(ircd.port, "spark-ada", ["#general"], cursor=notebook)
        await ori.ask("PRIVMSG #general :before")
        notebook.write(await first.hears("before"))
        await first.irc.stop()
        await ori.ask("PRIVMSG #general :missed")
        monkeypatch.setattr(catchup, "_by_arrival", at_last)
        second = await come(ircd.port, "spark-ada", ["#general"], cursor=notebook)
        await ori.ask("PRIVMSG #general :live")
        await second.hears("missed")
    assert second.texts == ["live", "missed"]


@pytest.mark.parametrize("cursor", [None, Notebook()])
async def test_a_connection_lost_while_history_sleeps_does_not_make_anything_missed_for_good(
    ircd: IRCd, come: Come, monkeypatch: pytest.MonkeyPatch, cursor: Notebook | None
) -> None:
    async def asleep(*_: Any) -> bool:
        raise catchup.HistoryUnavailable("the database sleeps")

    async with registered(ircd.port, "spark-ori") as ori, proxied(ircd.port) as way:
        await ori.join("#general")
        ada = await come(way.port, "spark-ada", ["#general"], cursor=cursor)
        for times, text in enumerate(("before", "live"), 1):
            await ori.ask(f"PRIVMSG #general :{text}")
            heard = await ada.hears(text)
            if cursor is not None:
                cursor.write(heard)
            way.cut()
            await ada.until(lambda: not ada.irc.connected)
            if text == "before":
                await ori.ask("PRIVMSG #general :missed")
                monkeypatch.setattr(catchup, "_by_arrival", asleep)
            else:
                assert ada.irc.mark.msgids == (ada.heard[0].msgid,)
                monkeypatch.undo()
            way.heal()
            await ada.connected(times=times + 1)
    assert ada.texts == ["before", "live", "missed"]


async def test_who_was_told_too_much_at_once_while_history_sleeps_goes_on_hearing(
    ircd: IRCd, come: Come, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What could not be held is missed as well; nothing waits for a release that never comes."""
    monkeypatch.setattr("culture.transport.dedup._MAX_HELD", 2)
    notebook = Notebook()
    plain = catchup._by_arrival
    tries = 0

    async def at_last(session: Any, *more: Any) -> bool:
        nonlocal tries
        tries += 1
        if tries == 1:
            for number in range(3):
                await ori.ask(f"PRIVMSG #general :too much {number}")
            await session.barrier()
            raise catchup.HistoryUnavailable("the database sleeps")
        return await plain(session, *more)

    async with registered(ircd.port, "spark-ori") as ori:
        await ori.join("#general")
        first = await come(ircd.port, "spark-ada", ["#general"], cursor=notebook)
        await ori.ask("PRIVMSG #general :before")
        notebook.write(await first.hears("before"))
        await first.irc.stop()
        monkeypatch.setattr(catchup, "_by_arrival", at_last)
        second = await come(ircd.port, "spark-ada", ["#general"], cursor=notebook)
        await second.hears("too much 2")
        while second.irc.is_behind:
            await second.irc.request("PING", "here")
        await ori.ask("PRIVMSG #general :live")
        await second.hears("live")
    assert second.texts == [*(f"too much {number}" for number in range(3)), "live"]


@pytest.mark.fault("E22")
async def test_what_came_late_from_another_server_is_not_missed(tmp_path: Path, come: Come) -> None:
    """It has an older time than what was received last, and came here while nobody listened."""
    notebook = Notebook()
    async with mesh(tmp_path, ["spark", "thor"], [("thor", "spark")]) as servers:
        await servers.linked()
        port = servers.members["spark"].port
        first = await come(port, "spark-ada", ["#general"], cursor=notebook)
        bob = await come(servers.members["thor"].port, "thor-bob", ["#general"])
        ori = await come(port, "spark-ori", ["#general"])
        servers.proxy("thor", "spark").cut()
        await servers.reaches("spark", ["spark"])
        await servers.reaches("thor", ["thor"])
        await bob.irc.send_privmsg("#general", "@spark-ada this is older")
        await ori.irc.send_privmsg("#general", "newer")
        notebook.write(await first.hears("newer"))
        await first.irc.stop()
        servers.proxy("thor", "spark").heal()
        await ori.hears("@spark-ada this is older")
        second = await come(port, "spark-ada", ["#general"], cursor=notebook)
        heard = await second.hears("@spark-ada this is older")
    assert heard.missed and heard.mentions == ("spark-ada",)
    assert heard.timestamp <= notebook.pages[first.heard[-1].msgid].timestamp
    assert second.texts == ["@spark-ada this is older"]


def message(number: int, msgid: str = "") -> Message:
    return Message("#general", "spark-ori", str(number), datetime.fromtimestamp(number, UTC), msgid or f"m{number}")


def test_a_mark_is_made_of_the_newest() -> None:
    delivery = Delivery(None, None)
    assert delivery.mark is None
    for number in (*range(20), 5):
        delivery.take_live(message(number))
    delivery.take_live(message(30, f"{LOCAL}x"))
    assert delivery.mark == ReceiveMark(
        tuple(f"m{number}" for number in range(19, 11, -1)), datetime.fromtimestamp(30, UTC)
    )


def test_each_message_is_delivered_once_and_memory_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("culture.transport.dedup._MAX_SEEN", 10)
    heard: list[Message] = []
    delivery = Delivery(heard.append, None)
    for number in [*range(50), *range(45, 50)]:
        delivery.take_live(message(number))
    assert [each.text for each in heard] == [str(number) for number in range(50)]
    assert len(delivery._seen_ids) == 10


@pytest.mark.fault("D8", "E22")
async def test_who_was_called_on_the_other_side_of_a_split_is_called_when_it_ends(tmp_path: Path, come: Come) -> None:
    """Where it was said nobody knew then that they are in the channel, so no server says whom it calls."""
    async with mesh(tmp_path, ["spark", "thor"], [("thor", "spark")]) as servers:
        await servers.linked()
        ada = await come(servers.members["spark"].port, "spark-ada", ["#general"])
        bob = await come(servers.members["thor"].port, "thor-bob", ["#general"])
        servers.proxy("thor", "spark").cut()
        await servers.reaches("thor", ["thor"])
        for text in ("@spark-ada look", "@thor-bob and spark-ada: no", "@spark-adam, no"):
            await bob.irc.send_privmsg("#general", text)
        servers.proxy("thor", "spark").heal()
        assert (await ada.hears("@spark-ada look")).mentions == ("spark-ada",)
        assert "spark-ada" not in (await ada.hears("@thor-bob and spark-ada: no")).mentions
        assert (await ada.hears("@spark-adam, no")).mentions == ()
