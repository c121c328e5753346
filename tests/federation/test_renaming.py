"""A channel gets another name while others come and go: in the end everybody is where their own server says."""

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from culture.server.core.state import User
from culture.server.events import Arrived, ChannelRenamed, Event, Joined, Parted
from tests.federation.test_backfill import FAST, PAIR, TRIANGLE, net, topologies
from tests.federation.virtual import Net, Server

CHANNELS = ("#a", "#b", "#c")
UNBELIEVED = {("bravo", "alfa"): {"trust": "no_authority"}}


def user(server: Server) -> User:
    found = server.ircd.parts.network.user(f"{server.name}-u")
    assert found is not None
    return found


def publish(server: Server, kind: type[Event], *words: Any) -> None:
    parts = server.ircd.parts
    with parts.turn():
        parts.router.publish(kind(parts.router.ids.stamp(), *words))


def join(server: Server, channel: str) -> None:
    there = server.ircd.parts.network.channel(channel)
    if there is None or user(server) not in there.members:
        publish(server, Joined, user(server).source, channel, "" if there else "o", None, "r")


def part(server: Server, channel: str) -> None:
    if channel in {each.name for each in user(server).channels}:
        publish(server, Parted, user(server).source, channel)


def rename(server: Server, channel: str, new: str) -> None:
    is_there = channel in {each.name for each in user(server).channels}
    if is_there and server.ircd.parts.network.channel(new) is None:
        publish(server, ChannelRenamed, user(server).source, channel, new, "better")


async def everybody(made: Net) -> None:
    """One user on each server, in the first channel."""
    await made.heal()
    for server in made.servers.values():
        publish(server, Arrived, f"{server.name}-u", "~u", "h", "r", server.name, None, "human", "")
    await made.settle()
    for server in made.servers.values():
        join(server, CHANNELS[0])
        await made.settle()


async def settle(made: Net) -> None:
    """As after some seconds."""
    for _ in made.servers:
        await made.settle()
        for server in made.servers.values():
            server.mesh.presence._disputed = float("-inf")
            with server.ircd.parts.turn():
                server.mesh.presence.clear_up()
    await made.settle()


def places(server: Server) -> dict[str, set[str]]:
    """Where each user is, as this server sees it."""
    users = server.ircd.parts.network.users.values()
    return {each.nick: {channel.name for channel in each.channels} for each in users}


@pytest.mark.parametrize("edges", [PAIR, TRIANGLE])
async def test_who_joins_the_new_name_before_they_hear_of_it(tmp_path: Path, edges: list[tuple[str, str]]) -> None:
    async with net(tmp_path, edges) as made:
        await everybody(made)
        join(made.servers["bravo"], "#b")
        rename(made.servers["alfa"], "#a", "#b")
        await settle(made)
        found = [places(server) for server in made.servers.values()]
        assert all(each == found[0] for each in found)
        assert found[0]["alfa-u"] == {"#b"} and found[0]["bravo-u"] == {"#a", "#b"}


async def test_a_name_that_is_not_believed_parts_those_who_are_moved_from_those_who_are_not(tmp_path: Path) -> None:
    async with net(tmp_path, PAIR, trust=UNBELIEVED) as made:
        await everybody(made)
        rename(made.servers["alfa"], "#a", "#b")
        await settle(made)
        for server in made.servers.values():
            assert places(server) == {"alfa-u": {"#b"}, "bravo-u": {"#a"}}


async def test_who_is_not_believed_has_others_told_once_a_second_at_most(tmp_path: Path) -> None:
    async with net(tmp_path, PAIR, trust=UNBELIEVED) as made:
        await everybody(made)
        alfa, bravo = made.servers["alfa"], made.servers["bravo"]
        rename(alfa, "#a", "#b")
        await made.settle()
        bravo.mesh.presence._disputed = (
            bravo.mesh.host.monotonic() + 1_000
        )  # within the same second, however slow we are
        sent = bravo.mesh.links["alfa"].sent
        for number in range(20):
            rename(alfa, CHANNELS[1 + number % 2], CHANNELS[2 - number % 2])
            await made.carry(PAIR[0])
        assert bravo.mesh.links["alfa"].sent == sent


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["join", "part", "rename", "carry", "carry"]),
        st.integers(0, 11),
        st.sampled_from(CHANNELS),
        st.sampled_from(CHANNELS),
    ),
    max_size=12,
)


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(topologies(), STEPS, st.booleans())
def test_all_agree_where_everybody_is(edges: list[tuple[str, str]], steps: list[Any], believed: bool) -> None:
    with tempfile.TemporaryDirectory(dir=FAST if FAST.is_dir() else None) as folder:
        asyncio.run(_agree(Path(folder), edges, steps, {} if believed else UNBELIEVED))


async def _agree(folder: Path, edges: list[tuple[str, str]], steps: list[Any], trust: dict[Any, Any]) -> None:
    async with net(folder, edges, trust=trust) as made:
        await everybody(made)
        servers = list(made.servers.values())
        for what, number, channel, other in steps:
            server = servers[number % len(servers)]
            match what:
                case "join":
                    join(server, channel)
                case "part":
                    part(server, channel)
                case "rename":
                    rename(server, channel, other)
                case _:
                    await made.carry(edges[number % len(edges)], 1 + number % 3)
        await settle(made)
        found = [places(server) for server in servers]
        assert all(each == found[0] for each in found)
