"""After a reconnect each side has what the other had, each message once, whatever was cut or killed."""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from culture.federation import admission, log
from culture.federation.link import Stage
from culture.federation.log import EventLog
from culture.protocol.message import Message
from culture.server.events import Redacted, Said
from culture.server.skill import Host
from tests.federation.virtual import Net, Wire
from tests.support.clock import sleep

FAST = Path("/dev/shm")
NAMES = ("alfa", "bravo", "carl", "delta")
PAIR = [("alfa", "bravo")]
TRIANGLE = [("alfa", "bravo"), ("bravo", "carl"), ("alfa", "carl")]


@asynccontextmanager
async def net(folder: Path, edges: list[tuple[str, str]], **more: Any) -> AsyncIterator[Net]:
    made = Net(folder, edges, **more)
    await made.start()
    try:
        yield made
    finally:
        await made.stop()


@st.composite
def topologies(draw: st.DrawFn) -> list[tuple[str, str]]:
    """A tree, and some links more."""
    names = NAMES[: draw(st.integers(2, len(NAMES)))]
    tree = [(names[draw(st.integers(0, number - 1))], names[number]) for number in range(1, len(names))]
    more = draw(st.lists(st.sampled_from(list(combinations(names, 2))), max_size=3))
    return list(dict.fromkeys(tuple(sorted(edge)) for edge in tree + more))  # type: ignore[misc]


STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "say",
                "say",
                "say",
                "say",
                "link",
                "link",
                "cut",
                "crash",
                "restart",
                "carry",
                "carry",
                "carry",
                "carry",
                "write",
                "write",
                "drop",
            ]
        ),
        st.integers(0, 11),
        st.integers(1, 6),
    ),
    max_size=60,
)


@pytest.mark.requirement("E06", "E07", "E08")
@pytest.mark.fault("D8", "D9")
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(topologies(), STEPS, st.booleans(), st.booleans())
def test_all_logs_are_equal_in_the_end(
    edges: list[tuple[str, str]], steps: list[Any], restricted: bool, whole: bool
) -> None:
    with tempfile.TemporaryDirectory(dir=FAST if FAST.is_dir() else None) as folder:
        asyncio.run(_converge(Path(folder), edges, steps, restricted, whole))


