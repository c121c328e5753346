"""``python -m tests.simulation.altered``: what the invariants say of states and answers that are wrong on purpose.

A small universe runs once, with nothing going wrong. Then each alteration is made in a forked child of its own, and
the invariants judge that. Without alterations they find nothing.
"""

import json
import os
import pickle
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from culture.protocol.message import Message
from tests.simulation.invariants import check_readings, check_state
from tests.simulation.ordering import number_objects
from tests.simulation.queues import check_bounds
from tests.simulation.readers import Reading, read_all
from tests.simulation.runner import fork
from tests.simulation.scenarios import do_each_act
from tests.simulation.universe import Setup, Universe
from tests.simulation.violation import Violation
from tests.simulation.workload import CLOSED, LOCAL, MAIN

if TYPE_CHECKING:
    from culture.server.core.state import Channel, Network

_BEFORE = 2.0
_MANY, _LARGE = 1_000_000, 1 << 26


class Altered(NamedTuple):
    """Something to alter, and the violation that must be found then."""

    alter: Callable[..., Any]
    rule: str
    words: str
    """Some of the violation's text."""


def _network(universe: Universe) -> "Network":
    ircd = universe.servers[1].ircd
    assert ircd is not None
    return ircd.parts.network


def _channel(universe: Universe) -> "Channel":
    channel = _network(universe).channel(MAIN)
    assert channel is not None
    return channel


def _hear_again(universe: Universe, source: str, text: str) -> None:
    """Show the last person what was said in the main channel once more, perhaps with another id."""
    ori, said = universe.people[0], universe.people[0].said[1]
    line = f"@msgid={source or said.msgid};time={said.time} :{ori.nick}!u@h PRIVMSG {MAIN} :{text or said.text}"
    universe.people[-1]._take(Message.parse(line))


def _show_again(universe: Universe) -> None:
    person = universe.people[-1]
    person._take(Message.parse(f":{universe.people[0].nick}!u@h JOIN {MAIN}"))


def _store(universe: Universe, change: Callable[[list[Any]], list[Any]]) -> None:
    """Let the history of the last server have other messages."""
    ircd = universe.servers[1].ircd
    assert ircd is not None
    history: Any = ircd.parts.skills.get("history")
    kept = change(list(history._store.everything()))
    history._store = type("Store", (), {"everything": lambda self: kept})()


def _without(universe: Universe, number: int) -> None:
    text = universe.people[0].said[number].text
    _store(universe, lambda kept: [each for each in kept if each.entry.text != text])


def _from_first(universe: Universe, number: int) -> None:
    """Let the last server store a message that the first one has."""
    ircd = universe.servers[0].ircd
    assert ircd is not None
    history: Any = ircd.parts.skills.get("history")
    said = universe.people[0].said[number]
    _store(universe, lambda kept: kept + [e for e in history._store.everything() if e.entry.msgid == said.msgid])


def _redacted_text(universe: Universe) -> None:
    said = universe.people[0].said[0]

    def change(kept: list[Any]) -> list[Any]:
        return [
            each._replace(entry=each.entry._replace(text=said.text)) if each.entry.msgid == said.msgid else each
            for each in kept
        ]

    _store(universe, change)


def _queue(universe: Universe, in_log: int = 0, in_history: int = 0, for_client: int = 0, for_peer: int = 0) -> None:
    """Let more wait at the last server."""
    ircd, mesh = universe.servers[1].ircd, universe.servers[1].mesh
    assert ircd is not None
    mesh.log.taken += in_log
    history: Any = ircd.parts.skills.get("history")
    history._writer.taken += in_history
    next(iter(ircd.parts.sessions)).connection._backlog += bytes(for_client)
    next(iter(mesh.links.values())).connection._backlog += bytes(for_peer)


