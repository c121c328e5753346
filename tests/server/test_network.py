"""The state of the mesh: the same events make the same state, and it never contradicts itself."""

from collections import Counter
from collections.abc import Callable
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culture.protocol.modes import ModeChange
from culture.protocol.names import fold
from culture.server.core.ids import EventId
from culture.server.core.network import Network
from culture.server.core.state import Channel, User
from culture.server.events import (
    Arrived,
    AwaySet,
    Event,
    Invited,
    Joined,
    Kicked,
    Left,
    ModeSet,
    Parted,
    Renamed,
    TopicSet,
    UserModeSet,
    Walloped,
)

STANDING = "#General"
NICKS = ("ada", "Ori", "ORI", "eve", "bob")
CHANNELS = (STANDING, "#general", "#two", "#TWO", "#three")


def source(nick: str) -> str:
    return f"{nick}!~tester@host"


nicks, channels, texts = st.sampled_from(NICKS), st.sampled_from(CHANNELS), st.sampled_from(["", "one", "two"])
members = st.builds(ModeChange, st.booleans(), st.sampled_from("ov"), nicks)
masks = st.builds(ModeChange, st.booleans(), st.sampled_from("beI"), st.sampled_from(["*!*@*", "m:*!*@*", "ada!*@*"]))
flags = st.builds(ModeChange, st.booleans(), st.sampled_from("imnstCD"), st.none())
keys = st.builds(ModeChange, st.booleans(), st.just("k"), texts)
limits = st.builds(lambda add, most: ModeChange(add, "l", str(most) if add else None), st.booleans(), st.integers(1, 9))
changes = st.lists(members | masks | flags | keys | limits, min_size=1, max_size=4).map(tuple)
user_changes = st.lists(st.builds(ModeChange, st.booleans(), st.sampled_from("BRiow"), st.none()), min_size=1).map(
    tuple
)
Make = Callable[[EventId], Event]


def event(kind: type, *fields: st.SearchStrategy[object]) -> st.SearchStrategy[Make]:
    """What somebody did, still without its id."""
    return st.tuples(*fields).map(lambda values: lambda stamp: kind(stamp, *values))


sources = nicks.map(source)
events = st.lists(
    st.one_of(
        event(Arrived, nicks, *map(st.just, ("~tester", "host", "A Tester", "spark"))),
        event(Joined, sources, channels, st.sampled_from(["", "o"])),
        event(Joined, sources, channels, st.just("")),
        event(Parted, sources, channels),
        event(Kicked, sources, channels, nicks, texts),
        event(Left, sources, texts),
        event(Renamed, sources, nicks),
        event(TopicSet, sources, channels, texts),
        event(ModeSet, sources, channels, changes),
        event(UserModeSet, sources, user_changes),
        event(AwaySet, sources, st.none() | texts),
        event(Invited, sources, nicks, channels),
        event(Walloped, sources, texts),
    ),
    max_size=25,
)


def stamped(makes: list[Make]) -> list[Event]:
    numbers = count(1)
    return [make(EventId("spark", "e", number := next(numbers), float(number))) for make in makes]


def possible(network: Network, happened: Event) -> bool:
    """Two users never have one nick: that is settled before there is an event."""
    match happened:
        case Arrived(nick=nick):
            return network.user(nick) is None
        case Renamed(source=who, new=new):
            return network.user(new) in (None, network.user(who.partition("!")[0]))
    return True


def picture(network: Network) -> object:
    """Everything there is to know, in plain values."""
    return (
        {key: describe_user(user) for key, user in network.users.items()},
        {key: describe_channel(channel) for key, channel in network.channels.items()},
        list(network.gone),
        network.most_users,
    )


def describe_user(user: User) -> object:
    where = sorted(channel.name for channel in user.channels)
    invited = sorted(channel.name for channel in user.invitations)
    return user.source, user.modes, user.kind, user.away, where, invited


def describe_channel(channel: Channel) -> object:
    held = {user.nick: status for user, status in channel.members.items()}
    setup = channel.topic, channel.flags, channel.key, channel.limit, channel.lists, channel.is_guarded
    return channel.name, channel.created, channel.standing, held, setup


def check(network: Network) -> None:
    """Nothing in the state contradicts anything else in it."""
    users, rooms = network.users, network.channels
    assert all(key == fold(user.nick) for key, user in users.items())
    assert all(key == fold(channel.name) for key, channel in rooms.items())
    assert fold(STANDING) in rooms
    modes: Counter[str] = Counter()
    for user in users.values():
        modes.update(user.modes)
        assert all(user in channel.members and rooms[fold(channel.name)] is channel for channel in user.channels)
        assert all(user in channel.invited and rooms[fold(channel.name)] is channel for channel in user.invitations)
    assert all(network.count(mode) == modes[mode] for mode in "BRiow")
    for channel in rooms.values():
        assert channel.members or channel.standing
        assert all(channel in user.channels and users[fold(user.nick)] is user for user in channel.members)
        assert all(channel in user.invitations and users[fold(user.nick)] is user for user in channel.invited)
        assert all(status in ("", "o", "v", "ov") for status in channel.members.values())
        assert channel.is_guarded == bool(channel.flags & {"m", "C"} or channel.lists.get("b"))


