"""Real servers behind real sockets: whatever is cut, swallowed or killed, all of them end with the same history."""

import os
import random
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from culture.protocol.message import Message
from tests.support.client import Client
from tests.support.clock import sleep
from tests.support.lockholder import locked
from tests.support.mesh import Mesh, mesh
from tests.support.rumours import CHORD, QUICK, RING, Rumours
from tests.support.waiting import until

TRIANGLE = [("spark", "thor"), ("thor", "odin"), ("spark", "odin")]
PAIR = [("spark", "thor")]
CAPS = "message-tags"


async def said(client: Client, text: str) -> None:
    """Say something, and know that the server has heard it."""
    await client.ask(f"PRIVMSG #x :{text}")


def texts(m: Mesh, name: str) -> list[str]:
    return [heard.text for heard in m.history(name, "#x")]


async def equal(m: Mesh, *names: str, expected: set[str]) -> None:
    """All these servers have these messages, each once."""
    await until(lambda: all(set(texts(m, name)) == expected for name in names), f"not all have {expected}")
    ids = [[heard.msgid for heard in m.history(name, "#x")] for name in names]
    assert all(sorted(each) == sorted(ids[0]) for each in ids) and len(set(ids[0])) == len(ids[0]) == len(expected)


@pytest.mark.fault("D5", "D6")
@pytest.mark.requirement("A09", "E03")
async def test_a_triangle_whose_edge_breaks(tmp_path: Path) -> None:
    async with mesh(tmp_path, names=("spark", "thor", "odin"), edges=TRIANGLE, federation=QUICK) as m:
        await m.linked()
        async with m.client("spark", "spark-ori", CAPS) as ori, m.client("odin", "odin-eve", CAPS) as eve:
            for client in (ori, eve):
                await client.join("#x")
            await said(ori, "whole")
            await eve.expect("PRIVMSG", "#x", "whole")
            m.proxy("spark", "odin").cut()
            await said(ori, "by thor")
            await eve.expect("PRIVMSG", "#x", "by thor")
            await said(eve, "back by thor")
            await ori.expect("PRIVMSG", "#x", "back by thor")
            m.proxy("spark", "odin").heal()
            await m.linked()
            await said(ori, "healed")
            await eve.expect("PRIVMSG", "#x", "healed")
            await eve.sync()
            heard = [message.params[1] for message in eve.seen if message.verb == "PRIVMSG"]
            assert heard == ["whole", "by thor", "healed"]
        await equal(m, "spark", "thor", "odin", expected={"whole", "by thor", "back by thor", "healed"})


@pytest.mark.fault("D8", "D9", "D11")
@pytest.mark.requirement("E06", "E08", "E09", "E15")
async def test_two_sides_that_were_split_and_restarted_have_all_of_it(tmp_path: Path) -> None:
    async with mesh(tmp_path, names=("spark", "thor"), edges=PAIR, federation=QUICK) as m:
        await m.linked()
        async with m.client("spark", "spark-ori", CAPS) as ori, m.client("thor", "thor-bob", CAPS) as bob:
            for client in (ori, bob):
                await client.join("#x")
            await said(ori, "before")
            await bob.expect("PRIVMSG", "#x", "before")
            m.proxy("spark", "thor").cut()
            await m.reaches("spark", [])
            for number in range(20):
                await said(ori, f"spark {number}")
                await said(bob, f"thor {number}")
            await m.stop("thor")
            m.proxy("spark", "thor").heal()
            await m.start("thor")
            for number in range(20, 40):
                await said(ori, f"spark {number}")
            await m.linked()
            await said(ori, "after")
        sides = {f"{side} {number}" for side in ("spark", "thor") for number in range(20)}
        late = {f"spark {number}" for number in range(20, 40)}
        await equal(m, "spark", "thor", expected={"before", "after"} | sides | late)