STATES: dict[str, Altered] = {
    "a user is missing": Altered(lambda each: _network(each).users.pop("spark-p0"), "presence", "lacks ['spark-p0']"),
    "a user is away": Altered(
        lambda each: setattr(_network(each).users["spark-p0"], "away", "gone"), "presence", "user spark-p0"
    ),
    "another topic": Altered(lambda each: setattr(_channel(each), "topic", None), "presence", f"channel {MAIN} topic"),
    "another topic than shown": Altered(lambda each: setattr(_channel(each), "topic", None), "shown", "the topic"),
    "another mode": Altered(lambda each: _channel(each).flags.add("m"), "presence", f"channel {MAIN} modes"),
    "another rank": Altered(
        lambda each: _channel(each).members.update(dict.fromkeys(_channel(each).members, "")), "shown", "the ranks"
    ),
    "a message again": Altered(lambda each: _hear_again(each, "", ""), "twice", "was shown again"),
    "a text again": Altered(lambda each: _hear_again(each, "spark.1.1", ""), "twice", "was shown again"),
    "a JOIN again": Altered(_show_again, "twice", "was shown again"),
    "another text": Altered(lambda each: _hear_again(each, "", "another"), "altered", "was shown"),
    "the log waits": Altered(lambda each: _queue(each, in_log=1), "queue", "thor has 1 changes of the log"),
    "the log is too long": Altered(lambda each: _queue(each, in_log=_MANY), "queue", "changes of the log wait"),
    "the history waits": Altered(lambda each: _queue(each, in_history=1), "queue", "thor has 1 messages for the"),
    "the history is behind": Altered(lambda each: _queue(each, in_history=_MANY), "queue", "wait for the history"),
    "a client waits": Altered(lambda each: _queue(each, for_client=1), "queue", "thor has 1 bytes for clients"),
    "a client is too slow": Altered(lambda each: _queue(each, for_client=_LARGE), "queue", "bytes wait for a client"),
    "a peer waits": Altered(lambda each: _queue(each, for_peer=1), "queue", "thor has 1 bytes for peers"),
    "a peer is too slow": Altered(lambda each: _queue(each, for_peer=_LARGE), "queue", "bytes wait for spark"),
    "an error": Altered(lambda each: each.world.complain(None, "log", "failed"), "complaint", "failed"),
    "a stored message is gone": Altered(lambda each: _without(each, 1), "lost", "stored on thor"),
    "a stored message of a closed channel is gone": Altered(lambda each: _without(each, 3), "lost", "stored on thor"),
    "a local message is elsewhere": Altered(lambda each: _from_first(each, 4), "leaked", "stored on thor"),
    "a message is stored twice": Altered(lambda each: _from_first(each, 1), "history", "stored on thor"),
    "a redacted text is stored": Altered(_redacted_text, "redacted", "stored on thor"),
}
"""Alterations of the servers and of what people noted."""


def _reading(readings: Sequence[Reading], nick: str) -> Reading:
    return next(each for each in readings if each.person.first_nick == nick)


def _said(readings: Sequence[Reading], number: int) -> Any:
    return readings[0].person.said[number]


def _unread(readings: Sequence[Reading], room: str, number: int, nick: str) -> None:
    """Take a message from what somebody reads of a channel."""
    each = _reading(readings, nick)
    channel = each.channel if room == MAIN else each.rooms[room]
    channel[:] = [pair for pair in channel if pair[0] != _said(readings, number).msgid]


def _no_private(readings: Sequence[Reading], whose: str, other: str) -> None:
    each = _reading(readings, whose)
    each.private[other].clear()
    if each is not readings[0]:
        each.person.heard.pop(_said(readings, 5).msgid, None)


def _swap(readings: Sequence[Reading], room: str) -> None:
    each = _reading(readings, "thor-p0")
    channel = each.channel if room == MAIN else each.rooms[room]
    if room == CLOSED:
        other = ("spark.1.1", "another")
        channel.append(other)
        readings[0].rooms[room].append(other)
    channel[-2:] = reversed(channel[-2:])


def _overheard(readings: Sequence[Reading], number: int, nick: str) -> None:
    _reading(readings, nick).all_texts.add(_said(readings, number).text)


def _fact(readings: Sequence[Reading], key: str, state: str) -> None:
    for each in readings:
        nick, found = "spark-a0", each.facts
        old = found.pop((nick, key), None) or next(iter(found.values()))
        if state:
            found[nick, key] = old._replace(state=state)


def _one_fact(readings: Sequence[Reading]) -> None:
    _reading(readings, "thor-p1").facts.clear()


