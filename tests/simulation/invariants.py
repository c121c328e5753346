"""What must be true when everything is mended and quiet, each with the promise that it checks.

What was said is read as a client reads it, with CHATHISTORY over a connection of its own: an answer that hides a
message is as wrong as a message that is lost. What is stored is read too (``stored.py``), because of a closed channel
nobody may read what is older than the channel. Who is there: ``presence.py``; facts: ``published.py``.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tests.simulation.clients import Person, SaidMessage
from tests.simulation.hostile import GHOST, NAME
from tests.simulation.presence import check_presence
from tests.simulation.published import check_facts
from tests.simulation.queues import check_idle
from tests.simulation.readers import Reading, read_all
from tests.simulation.runtime import EPOCH, START
from tests.simulation.stored import check_stored, gone
from tests.simulation.violation import Violation as Violation
from tests.simulation.workload import CLOSED, LOCAL, MAIN

if TYPE_CHECKING:
    from tests.simulation.universe import Universe

_SHOWN = 5  # examples in one complaint
_HOSTILE = (f"{NAME}.", f"{GHOST}.")


def check(universe: "Universe") -> list[Violation]:
    """Return everything that is wrong."""
    return [*check_state(universe), *check_readings(universe, read_all(universe))]


def check_state(universe: "Universe") -> list[Violation]:
    """Return what is wrong with the servers and with what people were shown, before anybody else connects."""
    return [*check_presence(universe), *_heard(universe), *check_idle(universe.servers), *check_stored(universe)]


def check_readings(universe: "Universe", readings: Sequence[Reading]) -> list[Violation]:
    """Return what is wrong with what accounts can read."""
    failed = [Violation("readable", f"{each.person.first_nick}: {each.failure}") for each in readings if each.failure]
    if failed:
        return failed
    wrong = _same_channel(readings)
    wrong += _rooms(readings)
    wrong += _receipted(readings)
    wrong += _receipted_in_rooms(universe, readings)
    wrong += _private(readings, universe.is_restricted)
    wrong += _redacted(universe, readings)
    wrong += _missed(readings)
    wrong += check_facts(universe, readings)
    wrong += _leaked(universe, readings)
    return wrong


def _heard(universe: "Universe") -> list[Violation]:
    """No client is shown anything twice in one connection, nor another text than the one that was said."""
    wrong = []
    said = {each.text for person in universe.people for each in person.said}
    by_msgid = {each.msgid: each.text for person in universe.people for each in person.said if each.msgid}
    for person in universe.everybody:
        twice = [*person.doubles, *(pair for pair in person.text_doubles if pair[1] in said), *person.shown_doubles]
        if twice:
            wrong.append(Violation("twice", f"{person.first_nick} was shown again {twice[:_SHOWN]}"))
        other = [(msgid, text) for msgid, text in person.heard.items() if by_msgid.get(msgid, text) != text]
        if other:
            wrong.append(Violation("altered", f"{person.first_nick} was shown {other[:_SHOWN]}"))
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
        if channel == first:
            continue
        if sorted(channel) == sorted(first):
            at = next(at for at, pair in enumerate(first) if pair != channel[at])
            seen = first[at : at + 2], channel[at : at + 2]
            wrong.append(Violation("order", f"{readings[0].person.first_nick} reads {seen[0]}, {name} {seen[1]}"))
        else:
            more, less = (sorted(Counter(a) - Counter(b))[:_SHOWN] for a, b in ((first, channel), (channel, first)))
            text = f"{readings[0].person.first_nick} alone reads {more}, {name} alone {less}"
            wrong.append(Violation("history", text))
    return wrong


def _rooms(readings: Sequence[Reading]) -> list[Violation]:
    """Nobody reads anything twice, by its id or by its text, which people never say again; in no two orders either."""
    wrong = []
    said = {said.text for reading in readings for said in reading.person.said}
    for each in readings:
        channels = [each.channel, *each.rooms.values()]
        texts = [text for channel in channels for text in _twice(text for _, text in channel)] + each.twice
        ids = [msgid for channel in channels for msgid in _twice(msgid for msgid, _ in channel)]
        if twice := ids + [text for text in texts if text in said]:
            wrong.append(Violation("history", f"{each.person.first_nick} reads twice {twice[:_SHOWN]}"))
    for each in readings:
        here = each.rooms.get(CLOSED, [])
        other = next((one for one in readings if CLOSED in one.rooms), each).rooms.get(CLOSED, [])
        common = set(here) & set(other)
        if [pair for pair in here if pair in common] != [pair for pair in other if pair in common]:
            wrong.append(Violation("order", f"{each.person.first_nick} reads {CLOSED} in another order"))
    return wrong


def _twice(words: Iterable[str]) -> list[str]:
    return [word for word, count in Counter(words).items() if count > 1]


def _receipted_in_rooms(universe: "Universe", readings: Sequence[Reading]) -> list[Violation]:
    """Members read their server's local channel, and of a closed one what was said while they have been in it.

    "Members may read, and only as far back as the channel has existed without interruption" (extensions/history.md):
    while the connection of the person lasts who was in it, there is none. What has an earlier time than the channel is
    hidden, also if that is because the clock of its server is behind. A restricted link does not carry the channel.
    """
    wrong = []
    everything = [said for reading in readings for said in reading.person.said if _must_be_there(said)]
    for reading in readings:
        person = reading.person
        assert person.session is not None
        here = [said for said in everything if said.by.server is person.server or not universe.is_restricted]
        since, by_clock = person.session.joined_at.get(CLOSED, (float("inf"), ""))
        begun = max(by_clock, _begun(universe, person)) if by_clock else ""
        wanted = [said for said in here if said.target == CLOSED and said.at > since and said.time > begun]
        wanted += [said for said in here if said.target == LOCAL and said.by.server is person.server]
        found = {pair for room in reading.rooms.values() for pair in room}
        if lost := [said for said in wanted if (said.msgid, said.text) not in found]:
            wrong.append(Violation("lost", f"{person.first_nick} cannot read {_named(lost)} to {lost[0].target}"))
    return wrong


def _begun(universe: "Universe", person: Person) -> str:
    """Return when the closed channel was founded, as a server tells it; no clock can have said a later time."""
    assert person.session is not None and person.server.ircd is not None
    channel = person.server.ircd.parts.network.channel(CLOSED)
    latest = EPOCH + person.session.joined_at[CLOSED][0] - START + universe.most_skew
    at = latest if channel is None else min(latest, channel.created)
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


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
            is_heard = there.person.heard.get(said.msgid) == said.text
            if other != said.text and not is_heard and not (is_restricted and other is None):
                wrong.append(Violation("lost", f"{said.target} has neither heard nor can read {_named([said])}"))
    return wrong


def _redacted(universe: "Universe", readings: Sequence[Reading]) -> list[Violation]:
    """What was taken back is in no answer, by its id or by its text."""
    wrong = []
    taken_back = gone(universe)
    for each in readings:
        channels = [each.channel, *each.rooms.values(), *(found.items() for found in each.private.values())]
        found = {msgid for channel in channels for msgid, _ in channel} | each.missed
        still = [said for said in taken_back if said.msgid in found or said.text in each.all_texts]
        if still:
            wrong.append(Violation("redacted", f"{each.person.first_nick} still reads {_named(still)}"))
    return wrong


def _missed(readings: Sequence[Reading]) -> list[Violation]:
    """HISTORY MISSED repeats but never omits: all that CHATHISTORY shows is in it (extensions/history.md)."""
    wrong = []
    for each in readings:
        omitted = [msgid for msgid, _ in each.channel if msgid not in each.missed]
        omitted += [msgid for room in each.rooms.values() for msgid, _ in room if msgid not in each.missed]
        omitted += [msgid for found in each.private.values() for msgid in found if msgid not in each.missed]
        if omitted:
            wrong.append(Violation("missed", f"{each.person.first_nick}: MISSED omits {omitted[:_SHOWN]}"))
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
