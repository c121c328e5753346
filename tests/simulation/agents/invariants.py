"""What must be true of agents when everything is mended and all of them rest."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.simulation.agents.ledger import Given, Part
from tests.simulation.clients import Person
from tests.simulation.invariants import Reading, Violation
from tests.simulation.workload import MAIN

if TYPE_CHECKING:
    from tests.simulation.agents.daemons import SimAgent
    from tests.simulation.agents.universe import AgentUniverse

_PATIENCE = 120.0
_MOST_GIVEN, _MOST_CRASHES = 5, 2
_MOST_CHAIN = 7
"""``max_hops``, and the first message of a chain, which has no hop if its turn did work."""
_OF_AGENT = re.compile(r"@(\S+) chain \d+ (\S+) ends \d+")


class Row(NamedTuple):
    """What an agent's inbox says of a message."""

    state: str
    given: int
    crashes: int
    outcome: str | None


Occurrences = dict[tuple[str, str], list[tuple[Given, Part]]]


def check(universe: "AgentUniverse") -> list[Violation]:
    """Return everything that is wrong."""
    readings = _read(universe)
    failed = [Violation("readable", f"{each.person.first_nick}: {each.failure}") for each in readings if each.failure]
    if failed:
        return failed
    occurrences: Occurrences = defaultdict(list)
    for given in universe.ledger.given:
        for part in given.parts:
            occurrences[given.nick, part.msgid].append((given, part))
    return [
        *_given_once(occurrences),
        *_answered(universe, occurrences, readings),
        *_between_agents(universe, occurrences, readings),
        *_said_once(readings),
        *_questions(universe),
        *_chains(universe),
    ]


def _read(universe: "AgentUniverse") -> list[Reading]:
    """Connect each person once more, and let it read the channel and what was said with agents."""
    world = universe.world
    readings = []
    for person in universe.people:
        reader = Person(world, person.host, person.server, person.first_nick.replace("-p", "-reader"), person.account)
        reader.channels, reader.asks, reader.is_talking = [MAIN], True, False
        reader.host.start(reader.run())
        readings.append(Reading(person, reader))
    if not world.run_until(lambda: all(each.reader.is_there for each in readings), _PATIENCE):
        readings[0].failure = "cannot connect and join"
        return readings
    nicks = {agent.nick: agent.nick for agent in universe.agents}
    tasks = [each.reader.host.start(each.read_conversations(nicks)) for each in readings]
    world.run_until(lambda: all(task.done() for task in tasks), _PATIENCE)
    for reading, task in zip(readings, tasks, strict=True):
        error = task.exception() if task.done() else "no answer"
        reading.failure = "" if error is None else repr(error)
    return readings


def _given_once(occurrences: Occurrences) -> Iterator[Violation]:
    """A message is given once; what may have reached the agent before is marked (docs/clients/prompts.md)."""
    for (nick, msgid), found in occurrences.items():
        unmarked = [(given.life, round(given.at, 1)) for given, part in found[1:] if not part.is_repeated]
        if unmarked:
            first = found[0][0]
            yield Violation("twice", f"{nick} was given {msgid} in life {first.life} and unmarked again in {unmarked}")


def _row(agent: "SimAgent", msgid: str) -> Row | None:
    assert agent.daemon is not None
    row = agent.daemon.records.execute(
        "SELECT state, given, crashes, (SELECT outcome FROM turns WHERE number = turn) FROM messages WHERE msgid = ?",
        (msgid,),
    ).fetchone()
    return None if row is None else Row(*row)


def _answered(universe: "AgentUniverse", occurrences: Occurrences, readings: list[Reading]) -> Iterator[Violation]:
    """What a person was told is stored reaches the agent that it mentions, and is answered or given up."""
    by_nick = {agent.nick: agent for agent in universe.agents}
    for colleague, reading in zip(universe.colleagues, readings, strict=True):
        for job in colleague.jobs:
            if not job.said.is_receipted:
                continue
            for nick in job.nicks:
                why = _why_lost(universe, by_nick[nick], job.said.msgid, occurrences, reading)
                if why:
                    yield Violation("lost", f"{nick}, {job.said.msgid}, {job.said.text!r}: {why}")


def _why_lost(
    universe: "AgentUniverse", agent: "SimAgent", msgid: str, occurrences: Occurrences, reading: Reading
) -> str:
    row, found = _row(agent, msgid), occurrences.get((agent.nick, msgid), [])
    if row is None:
        return "its daemon never received it"
    if row.state == "failed":
        is_worn = row.given >= _MOST_GIVEN or row.crashes >= _MOST_CRASHES
        return "" if is_worn else f"given up too early: {row}"
    if row.state != "answered":
        return f"left as {row}"
    if not row.given:
        is_told = (agent.nick, msgid) in universe.ledger.asides or _is_answer(agent, msgid)
        return "" if is_told else f"never given: {row}"
    if not found:
        has_more = any(given.further for given in universe.ledger.given if given.nick == agent.nick)
        return "" if has_more else f"in no prompt: {row}"
    last = found[-1][0]
    if row.outcome != "done" or last.ended == "silent":
        return "" if row.outcome else f"in no turn: {row}"
    there = reading.private[agent.nick].values() if last.place != MAIN else [text for _, text in reading.channel]
    return "" if set(last.texts) & set(there) else f"nothing of {last.texts} was said in {last.place}: {row}"


