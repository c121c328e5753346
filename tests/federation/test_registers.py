"""Channels that many servers change: whatever order they hear of it in, it ends the same on all of them."""

from collections.abc import Callable
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from culture.protocol.modes import ModeChange
from culture.server.core.state import Channel
from culture.server.events import Joined, MetadataSet, ModeSet, Parted, Renamed, TopicSet
from tests.federation.sides import Clock, Side

NAMES = ("a", "b", "c")
PAIRS = tuple(permutations(NAMES, 2))
ROOM = "#room"

Act = Callable[[dict[str, Side]], None]


def source(nick: str) -> str:
    return f"{nick}!u@h"


def _user(side: Side) -> str:
    return next(user.nick for user in side.network.users.values() if user.server == side.name)


def _modes(name: str, changes: list[ModeChange]) -> Act:
    def act(sides: dict[str, Side]) -> None:
        side = sides[name]
        channel = side.network.channel(ROOM)
        if channel is not None:
            meant = tuple(_aimed(channel, change) for change in changes)
            side.do(ModeSet(side.stamp(), source(_user(side)), ROOM, meant))

    return act


def _aimed(channel: Channel, change: ModeChange) -> ModeChange:
    """A rank goes to whoever of a server is in the room, by the nick they have here."""
    if change.mode not in "ov":
        return change
    present = [user.nick for user in channel.members if user.server == change.param]
    return change._replace(param=present[0] if present else f"{change.param}-nobody")


def _knows_a(side: Side) -> bool:
    """Somebody stays: a channel that all leave while others found it anew may give a rank less here than there."""
    channel = side.network.channel(ROOM)
    return channel is not None and any(user.server == "a" for user in channel.members)


def _membership(name: str, comes: bool) -> Act:
    def act(sides: dict[str, Side]) -> None:
        side = sides[name]
        nick, channel = _user(side), side.network.channel(ROOM)
        is_in = channel is not None and side.network.user(nick) in channel.members
        if comes and not is_in:
            side.do(Joined(side.stamp(), source(nick), ROOM, "" if channel is not None and channel.members else "o"))
        elif not comes and is_in and name != "a" and _knows_a(side):
            side.do(Parted(side.stamp(), source(nick), ROOM))

    return act


def _return(name: str) -> Act:
    """Somebody leaves and comes in again, without the rank of before."""

    def act(sides: dict[str, Side]) -> None:
        _membership(name, False)(sides)
        _membership(name, True)(sides)

    return act


def _simple(name: str, kind: str, value: str) -> Act:
    def act(sides: dict[str, Side]) -> None:
        side = sides[name]
        by = source(_user(side))
        if side.network.channel(ROOM) is None:
            return
        if kind == "topic":
            side.do(TopicSet(side.stamp(), by, ROOM, value))
        else:
            side.do(MetadataSet(side.stamp(), by, ROOM, kind, value or None))

    return act


def _rename(name: str, nick: str) -> Act:
    def act(sides: dict[str, Side]) -> None:
        side = sides[name]
        if _user(side) != f"{name}-{nick}":
            side.do(Renamed(side.stamp(), source(_user(side)), f"{name}-{nick}"))

    return act


def _deliver(pair: tuple[str, str], count: int) -> Act:
    def act(sides: dict[str, Side]) -> None:
        one, other = pair
        for _ in range(count):
            if sides[one].links.get(other):
                sides[other].take(one, sides[one].links[other].popleft())

    return act


def _cut_unnoticed(pair: tuple[str, str]) -> Act:
    """A link is lost, and both sides believe that there is still another way."""

    def act(sides: dict[str, Side]) -> None:
        one, other = pair
        if other in sides[one].links:
            sides[one].cut(other)
            sides[other].cut(one)

    return act


