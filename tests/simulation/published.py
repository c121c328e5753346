"""The facts of agents: the same on all servers, none lost, and of several of one key the one that counts."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tests.simulation.clients import Person, PutFact
from tests.simulation.readers import ReadFact, Reading
from tests.simulation.violation import Violation

if TYPE_CHECKING:
    from tests.simulation.universe import Universe

_SHOWN = 5


def check_facts(universe: "Universe", readings: Sequence[Reading]) -> list[Violation]:
    """All servers have the same facts, and each that was said to be kept (extensions/ledger.md).

    Facts cross only links with full trust; without it each server has those of its own agents.
    """
    wrong = []
    first = readings[0]
    for each in readings:
        name = each.person.first_nick
        agents = [one for one in universe.agents if universe.has_full_trust or one.server is each.person.server]
        if universe.has_full_trust and each.facts != first.facts:
            one, other = first.facts.items() - each.facts.items(), each.facts.items() - first.facts.items()
            text = f"{first.person.first_nick} alone {sorted(one)[:_SHOWN]}, {name} alone {sorted(other)[:_SHOWN]}"
            wrong.append(Violation("facts", text))
        unlike = [text for agent in agents for key in agent.facts if (text := _unlike(agent, key, each))]
        if unlike:
            wrong.append(Violation("facts", f"{name} has {len(unlike)}: {unlike[:_SHOWN]}"))
        puts = {(agent.first_nick, key) for agent in universe.agents for key in agent.facts}
        if strange := sorted(each.facts.keys() - puts):
            wrong.append(Violation("facts", f"{name} has {strange[:_SHOWN]}, which nobody has published"))
    return wrong


def _unlike(agent: Person, key: str, reading: Reading) -> str:
    """Return what is wrong with a fact where it was read; "" if nothing is."""
    read: ReadFact | None = reading.facts.get((agent.first_nick, key))
    puts = agent.facts[key]
    if read is None:
        return f"no {key}" if any(put.kept is not None for put in puts) else ""
    put = next((put for put in puts if put.state == read.state), None)
    if put is None:
        return f"{key} {read.state!r}, which {agent.first_nick} has not published"
    later = [other.state for other in puts if _is_later(other, put)]
    return f"{key} {read.state!r} in the place of {later}" if later else ""


def _is_later(one: PutFact, other: PutFact) -> bool:
    """Return whether a fact that is kept counts before another one of its key: it has the greater time.

    Both times lie between sending and the answer, by a clock that may jump in between.
    """
    if one.kept is None or other.kept is None:
        return False
    return min(one.sent, one.kept) > max(other.sent, other.kept)
