"""The logger on a real server: what is in the files, and what never is."""

import stat
from pathlib import Path

import pytest

from culture.config import paths
from culture.config.model import ServerConfig
from culture.protocol.modes import ModeChange
from culture.server.events import Joined, ModeSet, Said
from culture.server.ircd import IRCd
from culture.skills.logger import Logger
from tests.skills.logger.conftest import Logging
from tests.support.client import Client, registered
from tests.support.clock import Clock
from tests.support.servers import config_for

DAY = "2027-01-15"  # of the tests' clock


def read(folder: Path, channel: str = "a", day: str = DAY) -> list[str]:
    """The lines of a log, each without its day."""
    lines = (folder / channel / f"{day}.log").read_text(encoding="utf-8").split("\n")
    assert lines.pop() == ""
    assert all(line.startswith(f"{day} ") for line in lines)
    return [line.removeprefix(f"{day} ") for line in lines]


def texts(lines: list[str]) -> list[str]:
    return [line.partition("\t")[2] for line in lines]


async def host_of(client: Client) -> str:
    """``user@host`` as others see it."""
    [who] = [each for each in await client.ask(f"WHO {client.nick}") if each.verb == "352"]
    return f"{who.params[2]}@{who.params[3]}"


@pytest.mark.requirement("D11")
async def test_a_day_in_a_channel(logging: Logging) -> None:
    clock = Clock()
    async with logging(clock) as (ircd, skill), registered(ircd.port, "spark-ori") as ori:
        await ori.join("#a")
        async with registered(ircd.port, "spark-ada") as ada:
            await ada.join("#A")
            clock.now += 61
            await ori.ask("PRIVMSG #a :hello")
            await ori.ask("PRIVMSG #a :\x01ACTION waves\x01")
            await ori.ask("NOTICE #a :beware")
            await ori.ask("TOPIC #a :plans")
            await ori.ask("MODE #a +v spark-ada")
            await ada.ask("NICK spark-bee")
            await ori.ask("KICK #a spark-bee :enough")
            await ada.ask("JOIN #a")
            await ada.ask("PART #a :tea")
            await ada.ask("JOIN #a")
            ada.send("QUIT :bye")
            await ada.ended()
        await ori.sync()
        address = await host_of(ori)
        await skill.flush()
        assert read(skill.folder) == [
            f"08:00:00\t-->\tspark-ori ({address}) has joined #a",
            f"08:00:00\t-->\tspark-ada ({address}) has joined #a",
            "08:01:01\tspark-ori\thello",
            "08:01:01\t *\tspark-ori waves",
            "08:01:01\t--\tNotice(spark-ori): beware",
            "08:01:01\t--\tspark-ori has changed the topic of #a to: plans",
            "08:01:01\t--\tMode #a [+v spark-ada] by spark-ori",
            "08:01:01\t--\tspark-ada is now known as spark-bee",
            "08:01:01\t<--\tspark-ori has kicked spark-bee (enough)",
            f"08:01:01\t-->\tspark-bee ({address}) has joined #a",
            f"08:01:01\t<--\tspark-bee ({address}) has left #a (tea)",
            f"08:01:01\t-->\tspark-bee ({address}) has joined #a",
            f"08:01:01\t<--\tspark-bee ({address}) has quit (Quit: bye)",
        ]


async def test_what_was_queued_is_in_the_files_when_the_server_has_stopped(logging: Logging) -> None:
    async with logging(Clock()) as (ircd, skill), registered(ircd.port, "spark-ori") as ori:
        await ori.join("#a")
        for number in range(500):
            ori.send(f"PRIVMSG #a :{number}")
        await ori.sync()
    assert texts(read(skill.folder))[1:] == [f"spark-ori\t{number}" for number in range(500)]


async def test_what_is_not_for_everybody_is_in_no_log(logging: Logging) -> None:
    caps = "message-tags echo-message draft/message-redaction"
    async with logging(Clock()) as (ircd, skill), registered(ircd.port, "spark-ori", caps) as ori:
        await ori.join("#a")
        async with registered(ircd.port, "spark-ada") as ada:
            await ada.join("#a")
            await ori.sync()
            [private] = await ori.ask("PRIVMSG spark-ada :secret-1")
            await ori.ask("NOTICE spark-ada :secret-2")
            await ori.ask("PRIVMSG @#a :secret-3")
            await ori.ask("@+draft/reply=secret-4 TAGMSG #a")
            await ori.ask(f"REDACT spark-ada {private.tags['msgid']} :secret-5")
            await ori.ask("AWAY :secret-6")
            await ori.ask("INVITE spark-ada #b")
            await ori.ask("MODE #a +k secret-7")
            await ori.ask("PRIVMSG #a :open")
    written = "".join(path.read_text() for path in skill.folder.rglob("*.log"))
    assert "secret" not in written
    assert "\topen\n" in written
    assert [path.name for path in skill.folder.iterdir()] == ["a"]


async def test_a_message_of_several_lines_reads_as_one(logging: Logging) -> None:
    caps = "batch message-tags draft/multiline"
    async with logging(Clock()) as (ircd, skill), registered(ircd.port, "spark-ori", caps) as ori:
        await ori.join("#a")
        ori.send("BATCH +1 draft/multiline #a")
        ori.send("@batch=1 PRIVMSG #a :one")
        ori.send("@batch=1 PRIVMSG #a :two")
        ori.send("@batch=1;draft/multiline-concat PRIVMSG #a : halves")
        await ori.ask("BATCH -1")
    assert texts(read(skill.folder))[1:] == ["spark-ori\tone", " |\ttwo halves"]