READINGS: dict[str, Altered] = {
    "no answer": Altered(lambda each: setattr(each[1], "failure", "no answer"), "readable", "no answer"),
    "not in the channel": Altered(lambda each: _unread(each, MAIN, 1, "thor-p0"), "lost", "thor-p0 cannot read"),
    "differs": Altered(lambda each: _unread(each, MAIN, 1, "thor-p0"), "history", "alone reads"),
    "twice in an answer": Altered(lambda each: each[3].channel.append(each[3].channel[0]), "history", "reads twice"),
    "not in the closed channel": Altered(lambda each: _unread(each, CLOSED, 3, "thor-p0"), "lost", f"to {CLOSED}"),
    "not in the local channel": Altered(lambda each: _unread(each, LOCAL, 4, "spark-p1"), "lost", f"to {LOCAL}"),
    "not with its sender": Altered(lambda each: _no_private(each, "spark-p0", "thor-p1"), "lost", "its sender cannot"),
    "not with its recipient": Altered(
        lambda each: _no_private(each, "thor-p1", "spark-p0"), "lost", "thor-p1 has neither heard nor can read"
    ),
    "another order": Altered(lambda each: _swap(each, MAIN), "order", "thor-p0"),
    "another order in a room": Altered(lambda each: _swap(each, CLOSED), "order", f"reads {CLOSED} in another order"),
    "redacted": Altered(lambda each: _overheard(each, 0, "thor-p0"), "redacted", "thor-p0 still reads"),
    "not missed": Altered(lambda each: each[3].missed.discard(_said(each, 1).msgid), "missed", "thor-p1: MISSED omits"),
    "a closed channel": Altered(lambda each: _overheard(each, 3, "thor-p1"), "leaked", "thor-p1 was shown"),
    "a local channel": Altered(lambda each: _overheard(each, 4, "thor-p0"), "leaked", "thor-p0 was shown"),
    "private": Altered(lambda each: _overheard(each, 5, "thor-p0"), "leaked", "thor-p0 was shown"),
    "a fact is missing": Altered(lambda each: _fact(each, "b", ""), "facts", "no b"),
    "facts differ": Altered(_one_fact, "facts", "spark-p0 alone"),
    "an older fact": Altered(lambda each: _fact(each, "a", "begun"), "facts", "'begun' in the place of ['done']"),
    "another state": Altered(lambda each: _fact(each, "a", "made up"), "facts", "has not published"),
    "another fact": Altered(lambda each: _fact(each, "c", "begun"), "facts", "which nobody has published"),
}
"""Alterations of what accounts read."""


def main() -> int:
    """Print a line of JSON for each alteration: its name ("" for none), what must be found, and what was."""
    number_objects()
    with tempfile.TemporaryDirectory(prefix="culture-simulation-") as folder:
        universe = Universe(0, Setup(scenario="each-act"), Path(folder))
        for person in universe.everybody:
            person.is_talking = False
        if not universe.begin():
            raise TimeoutError("the servers do not link")
        do_each_act(universe)
        universe.world.run(_BEFORE)
        for name, altered in {"": None, **STATES}.items():
            _print(name, altered, partial(_judge_state, universe, altered))
        readings = read_all(universe)
        for name, altered in {"": None, **READINGS}.items():
            _print(name, altered, partial(_judge_readings, universe, readings, altered))
        sys.stdout.flush()
    return 0


def _judge_state(universe: Universe, altered: Altered | None) -> list[Violation]:
    if altered is not None:
        altered.alter(universe)
    return [*check_bounds(universe.servers), *check_state(universe), *universe.complaints()]


def _judge_readings(universe: Universe, readings: Sequence[Reading], altered: Altered | None) -> list[Violation]:
    if altered is not None:
        altered.alter(readings)
    return check_readings(universe, readings)


def _print(name: str, altered: Altered | None, judge: Callable[[], list[Violation]]) -> None:
    sys.stdout.flush()
    process, pipe = fork(judge)
    with os.fdopen(pipe, "rb") as stream:
        data = stream.read()
    os.waitpid(process, 0)
    wanted = [] if altered is None else [altered.rule, altered.words]
    print(json.dumps({"name": name, "wanted": wanted, "wrong": pickle.loads(data) if data else None}))


if __name__ == "__main__":
    main()
    os._exit(0)  # nothing of the universe needs an end