def _spare(edges: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """A link without which everybody can still be reached, if there is one."""
    for edge in edges:
        reached, rest = {edges[0][0]}, [other for other in edges if other != edge]
        for _ in rest:
            reached |= {name for other in rest if reached & set(other) for name in other}
        if reached == {name for other in edges for name in other}:
            return [edge]
    return []


async def _converge(
    folder: Path, edges: list[tuple[str, str]], steps: list[Any], restricted: bool, whole: bool
) -> None:
    trust = {}
    if restricted:
        one, other = edges[0]
        trust = {
            (one, other): {"trust": "restricted", "channels": ("#open",)},
            (other, one): {"trust": "restricted", "channels": ("#open",)},
        }
    async with net(folder, edges, trust=trust) as made:
        names = list(made.servers)
        for edge in edges:
            made.link(edge)
        said: set[str] = set()
        for what, which, much in steps:
            await _step(made, names, what, which, much, said)
            for name in names:
                assert name in made.down or max(made.servers[name].published.values(), default=0) <= 1
        await made.heal(*([] if whole else _spare(edges)))
        for name in names:
            assert max(made.servers[name].published.values(), default=0) <= 1, name
        kept = {name: made.servers[name].kept() for name in names}
        everywhere = set().union(*kept.values())
        if restricted:
            everywhere = {id for id in everywhere if id in _open(made)}
            kept = {name: ids & everywhere for name, ids in kept.items()}
        for name in names:
            assert kept[name] == everywhere, name
            assert said & everywhere <= kept[name]


def _open(made: Net) -> set[str]:
    """The ids of what may cross every link."""
    return {
        entry.data.partition("id=")[2].partition(";")[0]
        for server in made.servers.values()
        for entry in server.mesh.log._reader.after(0, 1_000_000)
        if entry.channel == "#open"
    }


async def _step(made: Net, names: list[str], what: str, which: int, much: int, said: set[str]) -> None:
    name, edge = names[which % len(names)], made.edges[which % len(made.edges)]
    server = made.servers[name]
    match what:
        case "say" if name not in made.down:
            for number in range(much):
                said.add(server.say("#open" if number % 2 else "#other"))
        case "link":
            made.link(edge)
        case "cut":
            made.cut(edge)
        case "drop" if edge in made.wires:
            # One side has noticed, and the other has not.
            wire = made.wires[edge][which % 2]
            if wire.is_open:
                with made.servers[edge[which % 2]].ircd.parts.turn():
                    wire.is_open = False
                    wire.peer.lost("timeout")
        case "carry":
            await made.carry(edge, much * 7)
        case "write" if name not in made.down and server.mesh.log.waiting:
            server.mesh.log.write_some()
            await made.breathe()
        case "crash" if name not in made.down:
            await made.crash(name)
        case "restart" if name in made.down:
            await made.restart(name)


def _lines(made: Net, edge: tuple[str, str], towards: int, verb: str) -> list[str]:
    """What is underway to one side of a link."""
    return [line.decode() for line in made.wires[edge][1 - towards].underway if f" {verb} ".encode() in line]


@pytest.mark.fault("D5")
@pytest.mark.requirement("E03")
async def test_in_a_triangle_each_message_happens_once(tmp_path: Path) -> None:
    async with net(tmp_path, TRIANGLE) as made:
        await made.heal()
        ids = [server.say("#x") for server in made.servers.values() for _ in range(5)]
        await made.settle()
        for server in made.servers.values():
            assert server.published == dict.fromkeys(ids, 1)
            assert server.kept() == set(ids)


@pytest.mark.fault("D6", "D7")
@pytest.mark.parametrize("dies", [False, True])
async def test_who_is_the_last_to_know_of_a_broken_link_misses_nothing(tmp_path: Path, dies: bool) -> None:
    """What the third server passes on is in doubt while the speaker seems to be linked, and believed when it is not."""
    async with net(tmp_path, TRIANGLE) as made:
        await made.heal()
        alfa, carl, broken = made.servers["alfa"], made.servers["carl"], ("alfa", "carl")
        wire = made.wires[broken][1]
        wire.is_open = False
        with carl.ircd.parts.turn():
            wire.peer.lost("timeout")
        first = carl.say("#x")
        await made.settle()
        second = made.servers["bravo"].say("#x")
        await made.settle()
        assert list(alfa.published) == [second]
        if dies:
            await made.crash("alfa")
            await made.restart("alfa")
            made.link(("alfa", "bravo"))
        else:
            made.cut(broken)
        await made.settle()
        assert alfa.kept() == {first, second} and alfa.published[first] == 1
        await made.heal()
        assert alfa.kept() == {first, second} and alfa.published[first] == 1


@pytest.mark.requirement("E10", "E09")
async def test_one_peer_tells_what_was_missed_and_the_others_what_it_did_not(tmp_path: Path) -> None:
    async with net(tmp_path, [*TRIANGLE, ("bravo", "delta"), ("carl", "delta")]) as made:
        await made.heal()
        made.cut(("alfa", "bravo"))
        made.cut(("alfa", "carl"))
        missed = [made.servers["delta"].say("#x") for _ in range(20)]
        await made.settle()
        alfa, got = made.servers["alfa"], []
        for edge in (("alfa", "bravo"), ("alfa", "carl")):
            made.link(edge)
        for _ in range(200):
            for edge in (("alfa", "bravo"), ("alfa", "carl"), ("bravo", "carl")):
                got += _lines(made, edge, 0, "PRIVMSG") if edge[0] == "alfa" else []
                await made.carry(edge)
            alfa.write()
        assert sorted(line.partition("id=")[2].partition(";")[0] for line in got) == sorted(missed)
        assert alfa.published == dict.fromkeys(missed, 1)
        assert [said.id.msgid for said in alfa.shown] == missed


async def test_what_one_has_said_is_not_told_back_after_a_reconnect(tmp_path: Path) -> None:
    async with net(tmp_path, PAIR) as made:
        await made.heal()
        for _ in range(30):
            made.servers["alfa"].say("#x")
        await made.settle()
        made.cut(PAIR[0])
        made.link(PAIR[0])
        told: list[str] = []
        for _ in range(20):
            told += _lines(made, PAIR[0], 0, "PRIVMSG") + _lines(made, PAIR[0], 1, "PRIVMSG")
            await made.carry(PAIR[0])
        assert told == []


@pytest.mark.fault("D9")
async def test_own_messages_that_a_crash_took_come_back_under_our_seal(tmp_path: Path) -> None:
    async with net(tmp_path, PAIR) as made:
        await made.heal()
        alfa = made.servers["alfa"]
        id = alfa.say("#x")
        await made.carry(PAIR[0])
        made.servers["bravo"].write()
        await made.crash("alfa")
        await made.restart("alfa")
        assert alfa.kept() == set()
        await made.heal()
        assert alfa.kept() == {id} and alfa.published == {id: 1}


async def test_own_messages_under_no_seal_of_ours_are_passed_over_and_the_link_stays(tmp_path: Path) -> None:
    """As after the loss of all data: peers still have what this server said, and it cannot know it again."""
    async with net(tmp_path, PAIR) as made:
        await made.heal()
        alfa = made.servers["alfa"]
        lost = alfa.say("#x")
        await made.settle()
        await made.crash("alfa")
        for path in (tmp_path / "alfa" / "data" / "federation").iterdir():
            path.unlink()
        await made.restart("alfa")
        await made.heal()
        assert alfa.kept() == set()
        fresh = made.servers["bravo"].say("#x")
        await made.settle()
        assert alfa.kept() == {fresh} and lost not in alfa.published


@pytest.mark.fault("D10")
async def test_a_peer_that_was_away_longer_than_the_log_is_told_of_the_gap(tmp_path: Path) -> None:
    async with net(tmp_path, PAIR) as made:
        await made.heal()
        alfa, bravo = made.servers["alfa"], made.servers["bravo"]
        bravo.say("#x")
        await made.settle()
        made.cut(PAIR[0])
        for _ in range(7):
            bravo.say("#x")
        made.clock.now += 8 * 86_400
        recent = bravo.say("#x")
        bravo.write()
        assert await bravo.mesh.log.prune(made.clock.now - 7 * 86_400) == 8
        await made.heal()
        assert alfa.mesh.backfill.gaps == {"bravo": 7}
        assert recent in alfa.published and len(alfa.published) == 2


@pytest.mark.fault("D11")
async def test_mentions_that_are_old_when_they_arrive_call_nobody(tmp_path: Path) -> None:
    async with net(tmp_path, PAIR) as made:
        bravo = made.servers["bravo"]
        bravo.say("#x", "@alfa-ori long ago", mentions=("alfa-ori",))
        made.clock.now += 1_000
        bravo.say("#x", "@alfa-ori just now", mentions=("alfa-ori",))
        await made.heal()
        shown = made.servers["alfa"].shown
        assert [(said.text, said.mentions) for said in shown if isinstance(said, Said)] == [
            ("@alfa-ori long ago", ()),
            ("@alfa-ori just now", ("alfa-ori",)),
        ]


@pytest.mark.fault("D11")
async def test_what_happens_while_a_peer_catches_up_comes_after_it_and_once(tmp_path: Path) -> None:
    async with net(tmp_path, PAIR) as made:
        bravo, alfa = made.servers["bravo"], made.servers["alfa"]
        ids = [bravo.say("#x") for _ in range(1_200)]
        bravo.write()
        made.link(PAIR[0])
        for _ in range(300):
            await made.carry(PAIR[0], 50)
            if len(ids) < 1_300:
                ids.append(bravo.say("#x"))
        await made.settle()
        assert [said.id.msgid for said in alfa.shown] == ids


async def test_a_time_that_is_far_ahead_is_the_same_wrong_one_nowhere(tmp_path: Path) -> None:
    """Whoever notices says when it came; those who hear of it later take that over."""
    async with net(tmp_path, [("alfa", "bravo"), ("bravo", "carl")]) as made:
        made.link(("alfa", "bravo"))
        await made.settle()
        arrival = made.clock.now
        made.clock.now += 3_600
        made.servers["alfa"].say("#x")
        made.clock.now = arrival
        await made.settle()
        made.clock.now += 7_200
        await made.heal()
        times = [made.servers[name].shown[0].id.at for name in ("bravo", "carl")]
        assert times == [arrival, arrival]


@pytest.mark.fault("D23")
async def test_a_peer_that_reads_slowly_is_told_from_the_log_no_faster_than_it_reads(tmp_path: Path) -> None:
    async with net(tmp_path, PAIR) as made:
        await made.heal()
        bravo, wire = made.servers["bravo"], made.wires[PAIR[0]][1]
        wire.waiting = 5 << 20
        ids = [bravo.say("#x") for _ in range(2_000)]
        bravo.write()
        await made.breathe()
        assert len(wire.underway) <= 1_000 and wire.peer.link.stage is Stage.SYNCING
        wire.waiting = 0
        async with asyncio.timeout(30):
            while len(made.servers["alfa"].shown) < len(ids):
                await made.carry(PAIR[0])
                await sleep(0.001)
        assert [said.id.msgid for said in made.servers["alfa"].shown] == ids
        assert wire.peer.link.stage is Stage.LIVE


async def test_what_cannot_be_kept_ends_the_link_and_comes_again(tmp_path: Path) -> None:
    async with net(tmp_path, PAIR) as made:
        await made.heal()
        alfa, bravo = made.servers["alfa"], made.servers["bravo"]
        alfa.mesh.log._bytes += 1 << 30
        id = bravo.say("#x")
        await made.carry(PAIR[0])
        await made.carry(PAIR[0])
        assert PAIR[0] not in made.wires and alfa.kept() == set()
        made.link(PAIR[0])
        await made.settle()
        assert PAIR[0] not in made.wires
        alfa.mesh.log._bytes -= 1 << 30
        await made.heal()
        assert alfa.kept() == {id}


@pytest.mark.fault("D10")
async def test_what_could_not_be_kept_at_all_is_told_as_a_gap(tmp_path: Path) -> None:
    async with net(tmp_path, PAIR) as made:
        await made.heal()
        alfa, bravo = made.servers["alfa"], made.servers["bravo"]
        bravo.say("#x")
        await made.settle()
        made.cut(PAIR[0])
        bravo.mesh.log._bytes += 1 << 30
        for _ in range(3):
            bravo.say("#x")
        bravo.mesh.log._bytes -= 1 << 30
        bravo.mesh.backfill.acknowledge()
        await made.heal()
        assert alfa.mesh.backfill.gaps == {"bravo": 3}


async def test_only_what_is_on_disk_is_acknowledged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A crash after the first commit must not lose what waits for the second: the peer tells it again."""
    monkeypatch.setattr(log, "_AT_ONCE", 1)
    async with net(tmp_path, PAIR) as made:
        await made.heal()
        await made.settle()
        alfa, bravo = made.servers["alfa"], made.servers["bravo"]
        for _ in range(3):
            alfa.say("#x")
            await made.carry(PAIR[0])
        link, seen = bravo.mesh.links["alfa"].link, list[bool]()
        assert bravo.mesh.log.waiting > 3
        while bravo.mesh.log.waiting:
            assert bravo.mesh.log.write_some()
            await made.breathe()
            assert link.confirmed == bravo.mesh.log.durable["alfa"].position
            seen.append(link.confirmed == bravo.mesh.log.cursors["alfa"].position)
        assert not seen[0] and seen[-1]


async def test_typing_is_passed_on_and_kept_nowhere_reactions_are(tmp_path: Path) -> None:
    async with net(tmp_path, TRIANGLE) as made:
        await made.heal()
        alfa = made.servers["alfa"]
        tags = [{"+typing": "active"}, {"+draft/react": "yes"}]
        for each in tags:
            parts = alfa.ircd.parts
            source = "alfa-ori!~ori@127.0.0.1"
            with parts.turn():
                parts.router.publish(Said(parts.router.ids.stamp(), source, "TAGMSG", "#x", "", None, "human", each))
        await made.settle()
        for name in ("bravo", "carl"):
            server = made.servers[name]
            assert [said.tags for said in server.shown if isinstance(said, Said)] == tags
            assert len(server.kept()) == 1


async def test_what_was_taken_back_before_it_came_is_shown_to_nobody(tmp_path: Path) -> None:
    async with net(tmp_path, TRIANGLE) as made:
        await made.heal()
        alfa, bravo, carl = made.servers["alfa"], made.servers["bravo"], made.servers["carl"]
        id = carl.say("#x")
        await made.carry(("bravo", "carl"))
        parts = bravo.ircd.parts
        with parts.turn():
            parts.router.publish(Redacted(parts.router.ids.stamp(), "bravo-ori!~ori@127.0.0.1", "#x", id, None))
        await made.carry(("alfa", "bravo"))
        assert [type(event) for event in alfa.shown] == [Redacted]
        await made.settle()
        assert [type(event) for event in alfa.shown] == [Redacted]
        origin, epoch, seq = id.split(".")
        assert alfa.mesh.log.seen.knows(origin, epoch, int(seq))
        assert id not in alfa.kept()  # and whoever asks it later is not told either


async def test_what_was_taken_back_before_it_came_is_shown_to_nobody_after_a_kill_either(tmp_path: Path) -> None:
    async with net(tmp_path, TRIANGLE) as made:
        await made.heal()
        alfa, bravo, carl = made.servers["alfa"], made.servers["bravo"], made.servers["carl"]
        id = carl.say("#x", "the password is xyzzy")
        await made.carry(("bravo", "carl"))
        bravo.take_back("#x", id)
        await made.carry(("alfa", "bravo"))
        assert [type(event) for event in alfa.shown] == [Redacted]
        alfa.write()
        await made.crash("alfa")
        await made.restart("alfa")
        await made.heal(*TRIANGLE[:2])  # carl has not heard of it, and tells what it has
        assert not any(isinstance(event, Said) for event in alfa.shown)
        assert id not in alfa.kept()


async def test_what_a_skill_answers_to_a_message_from_elsewhere_crosses_too(tmp_path: Path) -> None:
    async with net(tmp_path, PAIR) as made:
        await made.heal()
        alfa, bravo = made.servers["alfa"], made.servers["bravo"]

        def answer(said: Said) -> None:
            if said.text == "ping":
                alfa.say("#x", "pong")

        alfa.ircd.parts.router.subscribe(answer, Said)
        bravo.say("#x", "ping")
        await made.settle()
        assert [said.text for said in bravo.shown if isinstance(said, Said)] == ["ping", "pong"]


async def test_a_second_resume_is_refused(tmp_path: Path) -> None:
    async with net(tmp_path, PAIR) as made:
        await made.heal()
        peer = made.wires[PAIR[0]][0].peer
        with made.servers["alfa"].ircd.parts.turn():
            peer.receive(b"RESUME * 0\r\n")
        assert peer.link.stage is Stage.CLOSED


async def test_a_position_that_is_no_number_ends_the_link_and_nothing_is_noted(tmp_path: Path) -> None:
    async with net(tmp_path, PAIR) as made:
        await made.heal()
        made.servers["bravo"].say("#x")
        await made.settle()
        before = dict(made.servers["alfa"].mesh.log.cursors)
        peer = made.wires[PAIR[0]][0].peer
        line = b"@n=%d;id=bravo.e.9;at=1 :bravo-ori!o@h PRIVMSG #x :a\r\n"
        with made.servers["alfa"].ircd.parts.turn():
            peer.receive(line % 99_000_000 + line % 10**30)
        assert peer.link.stage is Stage.CLOSED
        assert made.servers["alfa"].mesh.log.cursors == before


@pytest.mark.fault("D9")
async def test_what_a_server_lost_comes_back_by_way_of_those_who_believe_it_alone(tmp_path: Path) -> None:
    """Its neighbour doubts what others say of it, and asks it; it knows its own words again."""
    square = [("alfa", "bravo"), ("alfa", "delta"), ("bravo", "carl"), ("carl", "delta")]
    async with net(tmp_path, square) as made:
        await made.heal()
        made.cut(("bravo", "carl"))
        bravo = made.servers["bravo"]
        id = bravo.say("#x")
        await made.carry(("alfa", "bravo"))
        await made.crash("bravo")
        await made.heal(("alfa", "bravo"))
        assert all(server.kept() == {id} for server in made.servers.values())
        assert all(server.published == {id: 1} for server in made.servers.values())


async def test_to_ask_is_not_to_have(tmp_path: Path) -> None:
    """Who asks the speaker about a message in doubt is told it like everything else that was missed."""
    async with net(tmp_path, PAIR) as made:
        alfa, bravo = made.servers["alfa"], made.servers["bravo"]
        id = bravo.say("#x")
        made.link(PAIR[0])
        while not bravo.mesh.links:
            await made.carry(PAIR[0], 1)
        with bravo.ircd.parts.turn():
            entry = bravo.mesh.log.recent[0]
            bravo.mesh.links["alfa"].receive(f"{entry.data}\r\n".encode())
        await made.settle()
        assert alfa.published == {id: 1}


async def test_what_is_in_doubt_for_long_no_longer_keeps_the_peer_from_its_acknowledgement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that is linked here says something that it may not tell us itself; another one does."""
    restricted = {("carl", "alfa"): {"trust": "restricted", "channels": ("#shop",)}}
    async with net(tmp_path, TRIANGLE, trust=restricted) as made:
        await made.heal()
        alfa, bravo = made.servers["alfa"], made.servers["bravo"]
        made.servers["carl"].say("#general")
        await made.settle()
        link = bravo.mesh.links["alfa"].link
        assert link.acked < bravo.mesh.log.position
        ahead = 3 * alfa.mesh.settings.timeout
        now = alfa.mesh.host.monotonic
        monkeypatch.setattr(Host, "monotonic", lambda host: now() + ahead)
        await made.settle()  # as once a second
        with bravo.ircd.parts.turn():
            link.send(Message("PING", ("bravo",)))
        await made.settle()
        assert link.acked == bravo.mesh.log.position


async def test_a_stranger_who_comes_and_goes_renews_no_doubt(tmp_path: Path) -> None:
    async with net(tmp_path, TRIANGLE) as made:
        await made.heal()
        alfa = made.servers["alfa"]
        line = b"@n=9;id=carl.e.9;at=1 :carl-eve!o@h PRIVMSG #x :trust me\r\n"
        with alfa.ircd.parts.turn():
            alfa.mesh.links["bravo"].receive(line)
        doubts = dict(alfa.mesh.messages._doubts._doubts)
        stranger = alfa.mesh.adopt(Wire(), None)  # type: ignore[arg-type]
        with alfa.ircd.parts.turn():
            stranger.lost("gone")
        assert doubts and alfa.mesh.messages._doubts._doubts == doubts


@pytest.mark.fault("D8")
async def test_what_was_taken_back_during_a_split_is_told_to_nobody(tmp_path: Path) -> None:
    async with net(tmp_path, PAIR) as made:
        alfa, bravo = made.servers["alfa"], made.servers["bravo"]
        made.link(PAIR[0])
        await made.settle()
        made.cut(PAIR[0])
        on_disk = alfa.say("#x", "the password is xyzzy")
        alfa.write()
        in_memory = alfa.say("#x", "the password is xyzzy")
        stays = alfa.say("#x", "never mind")
        for id in (on_disk, in_memory):
            alfa.take_back("#x", id)
        alfa.write()
        await made.heal()
        assert [type(event) for event in bravo.shown] == [Said, Redacted, Redacted]
        assert bravo.shown[0].id.msgid == stays
        for server in (alfa, bravo):
            assert not any("xyzzy" in entry.data for entry in server.mesh.log._reader.since(0, 100))


async def test_what_an_older_version_kept_of_what_was_taken_back_goes_with_its_upgrade(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with net(tmp_path, PAIR) as made:
        alfa, bravo = made.servers["alfa"], made.servers["bravo"]
        await made.crash("bravo")
        with monkeypatch.context() as older:
            older.setattr(EventLog, "blank", lambda log, msgid: None)
            older.setattr(admission, "CAPS", ("leave",))
            await made.crash("alfa")
            await made.restart("alfa")
            alfa.take_back("#x", alfa.say("#x", "the password is xyzzy"))
            alfa.write()
            assert any("xyzzy" in entry.data for entry in alfa.mesh.log._reader.since(0, 100))
            await made.crash("alfa")
        await made.restart("alfa")
        await made.restart("bravo")
        await made.heal()
        assert [type(event) for event in bravo.shown] == [Redacted]