async def test_a_message_taken_back_is_noted(logging: Logging) -> None:
    caps = "message-tags echo-message draft/message-redaction"
    async with logging(Clock()) as (ircd, skill), registered(ircd.port, "spark-ori", caps) as ori:
        await ori.join("#a")
        [said] = await ori.ask("PRIVMSG #a :oops")
        await ori.ask(f"REDACT #a {said.tags['msgid']} :typo")
    assert texts(read(skill.folder))[1:] == [
        "spark-ori\toops",
        f"--\tspark-ori took back what spark-ori said at {DAY} 08:00:00 (typo)",
    ]


async def test_nobody_forges_a_line(logging: Logging) -> None:
    forged = f"{DAY} 08:00:00\tspark-ada\tI did it"
    async with logging(Clock()) as (ircd, skill), registered(ircd.port, "spark-ori") as ori:
        await ori.join("#a")
        await ori.ask(f"PRIVMSG #a :hm\x85{forged}\u2028{forged}\x0b\x0c\x1b[1A{forged}")
        await ori.ask(f"TOPIC #a :t\x85{forged}")
        await ori.ask(f"PART #a :r\u2028{forged}")
        # What no client can send here may still come from elsewhere.
        skill.on_channel(Joined(skill.host.stamp(), f"x!y\r\n{forged}@z", "#a"))
        skill.on_channel(ModeSet(skill.host.stamp(), "x", "#a", (ModeChange(True, "b", f"\n{forged}"),)))
        skill.on_said(Said(skill.host.stamp(), "x!y@z", "PRIVMSG", "#a", f"\r{forged}", None, "human", {}, (), "", ()))
    lines = texts(read(skill.folder))
    assert len(lines) == 7
    assert [line for line in lines if line.startswith("spark-ada")] == []
    assert len((skill.folder / "a" / f"{DAY}.log").read_text().splitlines()) == 7


async def test_names_of_channels_lead_nowhere_else(logging: Logging) -> None:
    channels = ["#..", "#../../../etc/x", "#/etc/passwd", "#.git", "#A", "#a%2f", "#a/", "#\\", "#日本", "#é"]
    async with logging(Clock()) as (ircd, skill), registered(ircd.port, "spark-ori") as ori:
        for channel in [*channels, "#" + "é" * 31]:
            assert "JOIN" in [each.verb for each in await ori.join(channel)]
    found = sorted(str(path.relative_to(skill.folder)) for path in skill.folder.rglob("*.log"))
    assert len(found) == len(channels) + 1
    assert all(path.count("/") == 1 and path.endswith(f"/{DAY}.log") for path in found)
    assert f"日本/{DAY}.log" in found
    beside = {path.name for path in skill.folder.parent.iterdir()}
    assert beside <= {"logs", "data", "accounts.json", "accounts.json.lock"}


async def test_files_and_folders_are_for_their_owner_alone(logging: Logging) -> None:
    async with logging(Clock()) as (ircd, skill), registered(ircd.port, "spark-ori") as ori:
        await ori.join("#a")
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in [skill.folder, *skill.folder.rglob("*")]}
    assert modes == {
        skill.folder: 0o700,
        skill.folder / "a": 0o700,
        skill.folder / "a" / f"{DAY}.log": 0o600,
    }


async def test_midnight_begins_a_file_by_the_time_of_the_message(logging: Logging) -> None:
    clock = Clock()
    clock.now += 57_599  # 23:59:59
    async with logging(clock) as (ircd, skill), registered(ircd.port, "spark-ori") as ori:
        await ori.join("#a")
        await ori.ask("PRIVMSG #a :today")
        clock.now += 1
        await ori.ask("PRIVMSG #a :tomorrow")
        clock.now += 86_400
    assert read(skill.folder)[1:] == ["23:59:59\tspark-ori\ttoday"]
    assert read(skill.folder, day="2027-01-16") == ["00:00:00\tspark-ori\ttomorrow"]


async def test_only_the_channels_that_are_named(logging: Logging) -> None:
    async with logging(Clock(), channels=("#A",)) as (ircd, skill), registered(ircd.port, "spark-ori") as ori:
        await ori.join("#a,#b")
        await ori.ask("PRIVMSG #a,#b :hello")
        await ori.ask("NICK spark-owl")
    assert [path.name for path in skill.folder.iterdir()] == ["a"]
    assert len(read(skill.folder)) >= 3


@pytest.mark.requirement("D11")
async def test_files_that_were_rotated_away_are_begun_anew(logging: Logging) -> None:
    async with logging(Clock()) as (ircd, skill), registered(ircd.port, "spark-ori") as ori:
        await ori.join("#a")
        await skill.flush()
        file = skill.folder / "a" / f"{DAY}.log"
        file.rename(file.with_suffix(".log.1"))
        await ori.ask("PRIVMSG #a :after")
        await skill.flush()
        assert texts(read(skill.folder)) == ["spark-ori\tafter"]
        file.unlink()
        await ori.ask("PRIVMSG #a :again")
        await skill.flush()
        assert texts(read(skill.folder)) == ["spark-ori\tagain"]


async def test_it_is_off_unless_it_is_wanted_and_has_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CULTURE_HOME", str(tmp_path / "home"))
    assert ServerConfig(name="spark").logger.enabled is False
    ircd = IRCd(config_for(tmp_path, logger={"enabled": True}))
    async with ircd.running():
        skill = ircd.parts.skills.get("logger")
        assert isinstance(skill, Logger)
        assert skill.folder == paths.home() / "log" / "spark"
