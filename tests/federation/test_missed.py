"""Who was gone while a split healed, or a server was killed, gets what came meanwhile: by HISTORY MISSED."""

import asyncio
import shutil
from pathlib import Path

import pytest

from culture.config.links import LinkConfig
from culture.config.model import Listen
from culture.config.skills import Embeddings, HistoryConfig
from culture.protocol.message import Message
from culture.protocol.vocabulary import UserClass
from culture.server.auth.account_store import AccountStore
from culture.server.auth.accounts import new_account
from culture.server.core.ids import begin_epoch
from tests.federation.meshes import Servers, linked
from tests.skills.history.playing import CAPS, all_missed, history, missed, targets
from tests.support.client import Client, connected, registered
from tests.support.mesh import mesh
from tests.support.people import authenticate, come_in, plain
from tests.support.ports import reserved
from tests.support.servers import serving
from tests.support.waiting import PATIENCE, until

pytestmark = [pytest.mark.requirement("F23"), pytest.mark.fault("D8", "E22")]
EDGE = ("spark", "thor")
SECRET = "correct-horse"
SMALL = HistoryConfig(rows=3, semantic=Embeddings(enabled=False))


async def heard(client: Client, text: str) -> Message:
    return await client.expect("PRIVMSG", where=lambda said: said.params[1] == text)


async def is_kept(servers: Servers, nick: str, text: str) -> None:
    """Wait until a server's history ends with this."""
    watch = await servers.client(nick, "#x")

    async def last() -> str:
        rows = await watch.ask("HISTORY SEARCH #x :during")
        return rows[-2].params[-1] if len(rows) > 1 else ""

    async with asyncio.timeout(PATIENCE):
        while await last() != text:
            pass


async def test_what_the_other_side_of_a_split_said_is_not_missed(tmp_path: Path) -> None:
    async with linked(tmp_path, EDGE, [EDGE], history=SMALL) as servers:
        ori = await servers.client("spark-ori", "#x", caps=CAPS)
        bob = await servers.client("spark-bob", "#x")
        ada = await servers.client("thor-ada", "#x")
        await servers.whole()
        await servers.cut(*EDGE)
        texts = [f"during the split {number}" for number in range(10)]
        for text in texts:
            ada.send(f"PRIVMSG #x :{text}")
        await ada.sync()
        bob.send("PRIVMSG #x :seen")
        seen = await heard(ori, "seen")
        ori.send("QUIT")
        await ori.ended()
        servers.heal(*EDGE)
        await servers.whole()
        await is_kept(servers, "spark-watch", texts[-1])
        bob.send("PRIVMSG #x :later")
        ori = await servers.client("spark-ori", "#x", caps=CAPS)
        mark = f"msgid={seen.tags['msgid']}"
        paged = [row.params[-1] for row in await history(ori, f"AFTER #x {mark} 50")]
        assert paged == ["later"]  # by time the others lie before
        assert await missed(ori, mark) == [*texts, "later"]
        assert set(texts) < set(await missed(ori, f"timestamp={seen.tags['time']}"))
        assert await missed(await servers.client("thor-ada2", "#x", caps=CAPS), mark) == ["later"]


async def test_a_split_that_ends_while_the_server_is_killed_loses_nothing(tmp_path: Path) -> None:
    async with mesh(tmp_path, EDGE, [EDGE]) as servers:
        await servers.linked()
        got: list[Message] = []
        async with servers.client("thor", "thor-ada", CAPS) as ada:
            await ada.join("#x")
            async with servers.client("spark", "spark-ori", CAPS) as ori:
                await ori.join("#x")
                for number in range(5):
                    ada.send(f"PRIVMSG #x :before {number}")
                    got.append(await heard(ori, f"before {number}"))
                servers.proxy(*EDGE).cut()
                await servers.reaches("thor", ["thor"])
                for number in range(5):
                    ada.send(f"PRIVMSG #x :during {number}")
                await ada.sync()
                await servers.reaches("spark", ["spark"])
                async with servers.client("spark", "spark-bob") as bob:
                    await bob.join("#x")
                    bob.send("PRIVMSG #x :seen, and perhaps lost")
                    got.append(await heard(ori, "seen, and perhaps lost"))
                    await servers.kill("spark")
            servers.proxy(*EDGE).heal()
            await servers.start("spark")
            await servers.linked()
            ada.send("PRIVMSG #x :after")
            await until(lambda: any(each.text == "after" for each in servers.history("thor", "#x")))
            wanted = {each.msgid for each in servers.history("thor", "#x")}
            await until(lambda: wanted <= {each.msgid for each in servers.history("spark", "#x")})
            marks = [f"msgid={each.tags['msgid']}" for each in reversed(got)]
            async with servers.client("spark", "spark-ori", CAPS) as ori:
                await ori.join("#x")
                found = {row.tags["msgid"] for row in await all_missed(ori, *marks)}
            assert wanted - {each.tags["msgid"] for each in got} <= found
            assert {"after", *(f"during {number}" for number in range(5))} <= {
                each.text for each in servers.history("spark", "#x") if each.msgid in found
            }


