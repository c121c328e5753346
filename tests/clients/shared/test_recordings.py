"""Twenty agents that got stuck and fifty that worked well: the first are helped or reported, the others left alone."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from culture.clients.shared.supervisor import Supervisor, SupervisorSetup
from tests.clients.shared.test_supervisor import called, said, thought
from tests.support.clock import ClockedRuntime

DATA = Path(__file__).parents[2] / "data" / "supervisor"
PACE = 8.0
"""The seconds between two turns where a recording says nothing else."""


@dataclass(frozen=True, slots=True)
class Recording:
    """What one agent did, and what is to come of it."""

    name: str
    task: str
    ends: str
    turns: tuple[tuple[float, dict[str, Any]], ...]


def recordings(file: str) -> list[Recording]:
    """The runs of a file."""
    _, *runs = (DATA / file).read_text(encoding="utf-8").split("\n## ")
    return [_recording(run.strip().splitlines()) for run in runs]


def _recording(lines: list[str]) -> Recording:
    name, task, ends, *turns = lines
    return Recording(name, task.removeprefix("task: "), ends.removeprefix("ends: "), tuple(_turns(turns)))


def _turns(lines: list[str]) -> Iterator[tuple[float, dict[str, Any]]]:
    gap = PACE
    for line in lines:
        mark, text = line[0], line[1:].strip()
        if mark == "+":
            gap = float(text)
            continue
        tool, _, given = text.partition(" ")
        turns = {"$": called("Bash", command=text), ">": called(tool, what=given), ".": said(text), "~": thought(text)}
        yield gap, turns[mark]
        gap = PACE


ASIDE = re.compile("while I am here|also re|unrelated", re.IGNORECASE)
DECISION = re.compile("(?:go with|decided|picking).*(?:schema|architecture|database|auth|protocol)", re.IGNORECASE)
FRESH = 5
"""What is complained of must reach into the last turns, so that who took the hint is left alone."""


def turns_shown(prompt: str) -> list[str]:
    """The turns of a prompt, as a judge sees them."""
    return re.split(r"^\[turn \d+\] ", prompt, flags=re.MULTILINE)[1:]


def is_recent(turns: list[str], complaint: Callable[[str], object], least: int) -> bool:
    """Whether so many turns are to be complained of, one of the last among them."""
    return sum(bool(complaint(turn)) for turn in turns) >= least and any(map(complaint, turns[-FRESH:]))


def repeats(turns: list[str]) -> bool:
    """Whether a command was run three times and nothing changed between; after a change it is work."""
    row: Counter[str] = Counter()
    for place, turn in enumerate(turns):
        if re.search("^  called (?:Edit|Write) ", turn, re.MULTILINE):
            row.clear()
        if command := re.search("^  called Bash .*$", turn, re.MULTILINE):
            row[command[0]] += 1
            if row[command[0]] >= 3 and place >= len(turns) - FRESH:
                return True
    return False


def is_shallow(turns: list[str]) -> bool:
    """Whether what is hard to undo was decided twice, without a thought since."""
    thoughts = [place for place, turn in enumerate(turns) if "  thought: " in turn]
    return is_recent(turns[max(thoughts, default=-1) + 1 :], DECISION.search, 2)


def only_waits(turn: str) -> object:
    """Whether minutes went by, and nothing was done then."""
    return re.match(r"\d{3,} s later\n  said: .*(?:wait|nothing|pending)", turn, re.IGNORECASE)


def claims(turns: list[str]) -> bool:
    """Whether tests are said to pass that nobody has run."""
    said = sum(bool(re.search("  said: .*tests? pass", turn)) for turn in turns)
    return said >= 2 and not any("called Bash" in turn for turn in turns)


class Reader(Supervisor):
    """A judge without a model: it knows the patterns in these recordings, from the prompt alone."""

    async def judge(self, prompt: str) -> str:
        turns = turns_shown(prompt)
        if repeats(turns):
            return "CORRECTION You run the same command again and change nothing. Read the first error, or ask."
        if is_recent(turns, ASIDE.search, 2):
            return "CORRECTION This is not what you were asked for. Go back to the task."
        if is_recent(turns, only_waits, 3):
            return "CORRECTION You only wait. Ask whoever you wait for."
        if is_shallow(turns):
            return "THINK_DEEPER These decisions are hard to undo. Weigh the alternatives first."
        return "CORRECTION You say that tests pass, and have run none." if claims(turns) else "OK"


class Watching:
    """A supervisor, and what came of what it saw."""

    def __init__(self, recording: Recording) -> None:
        self._now = 0.0
        self._recording = recording
        self.whispers: list[str] = []
        self.escalations: list[str] = []
        runtime = ClockedRuntime(lambda: self._now, steady=True)
        self.supervisor = Reader(SupervisorSetup("spark-claude", DATA, runtime=runtime))
        self.supervisor.task = lambda: recording.task
        self.supervisor.on_whisper = self._whispered
        self.supervisor.on_escalation = self._escalated

    async def _whispered(self, message: str, action: str) -> None:
        self.whispers.append(action)

    async def _escalated(self, message: str) -> None:
        self.escalations.append(message)

    async def watch(self) -> str:
        """Feed the whole run; how it ended."""
        await self.supervisor.start()
        for gap, turn in self._recording.turns:
            self._now += gap
            await self.supervisor.observe(turn)
            await self.supervisor.rest()
        return "escalated" if self.escalations else "whispered" if self.whispers else "quiet"


SPIRALS, GOOD = recordings("spirals.txt"), recordings("good.txt")


def test_there_are_enough_recordings_and_they_differ() -> None:
    assert (len(SPIRALS), len(GOOD)) == (20, 50)
    assert len({recording.name for recording in SPIRALS + GOOD}) == 70
    assert len({str(recording.turns) for recording in SPIRALS + GOOD}) == 70
    assert all(len(recording.turns) >= 10 for recording in SPIRALS + GOOD)


@pytest.mark.fault("E27", part="the judge's rules were written for these recordings; no model judges them")
@pytest.mark.requirement("I04", part="the judge's rules were written for these recordings; no model judges them")
@pytest.mark.parametrize("recording", SPIRALS, ids=lambda recording: recording.name)
async def test_an_agent_that_is_stuck_is_told_and_if_that_does_not_help_people_are(recording: Recording) -> None:
    watching = Watching(recording)
    assert await watching.watch() == recording.ends
    assert watching.supervisor.failures == 0
    if recording.ends == "escalated":
        assert len(watching.whispers) == 2 and len(watching.escalations) == 1
    else:
        assert len(watching.whispers) == 1


@pytest.mark.fault("E27", part="the judge's rules were written for these recordings; no model judges them")
@pytest.mark.requirement("I07", part="the judge's rules were written for these recordings; no model judges them")
@pytest.mark.parametrize("recording", GOOD, ids=lambda recording: recording.name)
async def test_an_agent_that_works_well_hears_nothing(recording: Recording) -> None:
    watching = Watching(recording)
    assert await watching.watch() == recording.ends == "quiet"
    assert watching.supervisor.failures == 0
