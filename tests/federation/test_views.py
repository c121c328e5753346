"""What clients are told of the mesh, and what those are told who watch it."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from culture.config.services import MetricsConfig
from culture.federation.views import mesh_status
from culture.protocol.message import Message
from tests.federation.meshes import Servers, linked
from tests.support.waiting import until


@pytest.fixture
async def line(tmp_path: Path) -> AsyncIterator[Servers]:
    """spark – thor – odin."""
    edges = (("thor", "spark"), ("odin", "thor"))
    async with linked(
        tmp_path, ("spark", "thor", "odin"), edges, metrics=MetricsConfig(listen="127.0.0.1:0")
    ) as servers:
        yield servers


def rows(answer: list[Message], code: str) -> list[tuple[str, ...]]:
    return [row.params[1:] for row in answer if row.verb == code]


async def test_links_are_for_operators(line: Servers) -> None:
    ori, root = await line.client("spark-ori"), await line.operator("spark-root")
    assert rows(await root.ask("LINKS"), "364") == [
        ("spark", "spark", "0 the server spark"),
        ("thor", "thor", "1 the server thor"),
        ("odin", "thor", "2 the server odin"),
    ]
    assert rows(await root.ask("LINKS o*"), "364") == [("odin", "thor", "2 the server odin")]
    assert rows(await ori.ask("LINKS"), "364") == []


@pytest.mark.requirement("E04")
async def test_who_is_there_is_told_for_the_whole_mesh(line: Servers) -> None:
    ori = await line.client("spark-ori", "#room")
    await line.client("odin-eve", "#room")
    await line.whole()
    whois = await ori.ask("WHOIS odin-eve")
    assert rows(whois, "312") == [("odin-eve", "odin", "the server odin")]
    assert rows(whois, "317") == []
    assert rows(whois, "319") == [("odin-eve", "#room")]
    distances = {row[4]: row[-1].partition(" ")[0] for row in rows(await ori.ask("WHO #room"), "352")}
    assert distances == {"spark-ori": "0", "odin-eve": "2"}
    assert rows(await ori.ask("LIST"), "322") == [("#general", "0", ""), ("#room", "2", "")]
    assert sorted(rows(await ori.ask("NAMES #room"), "353")[0][-1].split()) == ["@spark-ori", "odin-eve"]
    lusers = await ori.ask("LUSERS")
    assert rows(lusers, "251") == [("There are 2 users and 0 invisible on 3 servers",)]
    assert rows(lusers, "255") == [("I have 1 clients and 1 servers",)]
    assert rows(lusers, "266")[0][0] == "2"


async def test_a_server_speaks_for_itself_alone(line: Servers) -> None:
    ori = await line.client("spark-ori")
    await line.client("odin-eve")
    await line.whole()
    assert rows(await ori.ask("VERSION odin"), "402") == [("odin", "Connect to odin and ask there")]
    assert rows(await ori.ask("TIME odin-eve"), "402") == [("odin-eve", "Connect to odin and ask there")]
    assert rows(await ori.ask("ADMIN nowhere"), "402")[0][0] == "nowhere"


async def test_only_its_own_operators_send_somebody_away(line: Servers) -> None:
    root = await line.operator("spark-root")
    eve = await line.client("odin-eve")
    await line.whole()
    assert "odin" in rows(await root.ask("KILL odin-eve :no"), "481")[0][-1]
    assert line["spark"].parts.network.user("odin-eve") is not None
    assert await eve.sync() == []


async def test_how_the_links_are(line: Servers) -> None:
    ori, root = await line.client("spark-ori"), await line.operator("spark-root")
    assert rows(await ori.ask("STATS l"), "481")
    [row] = rows(await root.ask("STATS l"), "211")
    assert row[0] == "thor" and int(row[2]) > 0 and int(row[3]) > 0 and row[-1].startswith("live, ")
    await line.cut("thor", "spark")
    assert rows(await root.ask("STATS l"), "211")[0][-1].startswith("down")


async def test_what_is_not_on_the_other_sides_disk_is_a_backlog(line: Servers) -> None:
    ori = await line.client("spark-ori", "#room")
    mesh: Any = line["spark"].parts.skills.get("federation")
    await ori.ask("PRIVMSG #room :hello")
    await until(lambda: mesh_status(mesh)[0].backlog == 0 and mesh_status(mesh)[0].acknowledged > 0)
    status = mesh_status(mesh)[0]
    assert (status.name, status.is_up, status.is_live) == ("thor", True, True)


async def test_links_in_figures(line: Servers) -> None:
    page = line["thor"].parts.metrics.text()
    assert 'culture_link_up{peer="spark"} 1\n' in page and 'culture_link_up{peer="odin"} 1\n' in page
    assert 'culture_link_backlog{peer="spark"} ' in page
    await line.cut("thor", "spark")
    page = line["thor"].parts.metrics.text()
    assert 'culture_link_up{peer="spark"} 0\n' in page and 'culture_link_backlog{peer="spark"}' not in page
