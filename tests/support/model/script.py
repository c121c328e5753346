"""The script that rides in a prompt: ``[[bash echo hi]] [[say done]]``.

Stateless: what is answered follows from the request alone, so background requests and agents side by side cannot
disturb each other. A call of a tool ends one answer of the model; the steps behind it are the next answer.

    [[say text]]             says it
    [[recite path]]          says what is in that file
    [[script path]]          the steps in that file, as it is when the model is asked
    [[think text]]           thinks it
    [[bash command]]         calls the program's own shell tool
    [[call NAME {json}]]     calls any tool
    [[wait NAME]]            holds the answer until the test says ``model.release(NAME)``
    [[sleep seconds]]        holds it for a time
    [[usage IN OUT CR CW]]   what this answer and those after it cost: input, output, cache read, cache written
    [[err STATUS words]]     an error of the API, with these words if any are given
    [[hang]]                 never goes on
    [[die]]                  breaks the connection off

A step ends at the first ``]]``. A prompt without a step is answered with ``ok``.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

STEP = re.compile(
    r"\[\[(say|recite|script|think|bash|call|wait|sleep|usage|err|hang|die)(?:\s+(.*?))?\]\](?!\])", re.DOTALL
)
_EVENT = re.compile(r"^\([0-9]{2}:[0-9]{2} UTC: .*\)$", re.MULTILINE)
"""What a daemon tells of earlier work: it names the task, with its steps, and asks for none of them."""
_call_numbers = count(1)


@dataclass(frozen=True, slots=True)
class Usage:
    """The tokens of one answer."""

    read: int = 100
    written: int = 10
    cache_read: int = 0
    cache_written: int = 0


@dataclass(frozen=True, slots=True)
class Say:
    """Text."""

    text: str


@dataclass(frozen=True, slots=True)
class Think:
    """Thinking."""

    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """A tool with its input; ``name`` None is the program's shell."""

    name: str | None
    input: dict[str, object]
    number: int


@dataclass(frozen=True, slots=True)
class Wait:
    """Hold until the test releases this name."""

    name: str


@dataclass(frozen=True, slots=True)
class Sleep:
    """Hold for a time."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Fail:
    """An error of the API."""

    status: int
    words: str = ""


@dataclass(frozen=True, slots=True)
class Hang:
    """Never go on."""


@dataclass(frozen=True, slots=True)
class Die:
    """Break the connection off."""


Step = Say | Think | Call | Wait | Sleep | Fail | Hang | Die
DEFAULT: tuple[Step, ...] = (Say("ok"),)


@dataclass(frozen=True, slots=True)
class Answer:
    """What one request is answered with."""

    steps: tuple[Step, ...]
    usage: Usage = Usage()


def has_script(text: str) -> bool:
    """Whether there is a step in a text."""
    return STEP.search(text) is not None


def answer(prompt: str, results: int) -> Answer:
    """The answer to a prompt after this many results of tools; past the end of the script ``ok``."""
    answers = list(_answers(list(_steps(_EVENT.sub("", prompt)))))
    if results < len(answers):
        return answers[results]
    return Answer(DEFAULT, answers[-1].usage if answers else Usage())


def _steps(prompt: str) -> Iterator[Step | Usage]:
    for word, rest in STEP.findall(prompt):
        if word == "script":
            yield from _steps(Path(rest).read_text(encoding="utf-8"))
        else:
            yield _step(word, rest)


def _step(word: str, rest: str) -> Step | Usage:
    match word:
        case "say":
            return Say(rest)
        case "recite":
            return Say(Path(rest).read_text(encoding="utf-8"))
        case "think":
            return Think(rest)
        case "bash":
            return Call(None, {"command": rest}, next(_call_numbers))
        case "call":
            name, _, arguments = rest.partition(" ")
            return Call(name, json.loads(arguments or "{}"), next(_call_numbers))
        case "wait":
            return Wait(rest)
        case "sleep":
            return Sleep(float(rest))
        case "usage":
            return Usage(*(int(figure) for figure in rest.split()))
        case "err":
            status, _, words = rest.partition(" ")
            return Fail(int(status), words)
        case "hang":
            return Hang()
        case _:
            return Die()


def _answers(steps: Sequence[Step | Usage]) -> Iterator[Answer]:
    usage, collected = Usage(), list[Step]()
    for step in steps:
        if isinstance(step, Usage):
            usage = step
            continue
        collected.append(step)
        if isinstance(step, Call):
            yield Answer(tuple(collected), usage)
            collected = []
    if collected:
        yield Answer(tuple(collected), usage)
    elif steps and all(isinstance(step, Usage) for step in steps):
        yield Answer(DEFAULT, usage)
