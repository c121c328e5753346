"""The servers that tests of the mesh run on: real processes that keep their port and their data."""

import json
from pathlib import Path

import pytest

from tests.support.mesh import mesh
from tests.support.waiting import until


async def test_servers_run_beside_each_other_with_what_they_keep(tmp_path: Path) -> None:
    async with mesh(tmp_path, names=("spark", "thor")) as m:
        async with m.client("spark", "spark-ori") as ori, m.client("thor", "thor-bob", caps="echo-message") as bob:
            for client, text in ((ori, "hello"), (bob, "welcome")):
                await client.join("#general")
                await client.ask(f"PRIVMSG #general :{text}")
            assert [message.params[1] for message in bob.seen if message.verb == "PRIVMSG"] == ["welcome"]
        await until(lambda: bool(m.history("spark") and m.history("thor", "#General")))
        [heard] = m.history("spark")
        assert heard.msgid.startswith("spark.") and heard.source.startswith("spark-ori!") and heard.text == "hello"
        assert [each.text for each in m.history("thor")] == ["welcome"]


async def test_a_server_that_was_killed_comes_back_on_its_port_and_data(tmp_path: Path) -> None:
    async with mesh(tmp_path, names=("spark",)) as m:
        server = m.members["spark"]
        port, pid = server.port, server.pid
        async with m.client("spark", "spark-ori") as ori:
            await ori.join("#general")
            await ori.ask("PRIVMSG #general :hello")
            await until(lambda: bool(m.history("spark")))
            await m.kill("spark")
            await ori.ended()
        assert not server.is_running
        with pytest.raises(ConnectionRefusedError):
            async with m.client("spark", "spark-ori"):
                pass
        await m.start("spark")
        assert server.port == port and server.pid != pid
        async with m.client("spark", "spark-ori") as ori:
            await ori.join("#general")
            await ori.ask("PRIVMSG #general :again")
        await m.stop("spark")
        assert [each.text for each in m.history("spark")] == ["hello", "again"]
        assert len({each.msgid for each in m.history("spark")}) == 2


async def test_each_says_whom_it_reaches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with mesh(tmp_path, names=("spark.local", "thor")) as m:
        await m.reaches("spark.local", [])
        await m.stop("thor")
        await m.linked()
        monkeypatch.setattr("tests.support.mesh.PATIENCE", 0.1)
        with pytest.raises(AssertionError, match=r"spark.local reaches \['spark'\], not \['spark', 'thor'\]"):
            await m.reaches("spark.local", ["thor"])


async def test_settings_are_read_again(tmp_path: Path) -> None:
    async with mesh(tmp_path, names=("spark",), motd="one") as m:
        server = m.members["spark"]
        server.settings["motd"] = "two"
        server.reload()
        await server.told("reading the configuration again")
        async with m.client("spark", "spark-ori") as ori:
            motd = [line.params[1] for line in await ori.ask("MOTD") if line.verb == "372"]
        assert motd == ["- two"]


async def test_what_keeps_a_server_from_starting_is_told(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="unknown key"):
        async with mesh(tmp_path, names=("spark",), nonsense=1):
            pass


async def test_each_edge_is_a_link_on_both_sides_with_a_proxy_between(tmp_path: Path) -> None:
    edges = [("spark", "thor"), ("odin", "thor")]
    extra = {("thor", "odin"): {"trust": "no_authority"}}
    async with mesh(tmp_path, names=("spark", "thor", "odin"), edges=edges, links=extra) as m:
        said = {name: json.loads((tmp_path / name / "culture.yaml").read_text())["links"] for name in m.members}
        [from_spark], [from_odin] = said["spark"], said["odin"]
        assert from_spark["address"] == f"127.0.0.1:{m.proxy('thor', 'spark').port}"
        assert from_odin["address"] == f"127.0.0.1:{m.proxy('odin', 'thor').port}"
        assert said["thor"] == [
            {"name": "spark", "secret": from_spark["secret"]},
            {"name": "odin", "secret": from_odin["secret"], "trust": "no_authority"},
        ]
        assert from_spark["secret"] != from_odin["secret"]
        assert all(member.is_running for member in m.members.values())


async def test_a_triangle_is_linked_split_and_whole_again(tmp_path: Path) -> None:
    edges = [("spark", "thor"), ("thor", "odin"), ("odin", "spark")]
    async with mesh(tmp_path, names=("spark", "thor", "odin"), edges=edges) as m:
        await m.linked()
        for other in ("thor", "odin"):
            m.proxy("spark", other).cut()
        await m.reaches("spark", [])
        await m.linked("thor", "odin")
        for other in ("thor", "odin"):
            m.proxy("spark", other).heal()
        await m.linked()