async def test_what_comes_for_an_account_while_nobody_is_logged_in_to_it_is_theirs(tmp_path: Path) -> None:
    """A private message was on its way when the server of whom it is for was killed; it comes before they are back."""
    (tmp_path / "thor").mkdir()
    accounts = AccountStore(tmp_path / "thor" / "accounts.json", "thor")
    accounts.add(new_account("claude", UserClass.AGENT, always_on=True))
    login = plain("claude", accounts.add_token("claude", "daemon"))
    async with mesh(tmp_path, EDGE, [EDGE]) as servers, servers.client("spark", "spark-ada", CAPS) as ada:
        await servers.linked()
        port = servers.members["thor"].port
        async with connected(port) as claude:
            await authenticate(claude, "PLAIN", login)
            await come_in(claude, "thor-claude")
            await ada.join("#x")
            await claude.join("#x")
            await ada.expect("JOIN", "#x", where=lambda line: line.source.startswith("thor-claude!"))
            servers.proxy(*EDGE).drop()
            ada.send("PRIVMSG thor-claude :on its way")
            await heard(ada, "on its way")
            await servers.kill("thor")
        servers.proxy(*EDGE).cut()
        servers.proxy(*EDGE).heal()
        await servers.start("thor")
        await until(lambda: any(each.text == "on its way" for each in servers.history("thor")))
        async with connected(port) as claude:
            await authenticate(claude, "PLAIN", login)
            claude.send(f"CAP REQ :{CAPS}")
            await come_in(claude, "thor-claude")
            assert "on its way" in await missed(claude, "timestamp=2020-01-01T00:00:00.000Z")


async def test_marks_of_before_a_restore_leave_nothing_out(tmp_path: Path) -> None:
    """What comes again after a restore comes in another order than before: the earliest of the marks counts."""
    with reserved() as spark_port, reserved() as thor_port:
        dialled = LinkConfig(name="thor", address=f"127.0.0.1:{thor_port}", secret=SECRET)
        spark = {"name": "spark", "listen": (Listen(port=spark_port),), "links": (dialled,)}
        thor = {
            "name": "thor",
            "listen": (Listen(port=thor_port),),
            "links": (LinkConfig(name="spark", secret=SECRET),),
        }
        (tmp_path / "thor").mkdir()
        data, backup = tmp_path / "spark" / "data", tmp_path / "backup"
        async with serving(tmp_path / "thor", **thor), registered(thor_port, "thor-ada") as ada:
            await ada.join("#x")
            async with serving(tmp_path / "spark", **spark):
                pass
            shutil.copytree(data, backup)
            async with serving(tmp_path / "spark", **spark), registered(spark_port, "spark-ori", CAPS) as ori:
                await ori.join("#x")
                await ada.expect("JOIN", where=lambda line: line.source.startswith("spark-ori"))
                ada.send("PRIVMSG #x :one")
                got = [await heard(ori, "one")]
                ori.send("PRIVMSG #x :own")
                got.append(await heard(ori, "own"))
                await heard(ada, "own")
            ada.send("PRIVMSG #x :two")
            await ada.sync()
            shutil.rmtree(data)
            shutil.copytree(backup, data)
            begin_epoch(data / "ids.json")
            async with serving(tmp_path / "spark", **spark), registered(spark_port, "spark-ori", CAPS) as ori:
                await ori.join("#x")
                await ada.expect("JOIN", where=lambda line: line.source.startswith("spark-ori"))
                ada.send("PRIVMSG #x :three")
                await heard(ori, "three")
                marks = [f"msgid={each.tags['msgid']}" for each in reversed(got)]
                since = f"timestamp={got[-1].tags['time']}"
                assert {"two", "three"} <= set(await missed(ori, *marks, since))
                assert {"two", "three"} <= set(await missed(ori, since))
                assert {"two", "three"} <= set(await missed(ori, "msgid=spark.gone.1", *marks))


async def test_what_was_said_with_an_agent_elsewhere_is_read_while_it_is_not_to_be_seen(tmp_path: Path) -> None:
    """Its server is not linked, or it is not connected: by its nick alone nobody here knows its account."""
    tokens = {}
    for server, nick, kind in (("spark", "spark-ori", UserClass.HUMAN), ("thor", "thor-claude", UserClass.AGENT)):
        (tmp_path / server).mkdir()
        accounts = AccountStore(tmp_path / server / "accounts.json", server)
        accounts.add(new_account(nick, kind, always_on=False))
        tokens[nick] = accounts.add_token(nick, "test")
    async with linked(tmp_path, EDGE, [EDGE]) as servers:
        spark = servers["spark"]
        async with registered(spark.port, "spark-ori", CAPS, tokens["spark-ori"]) as ori:
            async with registered(servers["thor"].port, "thor-claude", CAPS, tokens["thor-claude"]) as claude:
                await until(lambda: spark.parts.network.user("thor-claude") is not None)
                ori.send("PRIVMSG thor-claude :hello")
                msgid = (await heard(ori, "hello")).tags["msgid"]
                claude.send("PRIVMSG spark-ori :hello, ori")
                await heard(ori, "hello, ori")
            await until(lambda: spark.parts.network.user("thor-claude") is None)
            assert await targets(ori) == ["thor-claude"]
            for question in ("LATEST thor-claude * 10", f"AFTER Thor-Claude msgid={msgid} 10"):
                assert (await history(ori, question))[-1].params[-1] == "hello, ori"
            assert await history(ori, "LATEST thor-other * 10") == []
            async with registered(spark.port, "spark-eve", CAPS) as eve:
                assert await history(eve, "LATEST thor-claude * 10") == []
