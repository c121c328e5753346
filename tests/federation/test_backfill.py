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

from tests.federation.virtual import Net

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
            "say say say say link link cut crash restart carry carry carry carry write write drop".split()
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
