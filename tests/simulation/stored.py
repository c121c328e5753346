"""What the histories of all servers have stored, whoever may read it: all of it, each once."""

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tests.simulation.clients import SaidMessage
from tests.simulation.violation import Violation
from tests.simulation.workload import CLOSED, LOCAL, MAIN

if TYPE_CHECKING:
    from tests.simulation.servers import SimServer
    from tests.simulation.universe import Universe

_SETTLED = 2.0
"""Seconds after which a REDACT is on every disk that can be written, if its server has lived on."""
_SHOWN = 5


def check_stored(universe: "Universe") -> list[Violation]:
    """Return what is wrong with the stored messages of each server.

    A receipt "means that the message is on the server's disk and survives any crash" (receipts.md); a channel is on
    every server, a local one "stays on its server", and a private message goes "only towards the recipient's server"
    (docs/server/mesh.md).
    """
    wrong = []
    said = {each.text: each for person in universe.people for each in person.said}
    taken_back = gone(universe)
    for server in universe.servers:
        entries = [kept.entry for kept in _history_of(server)._store.everything()]
        ids = {entry.msgid: entry.text for entry in entries}
        counts = Counter(entry.text for entry in entries if entry.text in said)
        lost = [each for each in said.values() if _must_be_on(each, server, universe) and each.text not in counts]
        altered = [each for each in said.values() if each.msgid and ids.get(each.msgid, "") not in ("", each.text)]
        still = [each for each in taken_back if each.text in counts]
        misplaced = [said[text] for text in counts if not _may_be_on(said[text], server, universe)]
        twice = [said[text] for text, count in counts.items() if count > 1]
        found = {"lost": lost, "altered": altered, "redacted": still, "leaked": misplaced, "history": twice}
        wrong += [Violation(rule, f"stored on {server.name}: {_named(each)}") for rule, each in found.items() if each]
    return wrong


def _history_of(server: "SimServer") -> Any:
    assert server.ircd is not None
    return server.ircd.parts.skills.get("history")


def _must_be_on(said: SaidMessage, server: "SimServer", universe: "Universe") -> bool:
    if not said.is_receipted or said.is_taken_back:
        return False
    return said.by.server is server or said.target == MAIN or (said.target == CLOSED and not universe.is_restricted)


def _may_be_on(said: SaidMessage, server: "SimServer", universe: "Universe") -> bool:
    if said.by.server is server or said.target == MAIN:
        return True
    if said.target == CLOSED:
        return not universe.is_restricted or len(universe.servers) > 2
    recipient = next((person for person in universe.people if person.first_nick == said.target), None)
    return said.target != LOCAL and recipient is not None and recipient.server is server


def gone(universe: "Universe") -> list[SaidMessage]:
    """Return what was taken back for good.

    A REDACT has no receipt. So this is what the server has told to have taken back a moment before its life ended, or
    in the present one; while the disk could not be written that moment had not begun.
    """
    return [
        said
        for person in universe.people
        for said in person.said
        if said.redacted_at is not None and _is_stored(person.server, said.redacted_at, said.redacted_life)
    ]


def _is_stored(server: "SimServer", at: float, life: int) -> bool:
    for begin, end in sorted(server.troubles):
        if begin <= at + _SETTLED and at <= end:
            at = end
    return life >= len(server.ends) or at + _SETTLED < server.ends[life]


def _named(said: Iterable[SaidMessage]) -> str:
    every = list(said)
    shown = [(each.by.first_nick, each.target, each.msgid, each.text) for each in every[:_SHOWN]]
    return f"{len(every)}: {shown}"
