"""Whatever happens to the process, the disk or the file: what was called stored is there, and people can talk."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from culture.config.links import LinkConfig
from culture.config.model import Operator
from culture.config.skills import Embeddings, HistoryConfig
from culture.federation import log as federation_log
from culture.federation import messages
from culture.federation.backfill import id_of
from culture.federation.log import EventLog
from culture.federation.logfile import Entry
from culture.federation.mesh import Mesh
from culture.protocol.message import Message
from culture.server.ircd import IRCd
from culture.skills.history.sqlite import SQLiteStore
from culture.skills.history.store import Arrival
from tests.federation.raw import mesh_of
from tests.skills.history import playing
from tests.support.client import Client, registered
from tests.support.lockholder import locked
from tests.support.servers import serving
from tests.support.small_disk import fill, small_disk
from tests.support.storm import kill_again_and_again
from tests.support.waiting import PATIENCE, until

pytestmark = pytest.mark.requirement("D06")


@pytest.mark.fault("B12")
async def test_what_was_receipted_survives_kill_9(tmp_path: Path) -> None:
    storm = await kill_again_and_again(tmp_path, kills=4, messages=400, clients=5, seed=4)
    assert storm.kills == 4
    assert len(storm.receipted) > 100
    assert storm.check() >= len(storm.receipted)


CAPS = "message-tags agentirc.dev/receipts"
OPERATORS = (Operator(name="root", password="very secret"),)
LINKS = (LinkConfig(name="thor", secret="known-to-both"),)


async def operator(stack: AsyncExitStack, ircd: IRCd) -> Client:
    client = await stack.enter_async_context(registered(ircd.port, "spark-root"))
    client.send("OPER root :very secret")
    await client.expect("381")
    return client


def is_receipt(message: Message) -> bool:
    return message.verb == "TAGMSG" and message.tags.get("agentirc.dev/receipt") == "stored"


def texts(messages: list[Message]) -> list[str]:
    return [message.params[-1] for message in messages if message.verb in ("PRIVMSG", "HISTORY")]


def says(text: str) -> Callable[[Message], bool]:
    return lambda message: text in message.params[-1]


@pytest.mark.fault("B11")
async def test_a_locked_file_withholds_receipts_and_nothing_else(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        ircd = await stack.enter_async_context(serving(tmp_path, operators=OPERATORS))
        root = await operator(stack, ircd)
        ori = await stack.enter_async_context(registered(ircd.port, "spark-ori", CAPS))
        bob = await stack.enter_async_context(registered(ircd.port, "spark-bob"))
        await ori.join("#x")
        await bob.join("#x")
        async with locked(tmp_path / "data" / "history" / "history.db"):
            ori.send("PRIVMSG #x :while it was locked")
            assert (await bob.expect("PRIVMSG")).params[1] == "while it was locked"
            await root.expect("NOTICE", where=says("nothing can be kept at present: database is locked"))
            assert [message for message in await ori.sync() if is_receipt(message)] == []
        await root.expect("NOTICE", where=says("messages are kept again"))
        receipt = await ori.expect("TAGMSG", where=is_receipt)
        rows = await bob.ask("HISTORY RECENT #x 5")
        assert texts(rows)[:1] == ["while it was locked"]
        assert receipt.params == ("spark-ori",)


@pytest.mark.parametrize("file", ["history/history.db", "history/history.db-wal", "federation/log.db"])
async def test_a_file_that_was_deleted_withholds_receipts_until_it_is_back(tmp_path: Path, file: str) -> None:
    """SQLite would go on writing in what nobody will ever find."""
    async with AsyncExitStack() as stack:
        ircd = await stack.enter_async_context(serving(tmp_path, operators=OPERATORS, links=LINKS))
        root = await operator(stack, ircd)
        ori = await stack.enter_async_context(registered(ircd.port, "spark-ori", CAPS))
        await ori.join("#x")
        ori.send("PRIVMSG #x :before")
        await ori.expect("TAGMSG", where=is_receipt)
        deleted, aside = tmp_path / "data" / file, tmp_path / "aside"
        deleted.rename(aside)
        ori.send("PRIVMSG #x :while it was away")
        told = f"{deleted} was deleted or replaced: put it back"
        await root.expect("NOTICE", where=lambda line: says("kept at present")(line) and says(told)(line))
        assert [message for message in await ori.sync() if is_receipt(message)] == []
        deleted.touch()  # another one in its place is not the one
        ori.send("PRIVMSG #x :and then")
        await root.sync()
        assert [message for message in await ori.sync() if is_receipt(message)] == []
        aside.rename(deleted)
        for _ in range(2):
            await ori.expect("TAGMSG", where=is_receipt)
    assert {"before", "while it was away", "and then"} <= set(kept(tmp_path))


async def test_a_message_whose_id_another_one_has_gets_no_receipt(tmp_path: Path) -> None:
    """An old file of ids was put back, and not by `culture restore`."""
    ids = tmp_path / "data" / "ids.json"
    async with serving(tmp_path) as ircd, registered(ircd.port, "spark-ori"):
        pass
    old = ids.read_bytes()
    async with serving(tmp_path) as ircd, registered(ircd.port, "spark-ori", CAPS) as ori:
        await ori.join("#x")
        for number in range(20):
            ori.send(f"PRIVMSG #x :{number}")
            await ori.expect("TAGMSG", where=is_receipt)
    ids.write_bytes(old)
    async with AsyncExitStack() as stack:
        ircd = await stack.enter_async_context(serving(tmp_path, operators=OPERATORS))
        ori = await stack.enter_async_context(registered(ircd.port, "spark-ori", CAPS))
        root = await operator(stack, ircd)
        await ori.join("#x")
        ori.send("PRIVMSG #x :new")
        await root.expect("NOTICE", where=says("was an old ids.json put back?"))
        assert [message for message in await ori.sync() if is_receipt(message)] == []
    assert "new" not in kept(tmp_path)


async def test_what_links_have_no_room_for_gets_no_receipt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is here alone, and peers hear of a gap."""
    monkeypatch.setattr(federation_log, "_MOST", 10)
    caps = f"{CAPS} echo-message"
    async with serving(tmp_path, links=LINKS) as ircd, registered(ircd.port, "spark-ori", caps) as ori:
        await ori.join("#x")
        log = mesh_of(ircd).log
        async with locked(tmp_path / "data" / "federation" / "log.db"):
            for number in range(30):
                ori.send(f"PRIVMSG #x :{number}")
            await ori.sync()
        await until(lambda: log.waiting == 0)
        ori.send("PRIVMSG #x :after")
        last = await ori.expect("PRIVMSG", "#x", "after")
        await ori.expect("TAGMSG", where=lambda line: line.tags.get("+draft/reply") == last.tags["msgid"])
        stored = {line.tags["+draft/reply"] for line in ori.seen if is_receipt(line)}
        assert stored == {id_of(entry.data) for entry in await log.after(0, 100) if entry.channel == "#x"}
        assert 0 < len(stored) < 30