@pytest.mark.fault("D7")
async def test_a_link_that_swallows_everything_is_noticed_and_made_good(tmp_path: Path) -> None:
    async with mesh(tmp_path, names=("spark", "thor"), edges=PAIR, federation=QUICK) as m:
        await m.linked()
        async with m.client("spark", "spark-ori", CAPS) as ori, m.client("thor", "thor-bob", CAPS) as bob:
            for client in (ori, bob):
                await client.join("#x")
            await ori.expect("JOIN", where=lambda join: join.source.startswith("thor-bob"))
            m.proxy("spark", "thor").drop()
            for number in range(10):
                await said(ori, f"spark {number}")
                await said(bob, f"thor {number}")
            await bob.expect("QUIT", where=lambda quit: quit.source.startswith("spark-ori"))
            m.proxy("spark", "thor").heal()
            await m.linked()
            await bob.expect("PRIVMSG", "#x", "spark 9")
            await ori.expect("PRIVMSG", "#x", "thor 9")
        everything = {f"{side} {number}" for side in ("spark", "thor") for number in range(10)}
        await equal(m, "spark", "thor", expected=everything)


@pytest.mark.fault("D10")
async def test_who_was_away_too_long_is_told_what_is_missing(tmp_path: Path) -> None:
    async with mesh(tmp_path, names=("spark", "thor"), edges=PAIR, federation={**QUICK, "keep": "1s"}) as m:
        await m.linked()
        async with m.client("spark", "spark-ori", CAPS) as ori, m.client("thor", "thor-bob", CAPS) as bob:
            for client in (ori, bob):
                await client.join("#x")
            await said(ori, "before")
            await bob.expect("PRIVMSG", "#x", "before")
            await until(lambda: texts(m, "thor") == ["before"])
            m.proxy("spark", "thor").cut()
            await m.reaches("spark", [])
            for number in range(5):
                await said(ori, f"too long ago {number}")
            await until(lambda: len(texts(m, "spark")) == 6)
            await sleep(1.5)
            await m.stop("spark")
            await m.start("spark")  # what is too old is let go of at the start, then every hour
            await sleep(2.5)
            async with m.operator("thor") as watch:
                m.proxy("spark", "thor").heal()
                told = await watch.expect("NOTICE", where=lambda notice: "gap of" in notice.params[-1])
                [lost] = re.findall(r"gap of (\d+)", told.params[-1])
                assert 5 <= int(lost) <= 8  # what servers say of the link is in the log as well


async def test_what_a_crash_kept_from_the_history_is_in_it_after_the_start(tmp_path: Path) -> None:
    async with mesh(tmp_path, names=("spark", "thor"), edges=PAIR, federation=QUICK) as m:
        await m.linked()
        async with m.client("spark", "spark-ori", CAPS) as ori, m.client("thor", "thor-bob", CAPS) as bob:
            for client in (ori, bob):
                await client.join("#x")
            await said(ori, "one")
            await bob.expect("PRIVMSG", "#x", "one")
            await said(bob, "two")
            await ori.expect("PRIVMSG", "#x", "two")
        await equal(m, "spark", "thor", expected={"one", "two"})
        await m.kill("thor")
        for path in (m.members["thor"].data / "history").glob("history.db*"):
            path.unlink()
        await m.start("thor")
        await equal(m, "spark", "thor", expected={"one", "two"})


@pytest.mark.requirement("E11")
async def test_private_messages_wait_on_the_way_for_who_was_killed(tmp_path: Path) -> None:
    edges = [("spark", "thor"), ("thor", "odin")]
    async with mesh(tmp_path, names=("spark", "thor", "odin"), edges=edges, federation=QUICK) as m:
        await m.linked()
        async with m.client("spark", "spark-ori", CAPS) as ori:
            async with m.client("odin", "odin-eve", CAPS) as eve:
                for client in (ori, eve):
                    await client.join("#x")
                await ori.expect("JOIN", where=lambda join: join.source.startswith("odin-eve"))
                await ori.ask("PRIVMSG odin-eve :one")
                await eve.expect("PRIVMSG", "odin-eve", "one")
                m.proxy("thor", "odin").drop()
                await ori.ask("PRIVMSG odin-eve :two")
                await until(lambda: any(heard.text == "two" for heard in m.history("spark")))
            await m.kill("thor")
            m.proxy("thor", "odin").heal()
            await m.start("thor")
            await m.linked()
            await until(lambda: [heard.text for heard in m.history("odin")] == ["one", "two"])
        assert not m.history("thor")


