"""What must be true when everything is mended and quiet, each with the promise that it checks.

What was said is read as a client reads it, with CHATHISTORY over a connection of its own: an answer that hides a
message is as wrong as a message that is lost. Presence is read from the servers' own state, which NAMES and WHO show.
"""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from culture.protocol.names import fold
from tests.simulation.clients import Person, SaidMessage
from tests.simulation.hostile import GHOST, NAME
from tests.simulation.readers import Reading, read_all
from tests.simulation.workload import CLOSED, LOCAL, MAIN

if TYPE_CHECKING:
    from tests.simulation.servers import SimServer
    from tests.simulation.universe import Universe

_SHOWN = 5  # examples in one complaint
_NICKS = f"channel {MAIN} nicks"
_HOSTILE = (f"{NAME}.", f"{GHOST}.")
_SETTLED = 2.0
"""Seconds after which a REDACT is on every disk, if its server has lived on."""


class Violation(NamedTuple):
    """Something that was wrong: the rule, and what was seen."""

    rule: str
    text: str


def check(universe: "Universe") -> list[Violation]:
    """Return everything that is wrong."""
    wrong = [*_presence(universe), *_heard(universe.people), *_queues(universe.servers)]
    readings = read_all(universe)
    failed = [Violation("readable", f"{each.person.first_nick}: {each.failure}") for each in readings if each.failure]
    if failed:
        return wrong + failed
    wrong += _same_channel(readings)
    wrong += _receipted(readings)
    wrong += _private(readings, universe.is_restricted)
    wrong += _redacted(readings)
    wrong += _missed(readings)
    wrong += _facts(universe, readings)
    wrong += _leaked(universe, readings)
    return wrong


def _presence(universe: "Universe") -> list[Violation]:
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
    picture: dict[str, Any] = {
        f"user {fold(user.nick)}": (user.nick, user.username, user.realname, user.server, user.away)
        for user in network.users.values()
    }
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


def _heard(people: Sequence[Person]) -> list[Violation]:
    """No client is shown a message twice in one connection."""
    return [
        Violation("twice", f"{person.first_nick} was shown again {person.doubles[:_SHOWN]}")
        for person in people
        if person.doubles
    ]


def _queues(servers: "Sequence[SimServer]") -> list[Violation]:
    """Nothing waits when all is quiet: no log, no history, no send queue."""
    wrong = []
    for server in servers:
        assert server.ircd is not None
        waiting = sum(session.connection.waiting for session in server.ircd.parts.sessions)
        if waiting:
            wrong.append(Violation("queue", f"{server.name} has {waiting} bytes for clients"))
        if server.mesh.log.waiting:
            wrong.append(Violation("queue", f"{server.name} has {server.mesh.log.waiting} changes of the log"))
    return wrong


def _same_channel(readings: Sequence[Reading]) -> list[Violation]:
    """Every server ends up with the same messages, each once, in the same order (docs/server/mesh.md).

    Only of a hostile peer a server may lack some after a crash: it takes them from nobody else, and is not told again.
    """
    wrong = []
    channels = [[pair for pair in each.channel if not pair[0].startswith(_HOSTILE)] for each in readings]
    first = channels[0]
    for each, channel in zip(readings, channels, strict=True):
        name = each.person.first_nick
        twice = [msgid for msgid, count in Counter(msgid for msgid, _ in each.channel).items() if count > 1]
        if twice:
            wrong.append(Violation("history", f"{name} reads twice {twice[:_SHOWN]}"))
        if channel == first:
            continue
        one, other = dict(first), dict(channel)
        if one == other:
            at = next(at for at, pair in enumerate(first) if pair != channel[at])
            seen = first[at : at + 2], channel[at : at + 2]
            wrong.append(Violation("order", f"{readings[0].person.first_nick} reads {seen[0]}, {name} {seen[1]}"))
        else:
            text = f"{readings[0].person.first_nick} alone reads {sorted(one.items() - other.items())[:_SHOWN]}"
            wrong.append(Violation("history", f"{text}, {name} alone {sorted(other.items() - one.items())[:_SHOWN]}"))
    return wrong


def _receipted(readings: Sequence[Reading]) -> list[Violation]:
    """A receipt means that the message survives any crash (receipts.md), and it reaches every server (mesh.md)."""
    wrong = []
    said = [said for reading in readings for said in reading.person.said if said.target == MAIN]
    for reading in readings:
        found = dict(reading.channel)
        lost = [each for each in said if _must_be_there(each) and found.get(each.msgid) != each.text]
        if lost:
            wrong.append(Violation("lost", f"{reading.person.first_nick} cannot read {_named(lost)}"))
    return wrong


