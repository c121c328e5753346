"""Who is there, as servers and people see it: the same on every server, and what everybody was told.

Presence is read from the servers' own state, which NAMES and WHO show.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from culture.federation.trust import owner_of
from culture.protocol.names import fold
from culture.protocol.vocabulary import UserClass
from tests.simulation.clients import Person
from tests.simulation.violation import Violation
from tests.simulation.workload import LOCAL, MAIN

if TYPE_CHECKING:
    from culture.server.core.state import Channel, User
    from tests.simulation.servers import SimServer
    from tests.simulation.shown import ShownChannel
    from tests.simulation.universe import Universe

_NICKS = f"channel {MAIN} nicks"


def check_presence(universe: "Universe") -> list[Violation]:
    """Return everything that is wrong with who is there."""
    return [*_differences(universe), *_strangers(universe), *_told(universe)]


def _differences(universe: "Universe") -> list[Violation]:
    """Every server shows the same users, members with ranks, topics, modes and lists (docs/server/mesh.md).

    Users behind a link without full trust are no operators and set no modes; those behind a restricted one are shown
    only in the channels that cross. There only the members of the main channel are the same.
    """
    pictures = {server.name: _picture(server) for server in universe.servers}
    if not universe.has_full_trust:
        pictures = {name: {"members": picture[_NICKS]} for name, picture in pictures.items()}
    first = universe.servers[0].name
    wrong = []
    for name, picture in pictures.items():
        for key in sorted(pictures[first].keys() | picture.keys()):
            one, other = pictures[first].get(key), picture.get(key)
            if one != other:
                wrong.append(Violation("presence", f"{key}: {first} has {one}, {name} has {other}"))
    return wrong


def _picture(server: "SimServer") -> dict[str, Any]:
    assert server.ircd is not None
    network = server.ircd.parts.network
    picture: dict[str, Any] = {f"user {fold(user.nick)}": _described(user) for user in network.users.values()}
    for channel in network.channels.values():
        if channel.members and fold(channel.name) != LOCAL:  # another one on each server
            members = sorted((user.nick, rank) for user, rank in channel.members.items())
            key = f"channel {fold(channel.name)}"
            picture[f"{key} members"] = members
            picture[f"{key} nicks"] = [nick for nick, _ in members]
            picture[f"{key} topic"] = channel.topic
            picture[f"{key} modes"] = (sorted(channel.flags), channel.key, channel.limit, channel.shared)
            picture[f"{key} lists"] = {mode: sorted(masks) for mode, masks in channel.lists.items() if masks}
    return picture


def _described(user: "User") -> tuple[Any, ...]:
    """Return what is the same of a user on every server."""
    return (user.nick, user.username, user.realname, user.host, user.server, user.away, _account(user), user.kind)


def _account(user: "User") -> str:
    """Return the account as other servers show it, with its server."""
    account = user.account or ""
    return account if not account or "@" in account else f"{account}@{owner_of(fold(user.nick))}"


def _strangers(universe: "Universe") -> list[Violation]:
    """Every server has exactly the users who are there, with their accounts; a hostile peer's are its own affair.

    Over a restricted link go users of the channels that cross, so no agents, who are in none.
    """
    wrong = []
    honest = {server.name for server in universe.servers}
    there = {fold(person.nick): person for person in universe.everybody if person.session is not None}
    for server in universe.servers:
        assert server.ircd is not None
        users = {fold(user.nick): user for user in server.ircd.parts.network.users.values()}
        users = {nick: user for nick, user in users.items() if owner_of(nick) in honest}
        ghosts = sorted(users.keys() - there.keys())
        missing = sorted(
            nick
            for nick in there.keys() - users.keys()
            if there[nick].server is server or there[nick].channels or not universe.is_restricted
        )
        if ghosts or missing:
            wrong.append(Violation("presence", f"{server.name} has {ghosts}, who are gone, and lacks {missing}"))
        for nick in sorted(users.keys() & there.keys()):
            wrong += [
                Violation("presence", f"{server.name}: {text}")
                for text in _unlike(users[nick], there[nick], server, universe.has_full_trust)
            ]
    return wrong


def _unlike(user: "User", person: Person, server: "SimServer", has_full_trust: bool) -> Iterator[str]:
    """Yield what is not as the person was told."""
    account = f"{person.account}@{person.server.name}"
    if (user.nick, _account(user)) != (person.nick, account):
        yield f"{person.nick} of {account} is {user.nick} of {_account(user)}"
    kind = UserClass.AGENT if person.account.startswith("a") else UserClass.HUMAN
    if user.kind != kind and (has_full_trust or person.server is server):
        yield f"{user.nick} is {user.kind!r} in the place of {kind!r}"
    assert person.session is not None
    away = person.session.away
    if away is not None and away != (user.away or ""):
        yield f"{user.nick} was told to be away with {away!r}, and is with {user.away!r}"
    channels = {fold(channel.name) for channel in user.channels}
    wanted = set(person.session.shown.channels)
    if person.server is not server and has_full_trust:
        channels, wanted = channels - {LOCAL}, wanted - {LOCAL}
    elif person.server is not server:
        channels, wanted = channels & {MAIN}, wanted & {MAIN}
    if channels != wanted:
        yield f"{user.nick} is in {sorted(channels)}, and was told {sorted(wanted)}"


def _told(universe: "Universe") -> list[Violation]:
    """What a connection was shown of a channel, from NAMES to the last MODE, is what its server has."""
    wrong = []
    for person in universe.everybody:
        assert person.server.ircd is not None
        network = person.server.ircd.parts.network
        for name, shown in person.session.shown.channels.items() if person.session is not None else ():
            channel = network.channel(name)
            found = ["it is not there"] if channel is None else _mistold(shown, channel)
            wrong += [Violation("shown", f"{person.nick} was shown of {name}: {text}") for text in found]
    return wrong


def _mistold(shown: "ShownChannel", channel: "Channel") -> Iterator[str]:
    ranks = {user.nick: rank for user, rank in channel.members.items()}
    if shown.members.keys() != ranks.keys():
        more, less = sorted(shown.members.keys() - ranks.keys()), sorted(ranks.keys() - shown.members.keys())
        yield f"{more}, who are not there, and not {less}"
    for nick in sorted(shown.members.keys() & ranks.keys()):
        told = {letter for letter, is_set in shown.members[nick].items() if is_set}
        known = {letter for letter in shown.members[nick] if letter in ranks[nick]}
        if told != known:
            yield f"the ranks {sorted(told)} of {nick}, who has {ranks[nick]!r}"
    topic = "" if channel.topic is None else channel.topic.text
    if shown.topic is not None and shown.topic != topic:
        yield f"the topic {shown.topic!r}, which is {topic!r}"
    wrong = [letter for letter, is_set in shown.modes.items() if is_set != (letter in channel.flags)]
    if unlike := [letter for letter in wrong if letter not in "kl"]:
        yield f"{sorted(unlike)} of the modes are not as shown; it has {sorted(channel.flags)}"
