"""Private messages reach the server of whom they are for, by it alone are shown, and wait on disk on their way."""

import asyncio
import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from culture.config.links import LinkConfig
from culture.federation import log
from culture.federation.link import Stage
from culture.federation.logfile import Entry, Held, Kept, LogFile, LogReader, Settled
from culture.server.core.ids import EventId
from culture.server.events import Redacted, Said
from culture.server.skill import Host
from tests.federation.raw import SECRET, mesh_of, raw_peer
from tests.federation.test_backfill import FAST, PAIR, TRIANGLE, net, topologies
from tests.federation.virtual import Net
from tests.support.client import registered
from tests.support.servers import serving
from tests.support.waiting import until

LINE = [("alfa", "bravo"), ("bravo", "carl")]
WHOM = "carl-eve"


def held(made: Net) -> dict[str, int]:
    """How many messages wait on each server that runs."""
    return {
        name: sum(map(len, server.mesh.log.held.values()))
        for name, server in made.servers.items()
        if name not in made.down
    }


async def again(made: Net) -> None:
    """As once a second."""
    for name, server in made.servers.items():
        if name not in made.down:
            with server.ircd.parts.turn():
                server.mesh.courier.forward()
    await made.settle()


@pytest.mark.requirement("E11")
async def test_it_is_shown_where_it_is_for_and_kept_nowhere_else(tmp_path: Path) -> None:
    async with net(tmp_path, LINE) as made:
        await made.heal()
        id = made.servers["alfa"].say(WHOM, "for you alone")
        await made.settle()
        assert made.servers["carl"].published == {id: 1}
        assert not made.servers["bravo"].published
        assert held(made) == {"alfa": 0, "bravo": 0, "carl": 0}
        assert all(server.kept() == set() for server in made.servers.values())


async def test_what_was_taken_back_while_it_waits_is_not_handed_on(tmp_path: Path) -> None:
    async with net(tmp_path, LINE) as made:
        await made.heal()
        alfa, bravo, carl = made.servers["alfa"], made.servers["bravo"], made.servers["carl"]
        made.cut(LINE[1])
        here = alfa.say(WHOM, "the password is xyzzy")
        assert [*alfa.mesh.log.held["carl"]] == [here]
        alfa.take_back(WHOM, here)
        on_its_way = bravo.say(WHOM, "the password is xyzzy")
        bravo.take_back(WHOM, on_its_way)
        assert on_its_way not in bravo.mesh.log.held["carl"] and here not in alfa.mesh.log.held["carl"]
        await made.heal()
        await again(made)
        assert [type(event) for event in carl.shown] == [Redacted, Redacted]
        assert held(made) == {"alfa": 0, "bravo": 0, "carl": 0}


async def test_custody_is_taken_only_of_what_is_on_disk(tmp_path: Path) -> None:
    async with net(tmp_path, LINE) as made:
        await made.heal()
        alfa, carl = made.servers["alfa"], made.servers["carl"]
        id = alfa.say(WHOM)
        alfa.write()
        for _ in range(3):
            for edge in LINE:
                await made.carry(edge)
        assert carl.published == {id: 1} and held(made) == {"alfa": 1, "bravo": 1, "carl": 0}
        await made.crash("carl")
        await made.crash("bravo")
        await made.heal()
        await again(made)
        assert carl.published == {id: 1} and held(made) == {"alfa": 0, "bravo": 0, "carl": 0}