def _private(readings: Sequence[Reading], is_restricted: bool) -> list[Violation]:
    """The sender's history has it; the recipient has it, heard or readable.

    "After a crash, private messages of the last moment can be missing in the history of the recipient's server, but the
    recipient has them, and so has the sender's history" (docs/server/mesh.md). A restricted link carries them "between
    members of a channel that crosses": not to somebody who has left it before they arrive.
    """
    wrong = []
    by_nick = {reading.person.first_nick: reading for reading in readings}
    for reading in readings:
        for said in reading.person.said:
            there = by_nick.get(said.target)
            if there is None or not _must_be_there(said):
                continue
            own = reading.private[said.target].get(said.msgid)
            other = there.private[reading.person.first_nick].get(said.msgid)
            if own != said.text:
                wrong.append(Violation("lost", f"its sender cannot read {_named([said])} to {said.target}"))
            if other is None and said.msgid not in there.person.heard and not is_restricted:
                wrong.append(Violation("lost", f"{said.target} has neither heard nor can read {_named([said])}"))
    return wrong


def _redacted(readings: Sequence[Reading]) -> list[Violation]:
    """What was taken back is nowhere.

    A REDACT has no receipt. So this holds for one whose server has lived on for a moment, or lives still.
    """
    wrong = []
    for reading in readings:
        server = reading.person.server
        gone = [said for said in reading.person.said if said.redacted_life == server.lives]
        for each in readings:
            found = dict(each.channel)
            still = [said for said in gone if said.msgid in found]
            if still:
                wrong.append(Violation("redacted", f"{each.person.first_nick} still reads {_named(still)}"))
    return wrong


def _missed(readings: Sequence[Reading]) -> list[Violation]:
    """HISTORY MISSED repeats but never omits: all that CHATHISTORY shows is in it (extensions/history.md)."""
    wrong = []
    for each in readings:
        omitted = [msgid for msgid, _ in each.channel if msgid not in each.missed]
        omitted += [msgid for found in each.private.values() for msgid in found if msgid not in each.missed]
        if omitted:
            wrong.append(Violation("missed", f"{each.person.first_nick}: MISSED omits {omitted[:_SHOWN]}"))
    return wrong


def _facts(universe: "Universe", readings: Sequence[Reading]) -> list[Violation]:
    """All servers have the same facts, and each that was said to be kept (extensions/ledger.md).

    Facts cross only links with full trust; without it each server has those of its own agents.
    """
    wrong = []
    for each in readings:
        name = each.person.first_nick
        agents = [one for one in universe.agents if universe.has_full_trust or one.server is each.person.server]
        kept = {key for agent in agents for key, is_kept in agent.facts.items() if is_kept}
        if universe.has_full_trust and each.facts != readings[0].facts:
            other = readings[0]
            text = f"{other.person.first_nick} alone {sorted(other.facts - each.facts)[:_SHOWN]}, "
            wrong.append(Violation("facts", f"{text}{name} alone {sorted(each.facts - other.facts)[:_SHOWN]}"))
        if lost := kept - each.facts:
            wrong.append(Violation("facts", f"{name} has no {sorted(lost)[:_SHOWN]}, which was kept"))
    return wrong


def _leaked(universe: "Universe", readings: Sequence[Reading]) -> list[Violation]:
    """Nobody hears or reads what was for others: private messages, a closed channel, another server's local one."""
    wrong = []
    said = {each.text: each for person in universe.people for each in person.said}
    shown = [(each.person, text) for each in readings for text in each.all_texts]
    shown += [(person, text) for person in universe.everybody for text in person.heard.values()]
    for person, text in shown:
        if text in said and not _may_read(person, said[text]):
            wrong.append(
                Violation("leaked", f"{person.first_nick} was shown {_named([said[text]])} to {said[text].target}")
            )
    return wrong


def _may_read(person: Person, said: SaidMessage) -> bool:
    if said.target == CLOSED:
        return CLOSED in person.wanted_modes
    if said.target == LOCAL:
        return person.server is said.by.server
    return said.target == MAIN or person is said.by or person.first_nick == said.target


def _must_be_there(said: SaidMessage) -> bool:
    return said.is_receipted and not said.is_taken_back


def _named(said: Sequence[SaidMessage]) -> str:
    return f"{len(said)}: {[(each.msgid, each.text) for each in said[:_SHOWN]]}"