def _cut(pair: tuple[str, str]) -> Act:
    def act(sides: dict[str, Side]) -> None:
        one, other = pair
        if other in sides[one].links:
            sides[one].cut(other)
            sides[other].cut(one)
            for name in NAMES:
                if name not in pair:
                    # It is told by those who lost the link, after what they had told it before.
                    _deliver((one, name), 1_000)(sides)
                    _deliver((other, name), 1_000)(sides)
                for lost in set(NAMES) - _reached(sides, name):
                    sides[name].lose(lost)

    return act


def _reached(sides: dict[str, Side], name: str) -> set[str]:
    """Where a way leads to from here."""
    near = {name, *sides[name].links}
    return near.union(*(sides[each].links for each in near))


def _link(pair: tuple[str, str]) -> Act:
    def act(sides: dict[str, Side]) -> None:
        one, other = pair
        if other not in sides[one].links:
            sides[one].link(other)
            sides[other].link(one)

    return act


names = st.sampled_from(NAMES)
pairs = st.sampled_from(PAIRS)
ranks = st.builds(ModeChange, st.booleans(), st.sampled_from("ov"), names)
masks = st.builds(ModeChange, st.booleans(), st.sampled_from("beI"), st.sampled_from(["*!*@x", "*!*@y"]))
flags = st.builds(ModeChange, st.booleans(), st.sampled_from("imnt"), st.none())
keys = st.builds(lambda add: ModeChange(add, "k", "key"), st.booleans())
limits = st.builds(lambda add, most: ModeChange(add, "l", str(most) if add else None), st.booleans(), st.integers(1, 9))
changes = st.lists(ranks | masks | flags | keys | limits, min_size=1, max_size=3)
acts = st.one_of(
    st.builds(_modes, names, changes),
    st.builds(_membership, names, st.booleans()),
    st.builds(_simple, names, st.sampled_from(["topic", "color"]), st.sampled_from(["", "one", "two"])),
    st.builds(_rename, names, st.sampled_from(["u", "w"])),
    st.builds(_deliver, pairs, st.integers(1, 5)),
    st.builds(_deliver, pairs, st.just(50)),
    st.builds(_cut, pairs),
    st.builds(_link, pairs),
)

unheard = st.one_of(
    st.builds(_modes, names, st.lists(ranks, min_size=1, max_size=2)),
    st.builds(_return, st.sampled_from("bc")),
    st.builds(_cut_unnoticed, pairs),
    st.builds(_deliver, pairs, st.just(50)),
    st.builds(_link, pairs),
)


def meet(sides: dict[str, Side]) -> None:
    """Every link is up, and everything has arrived."""
    for pair in PAIRS:
        _link(pair)(sides)
    for _ in range(100):
        if not any(queue for side in sides.values() for queue in side.links.values()):
            return
        for pair in PAIRS:
            _deliver(pair, 1_000)(sides)
    raise AssertionError("they never come to rest")


def start() -> dict[str, Side]:
    clock = Clock()
    sides = {name: Side(name, clock) for name in NAMES}
    for side in sides.values():
        side.arrive("u")
    return sides


@pytest.mark.requirement("E04", "E12")
@settings(max_examples=300, deadline=None)
@given(st.booleans(), st.lists(acts, max_size=40))
def test_three_servers_agree_in_the_end(linked: bool, history: list[Act]) -> None:
    sides = start()
    if linked:
        meet(sides)
    for act in history:
        act(sides)
    meet(sides)
    pictures = [side.picture() for side in sides.values()]
    assert pictures[0] == pictures[1] == pictures[2]


@pytest.mark.requirement("E04", "E12")
@settings(max_examples=300, deadline=None)
@given(st.lists(unheard, max_size=20))
def test_three_servers_agree_on_the_ranks_of_who_left_and_came_unheard(history: list[Act]) -> None:
    sides = start()
    for name in NAMES:
        _membership(name, True)(sides)
        meet(sides)
    for act in history:
        act(sides)
    meet(sides)
    pictures = [side.picture() for side in sides.values()]
    assert pictures[0] == pictures[1] == pictures[2]