def opened() -> Network:
    network = Network([STANDING])
    network.open_standing(0.0)
    return network


@given(events)
def test_the_same_events_make_the_same_state(makes: list[Make]) -> None:
    """Two networks converge, and tell the same people of each change, each once."""
    here, there = opened(), opened()
    for happened in stamped(makes):
        if possible(here, happened):
            seers, others = ([user.nick for user in network.apply(happened)] for network in (here, there))
            assert sorted(seers) == sorted(others)
            assert len(seers) == len(set(seers))
    assert picture(here) == picture(there)


@given(events)
def test_the_state_never_contradicts_itself(makes: list[Make]) -> None:
    network = opened()
    for happened in stamped(makes):
        if possible(network, happened):
            network.apply(happened)
            check(network)


@given(events, st.lists(st.tuples(channels, changes), min_size=1, max_size=5))
def test_modes_said_twice_are_set_once(makes: list[Make], said: list[tuple[str, tuple[ModeChange, ...]]]) -> None:
    """What a peer tells again changes nothing."""
    network = opened()
    for happened in stamped(makes):
        if possible(network, happened):
            network.apply(happened)
    for name, wanted in said:
        happened = ModeSet(EventId("spark", "e", 1000, 1000.0), source("ada"), name, wanted)
        network.apply(happened)
        before = picture(network)
        network.apply(happened)
        assert picture(network) == before


@pytest.fixture
def network() -> Network:
    """Ada and Ori, nowhere yet."""
    made = opened()
    for nick in ("ada", "Ori"):
        made.apply(Arrived(AT, nick, "~tester", "host", "A Tester", "spark"))
    return made


AT = EventId("spark", "e", 1, 10.0)
LATER = EventId("spark", "e", 2, 20.0)


@pytest.mark.parametrize(
    "end",
    [
        Parted(LATER, source("ada"), "#two"),
        Kicked(LATER, source("ada"), "#two", "ada", "bye"),
        Left(LATER, source("ada"), "bye"),
    ],
    ids=["part", "kick", "quit"],
)
@pytest.mark.parametrize(("name", "stays"), [("#Two", False), ("#GENERAL", True)])
def test_an_empty_channel_is_gone_unless_it_stands(network: Network, end: Event, name: str, stays: bool) -> None:
    network.apply(Joined(AT, source("ada"), name, "o"))
    network.apply(ModeSet(AT, source("ada"), name, (ModeChange(True, "m"), ModeChange(True, "b", "x!*@*"))))
    network.apply(Invited(AT, source("ada"), "Ori", name))
    network.apply(end._replace(channel=name) if isinstance(end, Parted | Kicked) else end)
    check(network)
    assert (network.channel(name) is not None) == stays
    network.apply(Joined(LATER, source("Ori"), name, "o"))
    channel = network.channel(name)
    assert channel is not None
    assert ("m" in channel.flags) == bool(channel.lists.get("b")) == stays
    assert channel.created == (0.0 if stays else LATER.at)


def test_who_was_not_there_is_not_seen_leaving(network: Network) -> None:
    network.apply(Joined(AT, source("ada"), "#two", "o"))
    assert list(network.apply(Parted(LATER, source("Ori"), "#two"))) == []
    assert list(network.apply(Kicked(LATER, source("ada"), "#two", "Ori", "bye"))) == []
    check(network)


def test_an_invitation_ends_with_the_channel(network: Network) -> None:
    network.apply(Joined(AT, source("ada"), "#two", "o"))
    network.apply(Invited(AT, source("ada"), "Ori", "#two"))
    ori = network.users["ori"]
    assert [channel.name for channel in ori.invitations] == ["#two"]
    network.apply(Parted(LATER, source("ada"), "#two"))
    assert not ori.invitations


def test_who_sees_a_change_is_told_in_the_order_of_joining(network: Network) -> None:
    """Not in one that differs from run to run, as that of a set of objects does."""
    nicks = [f"user{number}" for number in range(30)]
    for nick in nicks:
        network.apply(Arrived(AT, nick, "~tester", "host", "A Tester", "spark"))
        network.apply(Joined(AT, source(nick), "#two"))
        network.apply(Joined(AT, source(nick), "#three"))
    assert [user.nick for user in network.apply(AwaySet(LATER, source("user0"), "gone"))] == nicks[1:]
    assert [user.nick for user in network.apply(Left(LATER, source("user0"), "bye"))] == nicks[1:]