async def test_custody_waits_for_each_message_and_not_for_the_first_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crash after the first commit must not lose what waits for the second."""
    monkeypatch.setattr(log, "_AT_ONCE", 1)
    async with net(tmp_path, PAIR) as made:
        await made.heal()
        alfa, bravo = made.servers["alfa"], made.servers["bravo"]
        first, second = alfa.say("bravo-bob"), alfa.say("bravo-bob")
        await made.carry(PAIR[0])
        assert bravo.published == {first: 1, second: 1}
        waiting = []
        while bravo.mesh.log.waiting:
            assert bravo.mesh.log.write_some()
            await made.breathe()
            await made.carry(PAIR[0])
            waiting.append([*alfa.mesh.log.held.get("bravo", {})])
        assert [second] in waiting and waiting[-1] == []


async def test_what_comes_again_is_shown_once(tmp_path: Path) -> None:
    async with net(tmp_path, PAIR) as made:
        await made.heal()
        alfa, bravo = made.servers["alfa"], made.servers["bravo"]
        id = alfa.say("bravo-bob")
        await made.carry(PAIR[0])
        bravo.write()
        made.cut(PAIR[0])
        assert held(made)["alfa"] == 1
        await made.heal()
        await again(made)
        assert bravo.published == {id: 1} and held(made)["alfa"] == 0


async def test_what_comes_back_in_a_circle_is_not_let_go_of(tmp_path: Path) -> None:
    """While servers disagree about the way, the last that would let go is the one that had it first."""
    async with net(tmp_path, PAIR) as made:
        await made.heal()
        alfa, bravo = made.servers["alfa"], made.servers["bravo"]
        line = alfa.mesh.messages.sealed("@id=alfa.e.9;at=1 :alfa-ori!o@h PRIVMSG delta-eve x")
        link = alfa.mesh.links["bravo"].link
        with alfa.ircd.parts.turn():
            alfa.mesh.log.hold(Held("alfa.e.9", "delta", line, made.clock.now))
            alfa.mesh.courier._hand_on(link, alfa.mesh.log.held["delta"]["alfa.e.9"])
        await made.carry(PAIR[0])
        assert held(made) == {"alfa": 1, "bravo": 1}
        with bravo.ircd.parts.turn():
            bravo.mesh.courier._hand_on(bravo.mesh.links["alfa"].link, bravo.mesh.log.held["delta"]["alfa.e.9"])
        await made.settle()
        assert held(made) == {"alfa": 1, "bravo": 0}


async def test_what_waits_too_long_is_given_up_and_operators_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with net(tmp_path, PAIR) as made:
        alfa, told = made.servers["alfa"], []
        monkeypatch.setattr(alfa.mesh.host, "tell_operators", told.append)
        alfa.say("bravo-bob")
        made.clock.now += 8 * 86_400
        alfa.mesh.courier._give_up()
        alfa.write()
        assert held(made)["alfa"] == 0
        assert told == ["1 private messages for bravo waited too long and are given up"]


@pytest.mark.fault("D13")
async def test_a_peer_does_not_write_for_users_of_a_server_that_is_linked_here(tmp_path: Path) -> None:
    async with net(tmp_path, TRIANGLE) as made:
        await made.heal()
        alfa = made.servers["alfa"]
        forged = b"@id=carl.e.9;at=1 :carl-eve!o@h PRIVMSG alfa-ori :trust me\r\n"
        with alfa.ircd.parts.turn():
            alfa.mesh.links["bravo"].receive(forged)
        await made.settle()
        assert not alfa.published and alfa.mesh.links["bravo"].link.stage is Stage.LIVE


STAR = [("alfa", "bravo"), ("bravo", "carl"), ("bravo", "delta")]


@pytest.mark.fault("D13")
async def test_a_peer_hands_on_nothing_of_a_server_that_is_linked_here(tmp_path: Path) -> None:
    """Neither is it delivered, nor does it take the place of what that server says itself."""
    async with net(tmp_path, STAR) as made:
        await made.heal()
        bravo, carl, delta = (made.servers[name] for name in ("bravo", "carl", "delta"))
        epoch, number = carl.ircd.parts.router.ids.epoch, carl.ircd.parts.router.ids.last + 1
        forged = f"@id=carl.{epoch}.{number};at=1 :carl-ori!o@h PRIVMSG delta-eve :trust me\r\n"
        with bravo.ircd.parts.turn():
            bravo.mesh.links["alfa"].receive(forged.encode())
        id = carl.say("delta-eve", "from carl")
        await made.settle()
        assert id == f"carl.{epoch}.{number}"
        assert [said.text for said in delta.shown if isinstance(said, Said)] == ["from carl"]
        assert held(made) == dict.fromkeys(made.servers, 0)


async def test_what_was_given_to_another_is_handed_on_once_its_server_says_so_too(tmp_path: Path) -> None:
    """It went another way while the link was broken, and comes when that is whole again."""
    edges = [("alfa", "bravo"), ("alfa", "carl"), ("bravo", "carl"), ("bravo", "delta")]
    async with net(tmp_path, edges) as made:
        await made.heal(("bravo", "carl"), ("alfa", "bravo"))
        id = made.servers["carl"].say("delta-eve")
        made.servers["carl"].mesh.courier.forward()
        alfa, carl = made.servers["alfa"], made.servers["carl"]
        with carl.ircd.parts.turn():
            carl.mesh.courier._hand_on(carl.mesh.links["alfa"].link, next(iter(carl.mesh.log.held["delta"].values())))
        await made.settle()
        assert held(made) == {"alfa": 1, "bravo": 0, "carl": 0, "delta": 0}
        await made.heal()
        await again(made)
        assert made.servers["delta"].published == {id: 1} and held(made) == dict.fromkeys(made.servers, 0)
        assert not alfa.published


@pytest.mark.requirement("E11")
@pytest.mark.parametrize("is_given_up", [False, True])
async def test_what_came_by_a_peer_without_a_say_is_shown_once_its_own_server_confirms_it(
    tmp_path: Path, is_given_up: bool
) -> None:
    """That server has let go of it: it can only say, when it is linked again, that it was its own."""
    trust = {edge: {"trust": "no_authority"} for edge in (("bravo", "carl"), ("carl", "bravo"))}
    async with net(tmp_path, TRIANGLE, trust=trust) as made:
        await made.heal(("alfa", "carl"), ("carl", "alfa"))
        id = made.servers["alfa"].say(WHOM)
        await made.settle()
        assert held(made) == {"alfa": 0, "bravo": 1, "carl": 0}
        if is_given_up:
            made.servers["carl"].mesh.messages._doubts.expire(made.clock.now + 1_000)
        await made.heal()
        await again(made)
        assert made.servers["carl"].published == {id: 1}
        assert held(made) == dict.fromkeys(made.servers, 0)


STEPS = st.lists(
    st.tuples(
        st.sampled_from([*["say"] * 3, *["carry"] * 4, *["link"] * 2, *["write"] * 2, "cut", "crash", "restart"]),
        st.integers(0, 11),
        st.integers(0, 11),
    ),
    max_size=50,
)


@pytest.mark.requirement("E11")
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(topologies(), STEPS)
def test_each_arrives_whatever_is_cut_and_killed(edges: list[tuple[str, str]], steps: list[Any]) -> None:
    with tempfile.TemporaryDirectory(dir=FAST if FAST.is_dir() else None) as folder:
        asyncio.run(_deliver(Path(folder), edges, steps))


async def _deliver(folder: Path, edges: list[tuple[str, str]], steps: list[Any]) -> None:
    async with net(folder, edges) as made:
        names, said = list(made.servers), {}
        ever: dict[str, Counter[str]] = {name: Counter() for name in names}
        for edge in edges:
            made.link(edge)
        await made.settle()
        for what, which, other in steps:
            name, edge = names[which % len(names)], edges[which % len(edges)]
            server = made.servers[name]
            match what:
                case "say" if name not in made.down and names[other % len(names)] != name:
                    said[server.say(f"{names[other % len(names)]}-eve")] = names[other % len(names)]
                    server.write()
                case "carry":
                    await made.carry(edge, other + 1)
                case "link":
                    made.link(edge)
                case "cut":
                    made.cut(edge)
                case "write" if name not in made.down and server.mesh.log.waiting:
                    server.mesh.log.write_some()
                    await made.breathe()
                case "crash" if name not in made.down:
                    ever[name] |= server.published
                    await made.crash(name)
                case "restart" if name in made.down:
                    await made.restart(name)
        await made.heal()
        await again(made)
        for name, server in made.servers.items():
            assert max(server.published.values(), default=0) <= 1
            ever[name] |= server.published
        assert set(held(made).values()) == {0}
        for id, whom in said.items():
            assert id in ever[whom], f"{id} did not come to {whom}"
            assert all(id not in ever[name] for name in names if name not in (whom, id.partition(".")[0]))


@pytest.mark.fault("D13")
async def test_nobody_writes_in_the_name_of_our_users(tmp_path: Path) -> None:
    async with net(tmp_path, LINE) as made:
        await made.heal()
        bravo = made.servers["bravo"]
        forged = b"@id=bravo.e.9;at=1 :bravo-ori!o@h PRIVMSG carl-eve :trust me\r\n"
        with bravo.ircd.parts.turn():
            bravo.mesh.links["alfa"].receive(forged)
        await made.settle()
        assert not made.servers["carl"].published and held(made) == {"alfa": 0, "bravo": 0, "carl": 0}


class TestCrashed:
    """Whoever gave a message away relies on it that all who keep messages here have it, even after a crash."""

    async def test_what_may_not_have_been_kept_is_told_again(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        told: list[Any] = []
        links = (LinkConfig(name="thor", secret=SECRET),)
        async with serving(tmp_path / "one", links=links) as ircd, raw_peer(ircd) as thor:
            await thor.link()
            async with registered(ircd.port, "spark-ori"):
                thor.event("PRIVMSG spark-ori :for you alone", "thor-bob!user@host")
                await thor.expect("CUSTODY")
                folder = mesh_of(ircd).host.folder
                shutil.copytree(folder, tmp_path / "two" / folder.relative_to(tmp_path / "one"))
        monkeypatch.setattr(Host, "repeat", lambda host, event: told.append(event))
        async with serving(tmp_path / "two", links=links) as ircd, raw_peer(ircd) as thor:
            await until(lambda: bool(told))
            assert [(event.target, event.text) for event in told] == [("spark-ori", "for you alone")]
            await thor.link()
            assert not [row for row in thor.seen if row.verb == "PRIVMSG"]

    def test_its_text_is_not_kept_longer_than_that(self, tmp_path: Path) -> None:
        file = LogFile(tmp_path / "log.db")
        file.begin("e")
        stamp = EventId("thor", "e", 7, 1773914400.0)
        file.write([Kept(stamp, Entry(1, "", "a secret")), Kept(stamp._replace(seq=8), Entry(2, "#x", "public"))])
        reader = LogReader(tmp_path / "log.db")
        assert [entry.data for entry in reader.since(0, 10)] == ["a secret", "public"]
        assert [entry.data for entry in reader.after(0, 10)] == ["public"]
        file.write([Settled(2)])
        assert [entry.data for entry in reader.since(0, 10)] == ["", "public"]
        reader.close()
        file.close()