@pytest.mark.fault("B10")
async def test_a_full_disk_withholds_receipts_and_nothing_else(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        disk = stack.enter_context(small_disk(tmp_path / "small"))
        ircd = await stack.enter_async_context(serving(disk, operators=OPERATORS))
        root = await operator(stack, ircd)
        ori = await stack.enter_async_context(registered(ircd.port, "spark-ori", CAPS))
        bob = await stack.enter_async_context(registered(ircd.port, "spark-bob"))
        await ori.join("#x")
        await bob.join("#x")
        ballast = fill(disk)
        sent = await _until_told(ori, root)
        assert len(texts(await bob.sync())) == sent, "everybody still hears everything"
        late = [message for message in await ori.sync() if is_receipt(message)]
        assert late == []
        ballast.unlink()
        await root.expect("NOTICE", where=says("messages are kept again"))
        receipts = [message for message in ori.seen if is_receipt(message)]
        while len(receipts) < sent:
            receipts.append(await ori.expect("TAGMSG", where=is_receipt))
        assert len({message.tags["+draft/reply"] for message in receipts}) == sent
        assert len(texts(await bob.ask("HISTORY RECENT #x 1000"))) == sent


async def _until_told(ori: Client, root: Client) -> int:
    """Talk until the operator is told that nothing can be kept; how often."""
    for number in range(1, 1000):
        ori.send(f"PRIVMSG #x :{number} {'x' * 300}")
        await ori.sync()
        if any(says("nothing can be kept at present")(message) for message in await root.sync()):
            return number
    raise AssertionError("nobody was told")


@pytest.mark.fault("B10", "B11")
async def test_what_waits_for_the_disk_is_bounded_and_nobody_is_lied_to(tmp_path: Path) -> None:
    history = HistoryConfig(pending=50, semantic=Embeddings(enabled=False))
    async with AsyncExitStack() as stack:
        ircd = await stack.enter_async_context(serving(tmp_path, operators=OPERATORS, history=history))
        root = await operator(stack, ircd)
        ori = await stack.enter_async_context(registered(ircd.port, "spark-ori", CAPS))
        bob = await stack.enter_async_context(registered(ircd.port, "spark-bob"))
        await ori.join("#x")
        await bob.join("#x")
        await bob.ask("HISTORY RECENT #x 1")  # whatever came before is written
        async with locked(tmp_path / "data" / "history" / "history.db"):
            ori.send("PRIVMSG #x :0")
            await root.expect("NOTICE", where=says("nothing can be kept at present"))
            for number in range(1, 200):
                ori.send(f"PRIVMSG #x :{number}")
            await ori.sync()
            assert texts(await bob.sync()) == [str(number) for number in range(200)]
            await root.expect("NOTICE", where=says("50 messages wait to be kept"))
        await root.expect("NOTICE", where=says("150 messages were lost to the history"))
        while sum(map(is_receipt, ori.seen)) < 50:
            await ori.receive()
        await ori.sync()
        assert sum(map(is_receipt, ori.seen)) == 50
        assert texts(await bob.ask("HISTORY RECENT #x 1000"))[:50] == [str(number) for number in range(50)]


async def test_speakers_wait_for_a_disk_that_is_merely_slow(tmp_path: Path) -> None:
    """Backpressure: everything is kept, though far more is said than may wait."""
    history = HistoryConfig(pending=2000, semantic=Embeddings(enabled=False))
    async with (
        serving(tmp_path, history=history) as ircd,
        registered(ircd.port, "spark-ori", CAPS) as ori,
    ):
        await ori.join("#x")
        for number in range(6000):
            ori.send(f"PRIVMSG #x :{number}")
        await ori.sync()
        while sum(map(is_receipt, ori.seen)) < 6000:
            await ori.receive()
        rows = await ori.ask("HISTORY RECENT #x 1000")
        assert texts(rows)[:1000] == [str(number) for number in range(5000, 6000)]


async def test_what_waited_for_the_store_when_the_server_stopped_is_kept_at_the_next_start(tmp_path: Path) -> None:
    """The log of the links has it."""
    settings: dict[str, Any] = {"links": LINKS, "limits": {"shutdown_timeout": 2.0}}
    stack = AsyncExitStack()
    async with stack:
        ircd = await stack.enter_async_context(serving(tmp_path, **settings))
        ori = await stack.enter_async_context(registered(ircd.port, "spark-ori", CAPS))
        await ori.join("#general")
        async with locked(tmp_path / "data" / "history" / "history.db"):
            ori.send("PRIVMSG #general :while it was locked")
            await ori.sync()
            await stack.aclose()
    async with serving(tmp_path, **settings) as ircd, registered(ircd.port, "spark-ori", CAPS) as ori:
        await until(lambda: "while it was locked" in kept(tmp_path))
        await ori.join("#general")
        assert "while it was locked" in texts(await ori.ask("HISTORY RECENT #general 10"))


async def test_what_the_links_had_not_got_when_the_server_stopped_is_in_no_history(tmp_path: Path) -> None:
    """It was never receipted, and peers would lack it for ever."""
    settings: dict[str, Any] = {"links": LINKS, "limits": {"shutdown_timeout": 2.0}}
    stack = AsyncExitStack()
    async with stack:
        ircd = await stack.enter_async_context(serving(tmp_path, **settings))
        ori = await stack.enter_async_context(registered(ircd.port, "spark-ori", CAPS))
        await ori.join("#general")
        ori.send("PRIVMSG #general :before")
        await ori.expect("TAGMSG", where=is_receipt)
        async with locked(tmp_path / "data" / "federation" / "log.db"):
            ori.send("PRIVMSG #general :while it was locked")
            assert not any(map(is_receipt, await ori.sync()))
            await stack.aclose()
    assert "before" in kept(tmp_path)
    assert "while it was locked" not in kept(tmp_path)


async def test_what_is_told_again_at_a_start_came_before_all_that_comes_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else whoever has seen it, and asks what they missed since, misses what peers told of before."""
    settings: dict[str, Any] = {"links": LINKS, "limits": {"shutdown_timeout": 2.0}}
    stack, has_begun = AsyncExitStack(), asyncio.Event()
    async with stack:
        ircd = await stack.enter_async_context(serving(tmp_path, **settings))
        ori = await stack.enter_async_context(registered(ircd.port, "spark-ori", playing.CAPS))
        await ori.join("#x")
        async with locked(tmp_path / "data" / "history" / "history.db"):
            ori.send("PRIVMSG #x :while it was locked")
            seen = await ori.expect("PRIVMSG", "#x")
            await stack.aclose()
    read = EventLog.since

    async def slowly(log: EventLog, position: int, limit: int) -> list[Entry]:
        with suppress(TimeoutError):
            async with asyncio.timeout(0.2):
                await has_begun.wait()
        return await read(log, position, limit)

    monkeypatch.setattr(EventLog, "since", slowly)
    async with serving(tmp_path, **settings) as ircd, registered(ircd.port, "spark-ori", playing.CAPS) as ori:
        await ori.join("#x")
        ori.send("PRIVMSG #x :after the start")
        later = await ori.expect("PRIVMSG", "#x")
        has_begun.set()
        await until(lambda: {"while it was locked", "after the start"} <= set(kept(tmp_path)))
        assert arrivals(tmp_path, seen.tags["msgid"]) < arrivals(tmp_path, later.tags["msgid"])


@contextmanager
def stored(folder: Path) -> Iterator[SQLiteStore]:
    """The history's file, whoever may read it."""
    store = SQLiteStore(folder / "data" / "history" / "history.db")
    store.open()
    try:
        yield store
    finally:
        store.close()


def kept(folder: Path) -> list[str]:
    with stored(folder) as store:
        return [each.entry.text for each in store.everything()]


def arrivals(folder: Path, msgid: str) -> list[Arrival]:
    with stored(folder) as store:
        return list(store.arrivals(msgid).values())


async def test_links_tell_again_what_the_store_has_not_got_however_long_that_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds, settled = asyncio.Semaphore(0), asyncio.Event()
    monkeypatch.setattr(messages, "_SOON", 0.001)
    monkeypatch.setattr(messages, "_SAFE", -1.0)
    async with serving(tmp_path, links=LINKS) as ircd, registered(ircd.port, "spark-ori", CAPS) as ori:
        mesh = ircd.parts.skills.get("federation")
        assert isinstance(mesh, Mesh)
        await ori.join("#x")
        async with locked(tmp_path / "data" / "history" / "history.db"):
            ori.send("PRIVMSG #x :while it was locked")
            await ori.sync()
            said = mesh.log.position

            def settle(position: int) -> None:
                if position >= said:
                    settled.set()

            monkeypatch.setattr(mesh.log, "settle", settle)
            monkeypatch.setattr(mesh.messages, "ask_owners", lambda before: rounds.release())
            async with asyncio.timeout(PATIENCE):
                for _ in range(5):
                    await rounds.acquire()
            assert not settled.is_set()
        async with asyncio.timeout(PATIENCE):
            await settled.wait()
