"""What an agent has begun and not finished, on disk: told to it at its next prompt, and not announced as complete.

*Events* are what came between the agent and its work: a turn was cut off, somebody paused it, somebody let it go on.
The next prompt tells all of them, and they are forgotten when the turn of that prompt has ended: a prompt that was cut
off itself has told nothing. *Tasks* are those whose turn has ended and which go on all the same, as a question of
theirs is open or a command of theirs runs in the background; each place has one.

A prompt of another place names a private task without its words.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Self

from culture.clients.shared.inbox import Mail
from culture.clients.shared.notes import Notes
from culture.clients.shared.prompts import Prompt, task_of, title_of
from culture.protocol.names import fold, is_channel
from culture.protocol.split import clip
from culture.protocol.text import fact_in_prompt, name_in_prompt

MOST_EVENTS = 8
"""The oldest give way: a prompt begins with its messages, and not with a history."""
_LONGEST_WORDS = 300


@dataclass(frozen=True, slots=True)
class TaskReference:
    """A task by its first line, with who asked for it and where."""

    title: str
    task: str
    """The title as everybody may know it."""
    sender: str
    place: str

    @classmethod
    def of(cls, prompt: Prompt) -> Self:
        """The task of a prompt."""
        return cls(prompt.title, prompt.task, prompt.mails[0].sender, prompt.target)

    @classmethod
    def of_mail(cls, mail: Mail) -> Self:
        """The task that a message began."""
        return cls(title_of(mail), task_of(mail), mail.sender, mail.place)

    def shown(self, place: str) -> str:
        """The task as the prompt of a place may name it."""
        sender = name_in_prompt(self.sender).replace("_", " ") if " " in self.sender else name_in_prompt(self.sender)
        if not _may_read(self.place, place):
            return f"a private task of {sender}"
        where = "in private" if not is_channel(self.place) else f"in {name_in_prompt(self.place)}"
        return f'"{fact_in_prompt(self.title)}", asked by {sender} {where}'


@dataclass(frozen=True, slots=True)
class WorkEvent:
    """Something that came between an agent and its work; ``words`` were said in ``place`` by whoever caused it."""

    at: float
    text: str
    task: TaskReference | None = None
    words: str = ""
    place: str = ""

    def shown(self, place: str) -> str:
        """The event as a line of a prompt of a place."""
        task = f"; it was about {self.task.shown(place)}" if self.task is not None else ""
        words = clip(fact_in_prompt(self.words), _LONGEST_WORDS)
        reason = "" if not words else f': "{words}"' if _may_read(self.place, place) else ", with a reason in private"
        return f"({datetime.fromtimestamp(self.at, UTC):%H:%M} UTC: {fact_in_prompt(self.text)}{reason}{task})"

    @classmethod
    def of_data(cls, data: Mapping[str, Any]) -> Self:
        """The event that JSON had."""
        fields = dict(data)
        task = fields.pop("task")
        return cls(task=TaskReference(**task) if task is not None else None, **fields)


class UnfinishedWork:
    """The events and the unfinished tasks of one agent."""

    def __init__(self, notes: Notes, clock: Callable[[], float]) -> None:
        self._notes = notes
        self._clock = clock
        self._told = 0  # how many of the events are in the present prompt

    def note(self, text: str, task: TaskReference | None = None, *, words: str = "", place: str = "") -> None:
        """Something came between the agent and its work."""
        event = WorkEvent(self._clock(), text, task, words, place)
        events = [*self._notes.work_events, asdict(event)]
        self._told = max(0, self._told - max(0, len(events) - MOST_EVENTS))
        self._notes.work_events = events[-MOST_EVENTS:]

    def tell(self, place: str) -> list[str]:
        """The events as lines of a prompt of a place that begins now."""
        events = self._notes.work_events
        self._told = len(events)
        return [WorkEvent.of_data(event).shown(place) for event in events]

    def settle(self) -> None:
        """The turn has ended in whose prompt they were: the agent knows them."""
        if self._told:
            self._notes.work_events = self._notes.work_events[self._told :]
            self._told = 0

    def discard(self) -> None:
        """Nobody wants any more what was cut off."""
        self._notes.work_events = [event for event in self._notes.work_events if event["task"] is None]
        self._notes.unfinished_tasks = {}
        self._told = 0

    def put_off(self, task: TaskReference) -> None:
        """The turn of a task has ended, and the task goes on."""
        self._notes.unfinished_tasks = {fold(task.place): asdict(task), **self._notes.unfinished_tasks}

    def unfinished(self, place: str) -> TaskReference | None:
        """The task of a place whose turn has ended, and which goes on."""
        found = self._notes.unfinished_tasks.get(fold(place))
        return TaskReference(**found) if found is not None else None

    def finish(self, place: str) -> None:
        """The task of a place is complete."""
        tasks = self._notes.unfinished_tasks
        if tasks.pop(fold(place), None) is not None:
            self._notes.unfinished_tasks = tasks


def _may_read(said_in: str, place: str) -> bool:
    """Whether what was said somewhere may stand in the prompt of a place."""
    return is_channel(said_in) or not said_in or fold(said_in) == fold(place)
