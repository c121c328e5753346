"""Work that an agent's program does beside its turns: what runs, and in which place it was begun.

A tool call belongs to the place of the turn in which it was made, a call of a sub-agent to the place of the call that
began the sub-agent. So what ends hours later is told, and answered, where somebody asked for it, and nowhere else.
Nothing of this is on disk: background commands, sub-agents and wake-ups end with the program.
"""

import hashlib
from collections.abc import Callable, Iterable

from culture.protocol.names import fold

MOST = 10_000
"""Calls and wake-ups whose places are remembered; the oldest are forgotten first."""
REFUSED = "kept as a message to the agent: it comes as a prompt of its own"
"""Why a program is refused a turn, in words for its log."""
NOWHERE = ""
"""The place of what belongs to no place that is known: nothing is posted there."""


class BackgroundWork:
    """The background commands, sub-agents and wake-ups of one run of a program."""

    def __init__(self) -> None:
        self.place: Callable[[], str] = lambda: NOWHERE
        """Place of the turn that runs; ``NOWHERE`` between turns."""
        self.moved: Callable[[], None] = lambda: None
        """Called when a command runs in the background that did not before."""
        self._calls: dict[str, str] = {}
        self._wakeups: dict[str, str] = {}
        self._callers: dict[str, str] = {}  # the call of each task
        self._running: tuple[str, ...] = ()
        self._agents: tuple[str, ...] = ()

    def clear(self) -> None:
        """The program has ended, and all that ran in its background with it."""
        self._calls.clear()
        self._wakeups.clear()
        self._callers.clear()
        self._running = self._agents = ()

    def called(self, call: str, parent: str | None = None) -> None:
        """A tool was called in the present turn, or by the sub-agent that the call ``parent`` began."""
        _remember(self._calls, call, self.place() if parent is None else self.place_of(parent))

    def scheduled(self, text: str, call: str) -> None:
        """By this call the agent has itself woken with a text."""
        _remember(self._wakeups, _words(text), self.place_of(call))

    def started(self, task: str, call: str) -> None:
        """A tool call runs as this task, which may go to the background."""
        _remember(self._callers, task, call)

    def runs(self, tasks: Iterable[str], agents: Iterable[str] = ()) -> None:
        """These tasks, and no others, run in the background now; some of them are sub-agents."""
        before, self._running, self._agents = self.commands, tuple(tasks), tuple(agents)
        if self.commands - before:
            self.moved()

    @property
    def running(self) -> tuple[str, ...]:
        """The tasks that run in the background."""
        return self._running

    @property
    def agents(self) -> tuple[str, ...]:
        """Those of them that are sub-agents, which use tokens."""
        return self._agents

    @property
    def commands(self) -> frozenset[str]:
        """Those of them that are no sub-agents."""
        return frozenset(self._running) - frozenset(self._agents)

    def running_in(self, place: str) -> int:
        """Number of tasks that run in the background and were begun in a place."""
        places = (self.place_of(self.call_of(task)) for task in self._running)
        return sum(fold(each) == fold(place) for each in places)

    def call_of(self, task: str) -> str:
        """The tool call that began a task; empty if unknown."""
        return self._callers.get(task, "")

    def place_of(self, call: str) -> str:
        """Place to which a tool call belongs; ``NOWHERE`` if unknown."""
        return self._calls.get(call, NOWHERE)

    def place_of_wakeup(self, text: str) -> str:
        """Place where the agent asked to be woken with a text; ``NOWHERE`` if unknown."""
        return self._wakeups.get(_words(text), NOWHERE)


def is_same_prompt(one: str, other: str) -> bool:
    """Whether two texts are one prompt: a program may give spaces and signs in another form."""
    return _letters(one) == _letters(other)


def news_key(*parts: str) -> str:
    """Key of the news that these texts tell."""
    return hashlib.sha256("\0".join(parts).encode(errors="replace")).hexdigest()[:24]


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text))


def _remember(known: dict[str, str], key: str, value: str) -> None:
    known.pop(key, None)
    known[key] = value
    if len(known) > MOST:
        del known[next(iter(known))]


def _words(text: str) -> str:
    return " ".join(text.split())