def _is_answer(agent: "SimAgent", msgid: str) -> bool:
    """Return whether a message has ended a question, so that it was no work."""
    assert agent.daemon is not None
    rows = agent.daemon.records.execute("SELECT answer FROM questions WHERE answer IS NOT NULL").fetchall()
    return any(json.loads(answer)["msgid"] == msgid for (answer,) in rows)


def _between_agents(
    universe: "AgentUniverse", occurrences: Occurrences, readings: list[Reading]
) -> Iterator[Violation]:
    """What an agent says to another one in the channel reaches its inbox."""
    by_nick = {agent.nick: agent for agent in universe.agents}
    for msgid, text in readings[0].channel:
        found = _OF_AGENT.fullmatch(text)
        if found is not None and _row(by_nick[found[1]], msgid) is None:
            yield Violation("lost", f"{found[1]} never received {text!r} {msgid}")


def _said_once(readings: list[Reading]) -> Iterator[Violation]:
    """Nothing is said twice, whatever was killed meanwhile."""
    for reading in readings:
        everything = [text for _, text in reading.channel]
        everything += [text for private in reading.private.values() for text in private.values()]
        own = [text for text in everything if re.search(r"\b(?:says|ends) \d+$", text)]
        twice = [text for text, count in Counter(own).items() if count > 1]
        if twice:
            yield Violation("said twice", f"{reading.person.first_nick} reads twice {twice[:5]}")
        if reading.person.doubles:
            yield Violation("said twice", f"{reading.person.first_nick} was shown twice {reading.person.doubles[:5]}")


def _questions(universe: "AgentUniverse") -> Iterator[Violation]:
    """A question has one outcome, and the agent has it once (docs/clients/questions.md)."""
    for agent in universe.agents:
        assert agent.daemon is not None
        rows = agent.daemon.records.execute("SELECT number, text, tool, answer, choice FROM questions").fetchall()
        calls = [asked for asked in universe.ledger.asked if asked.nick == agent.nick]
        posted = {f"q{number}": json.loads(answer) if answer else None for number, _, _, answer, _ in rows}
        yield from _outcomes(universe, agent, posted, {f"q{number}" for number, _, tool, _, _ in rows if tool})
        allowed = [each for each in calls if each.is_leave and each.answer is not None and each.answer["allowed"]]
        for asked in allowed:
            if not any(tool and asked.text in text and choice == "yes" for _, text, tool, _, choice in rows):
                yield Violation("leave", f"{agent.nick} may {asked.text!r} though nobody said yes")


def _outcomes(
    universe: "AgentUniverse", agent: "SimAgent", posted: dict[str, Any], leave: set[str]
) -> Iterator[Violation]:
    ledger = universe.ledger
    told: Counter[str] = Counter()
    lost = {asked.text for asked in ledger.asked if asked.nick == agent.nick and asked.answer is None}
    for asked in ledger.asked:
        answer = asked.answer
        if asked.nick == agent.nick and not asked.is_leave and answer and answer["outcome"] not in _NO_END:
            told[answer["question"]] += 1
            if answer["question"] in posted and posted[answer["question"]]["outcome"] != answer["outcome"]:
                yield Violation("question", f"{agent.nick} was told {answer}, noted is {posted[answer['question']]}")
    for given in ledger.given:
        if given.nick == agent.nick:
            told.update(part.answers for part in given.parts if part.answers and not part.is_repeated)
    for number, answer in posted.items():
        if answer is None:
            yield Violation("question", f"{agent.nick} {number} has no end")
        elif number not in leave and told[number] > 1:
            yield Violation("question", f"{agent.nick} was told {told[number]} times of {number}: {answer}")
        elif number not in leave and answer["outcome"] == "ANSWERED" and not told[number] and not lost:
            yield Violation("question", f"{agent.nick} was never told of {number}: {answer}")


_NO_END = ("ASKED", "INTERROGATED")


def _chains(universe: "AgentUniverse") -> Iterator[Violation]:
    """Agents do not answer each other without end (docs/clients/loops.md)."""
    if any(colleague.controls.get("go on") for colleague in universe.colleagues):
        return
    longest = max((part.chain for given in universe.ledger.given for part in given.parts), default=0)
    if longest > _MOST_CHAIN:
        yield Violation("loop", f"an agent was woken by reply {longest} in a row")
