"""Links as they come and go: dialled by both, ended by operators, made and changed at run time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from culture.config.links import LinkConfig
from culture.config.model import Listen, Operator
from culture.federation import book
from culture.federation.book import Book, Entries
from culture.server.ircd import IRCd
from tests.federation.raw import SECRET, mesh_of, raw_peer
from tests.support.client import Client, registered
from tests.support.ports import reserved
from tests.support.servers import config_for, serving
from tests.support.tls import made
from tests.support.waiting import until

ROOT = (Operator(name="root", password="very secret"),)


def to(name: str, port: int | None = None, secret: str = SECRET, **settings: Any) -> LinkConfig:
    address = f"127.0.0.1:{port}" if port is not None else None
    return LinkConfig(name=name, secret=secret, address=address, **settings)


def are_linked(*servers: IRCd) -> bool:
    return all(len(mesh_of(each).links) == len(servers) - 1 for each in servers)


@asynccontextmanager
async def pair(folder: Path, **more: Any) -> AsyncIterator[tuple[IRCd, IRCd]]:
    """spark dials thor; both are linked."""
    async with serving(folder / "thor", name="thor", links=(to("spark"),), operators=ROOT, **more) as thor:
        links = (to("thor", thor.port),)
        async with serving(folder / "spark", name="spark", links=links, operators=ROOT, **more) as spark:
            await until(lambda: are_linked(spark, thor))
            yield spark, thor


@asynccontextmanager
async def operator(ircd: IRCd, nick: str) -> AsyncIterator[Client]:
    async with registered(ircd.port, nick) as client:
        client.send("OPER root :very secret")
        await client.expect("381")
        await client.sync()
        yield client


async def test_both_dial_at_once_and_one_link_remains(tmp_path: Path) -> None:
    with reserved() as one, reserved() as other:
        async with AsyncExitStack() as stack:
            servers = [
                await stack.enter_async_context(
                    serving(tmp_path / name, name=name, listen=(Listen(port=own),), links=(to(peer, port),))
                )
                for name, own, peer, port in (("spark", one, "thor", other), ("thor", other, "spark", one))
            ]
            spark, thor = servers
            await until(lambda: are_linked(spark, thor))
            await until(lambda: not (mesh_of(spark).greeters or mesh_of(thor).greeters))
            async with registered(spark.port, "spark-ori") as ori, registered(thor.port, "thor-bob") as bob:
                await ori.join("#general")
                await bob.join("#general")
                await ori.expect("JOIN", "#general")
                await bob.ask("PRIVMSG #general :once")
                await ori.expect("PRIVMSG", "#general", "once")
                assert are_linked(spark, thor)
                assert [link.link.is_dialled for link in mesh_of(spark).links.values()] != [
                    link.link.is_dialled for link in mesh_of(thor).links.values()
                ]


class TestOperators:
    """SQUIT and CONNECT."""

    @pytest.mark.fault("D19")
    async def test_a_link_ends_everywhere_and_is_made_again(self, tmp_path: Path) -> None:
        async with (
            pair(tmp_path) as (spark, thor),
            operator(spark, "spark-ori") as ori,
            registered(thor.port, "thor-bob") as bob,
        ):
            for client in (ori, bob):
                await client.join("#general")
            await ori.expect("JOIN", "#general")
            ori.send("SQUIT thor :to see")
            assert (await ori.expect("QUIT")).source.startswith("thor-bob!")
            assert (await bob.expect("QUIT")).source.startswith("spark-ori!")
            assert not spark.parts.network.servers and not thor.parts.network.servers
            assert mesh_of(spark).dialler.is_held("thor")
            await ori.ask("CONNECT thor")
            assert (await ori.expect("JOIN", "#general")).source.startswith("thor-bob!")
            assert (await bob.expect("JOIN", "#general")).source.startswith("spark-ori!")

    @pytest.mark.fault("D19")
    async def test_it_stays_ended_for_a_while_whoever_dials(self, tmp_path: Path) -> None:
        async with pair(tmp_path) as (spark, thor), operator(thor, "thor-bob") as bob:
            await bob.ask("SQUIT spark")
            await until(lambda: "An operator ended this link" in mesh_of(spark).dialler.problems.get("thor", ""))
            assert not mesh_of(thor).links
            notices = [m.params[1] for m in await bob.ask("CONNECT spark") if m.verb == "NOTICE"]
            assert notices == ["spark has no address here: it has to dial"]
            await until(lambda: are_linked(spark, thor))

    async def test_others_may_not(self, tmp_path: Path) -> None:
        async with pair(tmp_path) as (spark, thor), registered(spark.port, "spark-ori") as ori:
            for line in ("SQUIT thor", "CONNECT thor"):
                assert [m.verb for m in await ori.ask(line)] == ["481"]
            async with operator(spark, "spark-max") as max_:
                assert [m.verb for m in await max_.ask("SQUIT odin")] == ["402"]
                assert [m.verb for m in await max_.ask("CONNECT thor") if m.verb == "NOTICE"]
            assert are_linked(spark, thor)


class TestRunTime:
    """Links that are made, changed and taken away while servers run."""

    async def test_the_first_one_is_taken_up(self, tmp_path: Path) -> None:
        async with serving(tmp_path / "spark", name="spark") as spark:
            assert spark.parts.skills.get("federation") is None
            async with registered(spark.port, "spark-ori") as ori:
                await ori.join("#general")
                _write(spark, links=(to("thor"),))
                await until(lambda: spark.parts.skills.get("federation") is not None)
                await until(lambda: "thor" in mesh_of(spark).dialler.wanted)
                async with raw_peer(spark) as peer:
                    await peer.link()
                    assert any(line.verb == "NICK" and line.params[0] == "spark-ori" for line in peer.seen)
                    await ori.ask("PRIVMSG #general :hello")
                    await peer.expect("PRIVMSG", "#general", "hello")

    @pytest.mark.fault("D21")
    async def test_a_machine_that_was_taken_away_cannot_come_back(self, tmp_path: Path) -> None:
        async with pair(tmp_path) as (spark, thor):
            _write(thor, unlinked=("spark",))
            await until(lambda: not mesh_of(thor).links)
            mesh_of(spark).dialler.connect("thor")
            await until(lambda: "Bad name or secret" in mesh_of(spark).dialler.problems.get("thor", ""))
            assert not thor.parts.network.servers and not spark.parts.network.servers
            _write(thor)
            await until(lambda: "spark" in mesh_of(thor).dialler.wanted)
            mesh_of(spark).dialler.connect("thor")
            await until(lambda: are_linked(spark, thor))

    @pytest.mark.fault("D21")
    async def test_a_secret_is_changed_without_an_interruption(self, tmp_path: Path) -> None:
        async with pair(tmp_path) as (spark, thor):
            links = [mesh_of(spark).links["thor"], mesh_of(thor).links["spark"]]
            port = thor.port
            _write(spark, links=(to("thor", port, "another-horse", old_secret=SECRET),))
            await until(lambda: mesh_of(spark).dialler.wanted["thor"].old_secret == SECRET)
            assert links == [mesh_of(spark).links["thor"], mesh_of(thor).links["spark"]]
            # One side has the new one: also a link that breaks meanwhile comes back.
            await _cut(spark, thor)
            _write(thor, links=(to("spark", secret="another-horse", old_secret=SECRET),))
            await until(lambda: mesh_of(thor).dialler.wanted["spark"].old_secret == SECRET)
            await _cut(spark, thor)
            links = [mesh_of(spark).links["thor"], mesh_of(thor).links["spark"]]
            _write(spark, links=(to("thor", port, "another-horse"),))
            _write(thor, links=(to("spark", None, "another-horse"),))
            await until(lambda: not _old_secrets(spark) and not _old_secrets(thor))
            assert links == [mesh_of(spark).links["thor"], mesh_of(thor).links["spark"]]
            async with raw_peer(thor) as peer:
                peer.greet("spark", SECRET)
                assert (await peer.expect("ERROR")).params[0] == "Bad name or secret"

    @pytest.mark.fault("D21")
    async def test_a_secret_that_is_replaced_holds_at_once(self, tmp_path: Path) -> None:
        async with pair(tmp_path) as (spark, thor):
            port = thor.port
            _write(spark, links=(to("thor", port, "another-horse"),))
            await until(lambda: "Bad name or secret" in mesh_of(spark).dialler.problems.get("thor", ""))
            assert not mesh_of(thor).links
            mesh_of(spark).dialler._calls["thor"].backoff.at_least(3600.0)
            _write(spark, links=(to("thor", port),))
            await until(lambda: are_linked(spark, thor))

    async def test_a_link_made_again_has_everything_at_once(self, tmp_path: Path) -> None:
        """Nothing is late where there was nothing to tell."""
        async with pair(tmp_path) as (spark, thor):
            async with registered(spark.port, "spark-ori") as ori:
                await ori.join("#general")
                await ori.ask("PRIVMSG #general :hello")
            await until(lambda: mesh_of(spark).links["thor"].link.acked == mesh_of(spark).log.position)
            await _cut(spark, thor)
            await until(lambda: mesh_of(spark).links["thor"].link.acked == mesh_of(spark).log.position)
            [entry] = mesh_of(spark).status.figures()
            assert (entry["behind"], entry["lag"]) == (0, 0)

    async def test_another_trust_makes_the_link_anew(self, tmp_path: Path) -> None:
        async with pair(tmp_path) as (spark, thor):
            before = mesh_of(spark).links["thor"]
            _write(spark, links=(to("thor", thor.port, trust="no_authority"),))
            await until(lambda: are_linked(spark, thor) and mesh_of(spark).links["thor"] is not before)
            assert mesh_of(spark).links["thor"].link.trust.trust == "no_authority"
            await until(lambda: "thor" in spark.parts.network.unvouched)

    async def test_what_cannot_be_read_changes_nothing(self, tmp_path: Path) -> None:
        async with pair(tmp_path) as (spark, thor), operator(spark, "spark-ori") as ori:
            book.path_of(spark.parts.config).write_text('{"links": [{"name": "odin", "secret": "short"}]}')
            said = await ori.expect("NOTICE", where=lambda m: "stay as they were" in m.params[-1])
            assert "short" not in said.params[-1]
            assert are_linked(spark, thor)

    async def test_rehash_takes_up_what_culture_yaml_says(self, tmp_path: Path) -> None:
        async with pair(tmp_path) as (spark, thor):
            other = config_for(tmp_path / "spark", name="spark", links=(to("odin"),))
            spark.rehash(other)
            await until(lambda: list(mesh_of(spark).dialler.wanted) == ["odin"])
            await until(lambda: not mesh_of(thor).links)

    async def test_rehash_makes_the_first_link(self, tmp_path: Path) -> None:
        async with serving(tmp_path, name="spark") as spark:
            spark.rehash(config_for(tmp_path, name="spark", links=(to("thor"),)))
            await until(lambda: spark.parts.skills.get("federation") is not None)
            await until(lambda: list(mesh_of(spark).dialler.wanted) == ["thor"])


async def test_how_links_are_is_written_for_the_command_line(tmp_path: Path) -> None:
    async with pair(tmp_path) as (spark, _):
        file = spark.parts.config.data_dir / "federation" / "status.json"
        await until(lambda: file.exists() and '"state": "linked"' in file.read_text())
        assert file.stat().st_mode & 0o777 == 0o600 and SECRET not in file.read_text()
        [thor] = mesh_of(spark).status.figures()
        assert thor["name"] == "thor" and thor["trust"] == "full" and thor["secret"] == "present"
    assert not file.exists()


async def test_a_link_that_falls_as_soon_as_it_stands_is_given_time(tmp_path: Path) -> None:
    greeted = 0

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal greeted
        await reader.readline()
        await reader.readline()
        greeted += 1
        writer.write(f"PASS {SECRET}\r\nSERVER thor 1 :x\r\nLINK 1 log epoch 1\r\n".encode())
        while not (await reader.readline()).startswith(b"RESUME"):
            pass
        writer.write(b":thor ENDROSTER thor\r\n")
        await reader.read()
        writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, serving(tmp_path, links=(to("thor", port),)) as ircd:
        dialler = mesh_of(ircd).dialler
        await until(lambda: dialler._calls["thor"].falls >= 3)
        assert greeted <= 4


async def test_a_peer_that_cannot_be_reached_is_said_so(tmp_path: Path) -> None:
    with reserved() as port:
        async with serving(tmp_path, links=(to("thor", port),)) as ircd:
            await until(lambda: "cannot be reached" in mesh_of(ircd).dialler.problems.get("thor", ""))
            [thor] = mesh_of(ircd).status.figures()
            assert thor["state"] == "dialling"
            assert thor["problem"] == f"127.0.0.1:{port} cannot be reached: Connection refused"


@pytest.mark.parametrize(
    ("door", "settings", "why"),
    [(0, {"fingerprint": "ab" * 32}, "where it speaks TLS?"), (1, {}, "needs its fingerprint")],
)
async def test_tls_at_the_wrong_port_is_said_so(tmp_path: Path, door: int, settings: dict[str, str], why: str) -> None:
    tls, _ = made(tmp_path, "thor")
    listen = (Listen(port=0), Listen(port=0, tls=tls))
    async with serving(tmp_path / "thor", name="thor", listen=listen, links=(to("spark"),)) as thor:
        link = to("thor", thor.ports[door], **settings)
        async with serving(tmp_path / "spark", name="spark", links=(link,)) as spark:
            await until(lambda: why in mesh_of(spark).dialler.problems.get("thor", ""))
            assert "refused" not in mesh_of(spark).dialler.problems["thor"]


def _write(ircd: IRCd, links: tuple[LinkConfig, ...] = (), unlinked: tuple[str, ...] = ()) -> None:
    """What ``culture mesh`` does."""
    made = Entries({link.short_name: link for link in links}, frozenset(unlinked))
    Book(book.path_of(ircd.parts.config)).change(lambda _: made)


def _old_secrets(ircd: IRCd) -> set[str]:
    return {each.old_secret for each in mesh_of(ircd).dialler.wanted.values() if each.old_secret}


async def _cut(spark: IRCd, thor: IRCd) -> None:
    """The link breaks, and comes back."""
    before = mesh_of(spark).links["thor"]
    before.connection._socket.shutdown(2)
    await until(lambda: are_linked(spark, thor) and mesh_of(spark).links["thor"] is not before)
