"""What a hostile peer must not have changed: "what no server can do, whatever its trust" (docs/server/mesh.md).

The other invariants (``invariants.py``) hold beside it. These look into what the honest servers have stored and show:
nothing that the peer made up (``MARK``) is said, set or stored by anybody whom it may not speak for, and its own users
have no more than its trust gives them.
"""

import json
import sqlite3
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from culture.federation.trust import owner_of
from culture.protocol.vocabulary import UserClass
from tests.simulation.hostile import GHOST, MARK, NAME, HostilePeer
from tests.simulation.workload import MAIN

if TYPE_CHECKING:
    from tests.simulation.servers import SimServer
    from tests.simulation.universe import Universe

_THEIRS = (NAME, GHOST)
_SHOWN = 300
_MOST_GREETERS = 3
_MOST_WAITING = 1 << 20


def harm(universe: "Universe", peer: HostilePeer) -> list[str]:
    """Return everything that the hostile peer has changed without a right to."""
    said = {said.text for person in universe.people for said in person.said}
    honest = {server.name for server in universe.servers}
    found = [f"{person.first_nick} was shown {text!r}" for person in universe.people for text in _made_up(person)]
    for server in universe.servers:
        each = [*_history(server, said, honest, peer), *_facts(server, peer), *_state(server, peer), *_queues(server)]
        found += [f"{server.name}: {text[:_SHOWN]}" for text in each]
    return found


def _made_up(person: Any) -> Iterator[str]:
    yield from (text for text in person.heard.values() if MARK in text)


def _history(server: "SimServer", said: set[str], honest: set[str], peer: HostilePeer) -> Iterator[str]:
    """Nobody has said what they did not say; no account or class is claimed that is not the peer's to give."""
    assert server.ircd is not None
    history: Any = server.ircd.parts.skills.get("history")
    for kept in history._store.everything():
        entry = kept.entry
        owner = owner_of(entry.nick)
        if owner in honest:
            if entry.verb in ("PRIVMSG", "NOTICE") and (entry.text not in said or entry.origin != owner):
                yield f"{entry.msgid}: {entry.nick} has not said {entry.text!r}"
            elif MARK in f"{entry.text} {entry.data}":
                yield f"{entry.msgid}: {entry.verb} of {entry.nick}: {entry.text!r} {entry.data}"
        elif owner in _THEIRS:
            if entry.account is not None and not entry.account.endswith(f"@{owner}"):
                yield f"{entry.msgid}: {entry.nick} has the account {entry.account}"
            if entry.kind not in ("", UserClass.UNKNOWN) and peer.trust != "full":
                yield f"{entry.msgid}: {entry.nick} is {entry.kind}"


def _facts(server: "SimServer", peer: HostilePeer) -> Iterator[str]:
    """The ledger has facts of the peer's users if it has authority, and of nobody else's."""
    file = next(server.data.rglob("ledger.db"), None)
    if file is None:
        return
    with sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True) as connection:
        for nick, kind, key, value, origin in connection.execute("SELECT nick, kind, key, value, origin FROM facts"):
            is_theirs = origin == NAME and owner_of(nick) == NAME and peer.trust == "full"
            if MARK in f"{key} {value}" and kind != "link" and not is_theirs:
                yield f"fact {kind} {key} of {nick} from {origin}: {value}"
    connection.close()


def _state(server: "SimServer", peer: HostilePeer) -> Iterator[str]:
    """Users and the channel are as honest users have made them."""
    assert server.ircd is not None
    network = server.ircd.parts.network
    for user in network.users.values():
        owner = owner_of(user.nick)
        if owner not in _THEIRS and MARK in f"{user.nick} {user.realname} {user.account} {json.dumps(user.metadata)}":
            yield f"there is a user {user.nick} with account {user.account}"
        elif owner in _THEIRS and user.account is not None and not user.account.endswith(f"@{owner}"):
            yield f"{user.nick} has the account {user.account}"
        elif owner in _THEIRS and user.kind != UserClass.UNKNOWN and peer.trust != "full":
            yield f"{user.nick} is {user.kind}"
    if network.channel(f"#{MARK}") is not None:
        yield f"#{MARK} is there"
    channel = network.channel(MAIN)
    if channel is None or peer.trust == "full":
        return
    if {"i", "m"} & set(channel.flags) or channel.key is not None or channel.limit is not None:
        yield f"the channel has modes {sorted(channel.flags)}, key {channel.key}, limit {channel.limit}"
    if channel.topic is not None and MARK in channel.topic.text:
        yield f"the channel has the topic {channel.topic}"
    masks = {mask for entries in channel.lists.values() for mask in entries}
    if "*!*@*" in masks or any(MARK in mask for mask in masks) or MARK in json.dumps(channel.metadata):
        yield f"the channel has masks {masks}, metadata {channel.metadata}"
    ranked = [user.nick for user, rank in channel.members.items() if rank and owner_of(user.nick) in _THEIRS]
    if ranked:
        yield f"{ranked} have ranks"


def _queues(server: "SimServer") -> Iterator[str]:
    """Nothing has grown without a bound."""
    mesh = server.mesh
    waiting = sum(peer.connection.waiting for peer in mesh.links.values())
    if waiting > _MOST_WAITING or len(mesh.greeters) > _MOST_GREETERS or len(mesh.closing) > _MOST_GREETERS:
        yield f"{waiting} bytes wait for peers, {len(mesh.greeters)} connections greet, {len(mesh.closing)} close"