@pytest.mark.fault("D9")
@pytest.mark.requirement("E11")
async def test_a_private_message_with_a_receipt_arrives_though_its_server_is_killed_after_handing_it_on(
    tmp_path: Path,
) -> None:
    """It went by a server without full trust, so the recipient's server has to hear from the killed one that it is."""
    trust = {edge: {"trust": "no_authority"} for edge in (("thor", "odin"), ("odin", "thor"))}
    caps = f"{CAPS} agentirc.dev/receipts"
    async with mesh(tmp_path, names=("spark", "thor", "odin"), edges=TRIANGLE, links=trust, federation=QUICK) as m:
        await m.linked()
        async with m.client("thor", "thor-eve", CAPS) as eve:
            async with m.client("spark", "spark-ori", caps) as ori:
                m.proxy("spark", "thor").cut()
                await stored(ori, "around", "thor-eve")
                await until(lambda: (held(m, "spark"), held(m, "odin")) == (0, 1))
                await m.kill("spark")
            await sleep(2.5)  # thor looks once a second for whom it can ask about it
            assert not [line for line in await eve.sync() if line.verb == "PRIVMSG"]
            await m.start("spark")
            m.proxy("spark", "thor").heal()
            await m.linked()
            await eve.expect("PRIVMSG", "thor-eve", "around")
            await until(lambda: [held(m, name) for name in m.members] == [0, 0, 0])
            await eve.sync()
            assert [line.params[1] for line in eve.seen if line.verb == "PRIVMSG"] == ["around"]
        await until(lambda: [heard.text for heard in m.history("thor")] == ["around"])


def held(m: Mesh, name: str) -> int:
    """How many private messages wait on a server's disk for the next one."""
    with closing(sqlite3.connect(m.members[name].data / "federation" / "log.db")) as file:
        return int(file.execute("SELECT count(*) FROM held").fetchone()[0])


@pytest.mark.fault("D8", "D9")
@pytest.mark.requirement("E06")
async def test_a_ring_with_a_chord_converges_after_cuts_and_a_kill(tmp_path: Path) -> None:
    seed = int(os.environ.get("PROOF_SEED", "0"))
    async with mesh(tmp_path, names=RING, edges=CHORD, federation=QUICK) as m:
        await m.linked()
        async with Rumours(m, clients=2, pace=0.2).going() as rumours:
            await rumours.break_things(CHORD, seconds=6.0, kills=1, chance=random.Random(seed))
            kept = await rumours.settle()
            assert rumours.kills == 1 and rumours.cuts >= 3 and len(kept) > 50
            rumours.check()


@pytest.mark.fault("D9")
async def test_nothing_is_stored_that_the_log_of_the_links_lacks(tmp_path: Path) -> None:
    """A receipt, then kill -9, and the message was on this server alone, for ever."""
    caps = f"{CAPS} agentirc.dev/receipts"
    async with mesh(tmp_path, names=("spark", "thor"), edges=PAIR, federation=QUICK) as m:
        await m.linked()
        async with m.client("spark", "spark-ori", caps) as ori, m.client("thor", "thor-bob", CAPS) as bob:
            for client in (ori, bob):
                await client.join("#x")
            await stored(ori, "before")
            await bob.expect("PRIVMSG", "#x", "before")
            m.proxy("spark", "thor").cut()
            await m.reaches("spark", [])
            async with locked(m.members["spark"].data / "federation" / "log.db"):
                await said(ori, "precious")
                await m.members["spark"].told("what links carry cannot be kept at present")
                assert not any(map(is_stored, await ori.sync()))
                await m.members["spark"].told("nothing can be kept at present")
                await m.kill("spark")
            await m.start("spark")
            m.proxy("spark", "thor").heal()
            await m.linked()
        async with m.client("spark", "spark-ori", caps) as ori:
            await ori.join("#x")
            await stored(ori, "after")
        await until(lambda: "after" in texts(m, "thor"))
        assert texts(m, "spark") == texts(m, "thor")


async def stored(client: Client, text: str, target: str = "#x") -> None:
    """Say something, and know that the server has it on disk."""
    client.send(f"PRIVMSG {target} :{text}")
    await client.expect("TAGMSG", where=is_stored)


def is_stored(line: Message) -> bool:
    return line.verb == "TAGMSG" and line.tags.get("agentirc.dev/receipt") == "stored"
