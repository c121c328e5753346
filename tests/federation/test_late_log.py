"""A server starts while the log of its links cannot be opened: people talk, and peers get it when the log is open."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from culture.config.links import LinkConfig
from culture.config.model import Listen, Operator
from culture.federation import log as module
from culture.federation.log import EventLog
from culture.federation.logfile import Held
from culture.protocol.message import Message
from culture.server.core.ids import EventId
from culture.server.ircd import IRCd
from tests.federation.raw import SECRET, mesh_of, raw_peer
from tests.support.client import Client, registered
from tests.support.lockholder import locked
from tests.support.ports import reserved
from tests.support.servers import serving
from tests.support.small_disk import fill, small_disk
from tests.support.waiting import until

CAPS = "message-tags echo-message agentirc.dev/receipts"
OPERATORS = (Operator(name="root", password="very-secret"),)
LOG = "log.db"


def is_receipt(line: Message) -> bool:
    return line.verb == "TAGMSG" and line.tags.get("agentirc.dev/receipt") == "stored"


@asynccontextmanager
async def on_a_full_disk(stack: AsyncExitStack, folder: Path, settings: Any) -> AsyncIterator[Path]:
    """The folder of a server that has run before, whose disk is full while in here."""
    disk = stack.enter_context(small_disk(folder))
    async with serving(disk, **settings):
        pass
    ballast = fill(disk)
    yield disk
    ballast.unlink()


@asynccontextmanager
async def with_a_locked_log(stack: AsyncExitStack, folder: Path, settings: Any) -> AsyncIterator[Path]:
    """The same, where somebody else has locked the file: the history can be written."""
    async with serving(folder, **settings):
        pass
    async with locked(folder / "data" / "federation" / LOG):
        yield folder


@pytest.mark.parametrize("trouble", [on_a_full_disk, with_a_locked_log])
async def test_what_is_said_meanwhile_is_confirmed_and_told_to_peers_when_the_log_is_open(
    tmp_path: Path, trouble: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async with AsyncExitStack() as stack:
        port = stack.enter_context(reserved())
        thor = await stack.enter_async_context(
            serving(
                tmp_path / "thor",
                name="thor",
                listen=(Listen(port=port),),
                links=(LinkConfig(name="spark", secret=SECRET),),
            )
        )
        ada = await stack.enter_async_context(registered(thor.port, "thor-ada"))
        await ada.join("#x")
        links = (LinkConfig(name="thor", secret=SECRET, address=f"127.0.0.1:{port}"),)
        settings = {"links": links, "operators": OPERATORS}
        async with trouble(stack, tmp_path / "spark", settings) as folder:
            spark = await stack.enter_async_context(serving(folder, **settings))
            root = await stack.enter_async_context(registered(spark.port, "spark-root"))
            root.send("OPER root :very-secret")
            await root.expect("381")
            ori = await stack.enter_async_context(registered(spark.port, "spark-ori", CAPS))
            await ori.join("#x")
            await root.join("#x")
            ori.send("PRIVMSG #x :early")
            await root.expect("PRIVMSG", "#x", "early")
            await _is_turned_away(stack, spark)
            await until(lambda: "nothing can be kept at present" in caplog.text)  # the history has tried
            assert not spark.parts.skills.off
            assert not mesh_of(spark).log.is_open
            assert not any(map(is_receipt, await ori.sync()))
        await root.expect("NOTICE", where=lambda line: "the log of the links is open" in line.params[-1])
        await ori.expect("TAGMSG", where=is_receipt)
        await ada.expect("PRIVMSG", "#x", "early")
        ori.send("PRIVMSG #x :late")
        await ada.expect("PRIVMSG", "#x", "late")
        await ori.expect("TAGMSG", where=is_receipt)
    told = [text for text in caplog.messages if "there are no links yet" in text]
    assert len(told) == 1 and str(Path("federation") / LOG) in told[0]


async def _is_turned_away(stack: AsyncExitStack, ircd: IRCd) -> None:
    """A peer that dials meanwhile hears that it is too early, not that its secret is wrong."""
    peer = await stack.enter_async_context(raw_peer(ircd))
    peer.greet()
    assert (await peer.expect("ERROR")).params == ("What you say cannot be kept here at present",)


async def test_a_log_that_is_never_opened_confirms_nothing_at_the_end(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings: dict[str, Any] = {"links": (LinkConfig(name="thor", secret=SECRET),), "limits": {"shutdown_timeout": 1.0}}
    async with AsyncExitStack() as stack, with_a_locked_log(stack, tmp_path, settings) as folder:
        async with serving(folder, **settings) as ircd:
            ori: Client = await stack.enter_async_context(registered(ircd.port, "spark-ori", CAPS))
            await ori.join("#x")
            ori.send("PRIVMSG #x :early")
            await ori.sync()
        async with serving(folder) as ircd, registered(ircd.port, "spark-bob") as bob:
            await bob.join("#x")
            assert not any("early" in line.params for line in await bob.ask("HISTORY RECENT #x 10"))
    assert not any(map(is_receipt, ori.seen))
    assert any("could not be written" in text for text in caplog.messages)


async def test_a_log_that_cannot_be_read_at_all_switches_the_links_off_and_nobody_waits(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"links": (LinkConfig(name="thor", secret=SECRET),)}
    async with serving(tmp_path, **settings):
        pass
    database = tmp_path / "data" / "federation" / LOG
    database.with_name(f"{LOG}-wal").unlink(missing_ok=True)  # else it is mended with that
    database.write_bytes(b"no database " * 1_000)
    async with serving(tmp_path, **settings) as ircd, registered(ircd.port, "spark-ori", CAPS) as ori:
        assert "federation" in ircd.parts.skills.off
        await ori.join("#x")
        ori.send("PRIVMSG #x :early")
        await ori.expect("TAGMSG", where=is_receipt)


async def test_changes_made_before_the_file_is_open_come_behind_what_is_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MOST", 4)
    first = EventLog(tmp_path / LOG, lambda: None, lambda text: None)
    first.open("own")
    last = first.append(EventId("spark", "e", 1, 1.0), "#x", "@id=spark.e.1 one")
    first.hold(Held("spark.e.2", "odin", "before", 1.0))
    first.close(5)
    log = EventLog(tmp_path / LOG, lambda: None, lambda text: None)
    log.append(EventId("spark", "e", 3, 2.0), "#x", "@id=spark.e.3 three")
    log.hold(Held("spark.e.4", "odin", "after", 2.0))
    log.blank("spark.e.1")
    log.append(EventId("spark", "e", 5, 2.0), "#x", "@id=spark.e.5 five")
    log.append(EventId("spark", "e", 6, 2.0), "#x", "@id=spark.e.6 six")
    assert not log.has_room and not log.await_written(0)
    log.open("own")
    assert log.await_written(5)
    await until(lambda: log.written == log.taken)
    log.note_unkept()
    assert log.await_written(5)
    assert [held.data for held in log.held["odin"].values()] == ["before", "after"]
    assert log.held_size == len("beforeafter")
    assert [log.seen.knows("spark", "e", seq) for seq in (1, 2, 3, 5)] == [True, False, True, True]
    entries = await log.after(0, 10)
    assert [entry.data for entry in entries] == ["@id=spark.e.3 three", "@id=spark.e.5 five"]
    assert last < entries[0].position < entries[1].position < log.position
    assert await log.missing(last) == 1
    log.close(5)
