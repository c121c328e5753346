"""What was said in an open channel is readable on every server, also where the channel was unknown when it came."""

from pathlib import Path

import pytest

from culture.skills.history.sqlite import SQLiteStore
from tests.federation.meshes import linked
from tests.support.client import Client
from tests.support.mesh import ROOT, Mesh, mesh
from tests.support.oldversion import BEFORE_DOORS, program_of
from tests.support.waiting import until

EDGE = ("spark", "thor")
QUICK = {"ping": "1s", "timeout": "4s"}

pytestmark = [pytest.mark.requirement("E06"), pytest.mark.fault("D8", "D15")]


async def history(client: Client, channel: str) -> list[str]:
    """What HISTORY shows somebody of a channel."""
    return [row.params[-1] for row in await client.ask(f"HISTORY RECENT {channel} 10") if row.verb == "HISTORY"]


async def read(client: Client, channel: str) -> list[str]:
    """The same once they have come into it."""
    await client.join(channel)
    return await history(client, channel)


async def links(client: Client, channel: str) -> list[str]:
    """What URLS shows somebody of a channel."""
    return [row.params[4] for row in await client.ask(f"URLS {channel}") if row.verb == "URLS"]


def kept(data: Path) -> dict[str, bool]:
    """The texts on a server's disk: was the channel closed?"""
    file = data / "history" / "history.db"
    everything = SQLiteStore(file).everything() if file.exists() else ()
    return {each.entry.text: each.entry.closed for each in everything if each.entry.verb == "PRIVMSG"}


async def test_what_was_said_in_the_open_of_a_channel_that_is_unknown_here_is_read(tmp_path: Path) -> None:
    async with linked(tmp_path, EDGE, [EDGE]) as servers:
        ada = await servers.client("thor-ada", "#open", "#shut")
        await servers.whole()
        await servers.cut(*EDGE)
        ada.send("MODE #shut +i")
        for channel in ("#open", "#shut"):
            ada.send(f"PRIVMSG {channel} :said in {channel}")
            ada.send(f"PART {channel}")
        await ada.sync()
        servers.heal(*EDGE)
        await servers.whole()
        ori = await servers.client("spark-ori")
        await until(lambda: len(kept(servers["spark"].parts.config.data_dir)) == 2)
        assert await read(ori, "#open") == ["said in #open"]
        assert await read(ori, "#shut") == []


async def test_what_was_said_behind_doors_that_are_open_by_now_stays_there(tmp_path: Path) -> None:
    async with linked(tmp_path, EDGE, [EDGE]) as servers:
        ada = await servers.client("thor-ada", "#x")
        await servers.whole()
        await servers.cut(*EDGE)
        for line in ("MODE #x +i", "PRIVMSG #x :behind the door", "MODE #x -i", "PRIVMSG #x :in the open"):
            ada.send(line)
        await ada.sync()
        servers.heal(*EDGE)
        await servers.whole()
        ori = await servers.client("spark-ori")
        await until(lambda: len(kept(servers["spark"].parts.config.data_dir)) == 2)
        assert await history(ori, "#x") == ["in the open"]


async def test_links_are_found_as_what_was_said_with_them_is_read(tmp_path: Path) -> None:
    async with linked(tmp_path, EDGE, [EDGE]) as servers:
        ada = await servers.client("thor-ada", "#x", "#empty")
        await servers.whole()
        await servers.cut(*EDGE)
        for line in ("MODE #x +i", "PRIVMSG #x :https://shut.example/", "MODE #x -i"):
            ada.send(line)
        for channel in ("#x", "#empty"):
            ada.send(f"PRIVMSG {channel} :https://open.example/{channel[1:]}")
        ada.send("PART #empty")
        await ada.sync()
        servers.heal(*EDGE)
        await servers.whole()
        ori = await servers.client("spark-ori")
        await until(lambda: len(kept(servers["spark"].parts.config.data_dir)) == 3)
        for channel in ("#x", "#empty"):
            assert await links(ori, channel) == [f"https://open.example/{channel[1:]}"]


async def test_servers_of_both_versions_are_one_mesh_and_the_upgrade_mends_what_was_kept_as_closed(
    tmp_path: Path,
) -> None:
    old, new = program_of(BEFORE_DOORS, tmp_path / "old"), ROOT
    async with mesh(tmp_path, EDGE, [EDGE], federation=QUICK, source=old) as m:
        await m.linked()
        m.proxy(*EDGE).cut()
        await m.reaches("spark", [])
        async with m.client("thor", "thor-ada") as ada:
            for channel in ("#open", "#shut"):
                await ada.join(channel)
            await ada.ask("MODE #shut +s")
            for channel in ("#open", "#shut"):
                await ada.ask(f"PRIVMSG {channel} :before, in {channel}")
        m.proxy(*EDGE).heal()
        await m.linked()
        await until(lambda: len(m.history("spark")) == 2)
        async with m.client("spark", "spark-ori") as ori:
            assert await read(ori, "#open") == await read(ori, "#shut") == []

        await upgrade(m, "spark", new)
        await m.linked()
        async with m.client("thor", "thor-ada") as ada, m.client("spark", "spark-ori") as ori:
            for one in (ori, ada):
                await one.join("#talk")
            await ori.expect("JOIN", where=lambda join: join.source.startswith("thor-ada"))
            ori.send("PRIVMSG #talk :from the new to the old")
            await ada.expect("PRIVMSG", "#talk", "from the new to the old")
            ada.send("PRIVMSG #talk :from the old to the new")
            await ori.expect("PRIVMSG", "#talk", "from the old to the new")
            assert await history(ada, "#talk") == await history(ori, "#talk") != []

        await upgrade(m, "thor", new)
        await m.linked()
        await until(lambda: not kept(m.members["spark"].data)["before, in #open"])
        async with m.client("spark", "spark-ori") as ori:
            assert await read(ori, "#open") == ["before, in #open"]
            assert await read(ori, "#shut") == []


async def upgrade(m: Mesh, name: str, source: Path) -> None:
    """Stop a server, and start the newer program on what it left."""
    await m.stop(name)
    m.members[name].source = source
    await m.start(name)
