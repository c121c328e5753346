"""The logger when the disk is full, slow or gone: the server goes on, memory is bounded, operators know."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from culture.config.model import Operator
from culture.server.ircd import IRCd
from culture.skills.logger import skill as logger_skill
from culture.skills.logger import writer
from tests.skills.logger.conftest import Disk, Logging
from tests.support.client import Client, registered
from tests.support.clock import Clock

DAY = "2027-01-15"
OPERATORS = {"server": {"operators": (Operator(name="root", password="pw"),)}}


@asynccontextmanager
async def operator(ircd: IRCd) -> AsyncIterator[Client]:
    async with registered(ircd.port, "spark-op") as client:
        client.send("OPER root pw")
        await client.expect("381")
        yield client


async def told(client: Client, words: str) -> str:
    """The notice to operators that has these words."""
    notice = await client.expect("NOTICE", where=lambda each: words in each.params[-1])
    return notice.params[-1]


@pytest.mark.requirement("D11")
@pytest.mark.usefixtures("impatient")
async def test_a_full_disk(logging: Logging, small_disk: Disk) -> None:
    folder = small_disk.folder / "logs"
    async with logging(Clock(), folder=str(folder), **OPERATORS) as (ircd, skill), operator(ircd) as op:
        async with registered(ircd.port, "spark-ori") as ori, registered(ircd.port, "spark-ada") as ada:
            await ori.join("#a")
            await ada.join("#a")
            for number in range(200):
                ori.send(f"PRIVMSG #a :{number} {'x' * 300}")
            await ori.sync()
            heard = [each for each in await ada.sync() if each.verb == "PRIVMSG"]
            assert len(heard) == 200
            assert "cannot write" in await told(op, "kept in memory")
            await ori.ask("PRIVMSG #a :still here")
            small_disk.grow()
            assert "no lines were lost" in await told(op, "written again")
            assert [each for each in await op.sync() if each.verb == "NOTICE"] == []
            assert ircd.parts.skills.off == {}
        await skill.flush()
        lines = (folder / "a" / f"{DAY}.log").read_text().splitlines()
    spoken = [line.split("\t")[2].split(" ")[0] for line in lines if line.split("\t")[1] == "spark-ori"]
    assert spoken == [*map(str, range(200)), "still"]


@pytest.mark.usefixtures("impatient")
async def test_a_folder_that_cannot_be_made(logging: Logging, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    folder = tmp_path / "file" / "logs"
    async with logging(Clock(), folder=str(folder), **OPERATORS) as (ircd, _), operator(ircd) as op:
        await op.join("#a")
        assert str(tmp_path / "file") + ": File exists" in await told(op, "cannot write")
        (tmp_path / "file").unlink()
        await told(op, "written again")
        assert "has joined #a" in (folder / "a" / f"{DAY}.log").read_text()


async def test_what_is_lost_with_the_server_is_said(
    logging: Logging, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("in the way")
    folder = str(tmp_path / "file")
    async with logging(Clock(), folder=folder) as (ircd, _), registered(ircd.port, "spark-ori") as ori:
        await ori.join("#a")
        await ori.ask("PRIVMSG #a :one")
        await ori.ask("PRIVMSG #a :two")
        await ori.ask("PART #a")
    assert "4 lines could not be written and are lost" in caplog.text


class Stuck:
    """A disk that does not answer until it is let go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked = threading.Event()
        self.free = threading.Event()
        monkeypatch.setattr(writer.Files, "write", self._write_later(writer.Files.write))

    def _write_later(self, write):  # type: ignore[no-untyped-def]
        def stuck(files, lines, now=False):  # type: ignore[no-untyped-def]
            self.asked.set()
            assert self.free.wait(30)
            write(files, lines, now)

        return stuck


async def test_a_disk_that_hangs_costs_bounded_memory(logging: Logging, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logger_skill, "_MOST", 10)
    disk = Stuck(monkeypatch)
    try:
        async with logging(Clock(), **OPERATORS) as (ircd, skill), operator(ircd) as op:
            await op.join("#a")
            assert await asyncio.to_thread(disk.asked.wait, 10)
            for number in range(25):
                op.send(f"PRIVMSG #a :{number}")
            await told(op, "too slow for the log")
            await op.sync()
            assert len(skill._pending) == 10
            disk.free.set()
            assert "15 lines were lost" in await told(op, "caught up")
            await skill.flush()
            written = (skill.folder / "a" / f"{DAY}.log").read_text().splitlines()
            assert [line.split("\t")[2] for line in written][1:] == [*map(str, range(10))]
    finally:
        disk.free.set()


async def test_a_disk_that_hangs_does_not_hold_up_the_end(
    logging: Logging, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(logger_skill, "_WRITE_PATIENCE", 0.05)
    disk = Stuck(monkeypatch)
    try:
        async with logging(Clock()) as (ircd, _), registered(ircd.port, "spark-ori") as ori:
            await ori.join("#a")
            assert await asyncio.to_thread(disk.asked.wait, 10)
        assert "the disk does not respond" in caplog.text
    finally:
        disk.free.set()


async def test_a_mistake_of_ours_switches_it_off_and_nothing_else(
    logging: Logging, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: object) -> str:
        raise RuntimeError("a bug")

    monkeypatch.setattr(writer, "clean", broken)
    async with logging(Clock(), **OPERATORS) as (ircd, _), operator(ircd) as op:
        await op.join("#a")
        assert "switched off" in await told(op, "the skill logger failed")
        assert ircd.parts.skills.get("logger") is None
        assert "351" in [each.verb for each in await op.ask("VERSION")]
