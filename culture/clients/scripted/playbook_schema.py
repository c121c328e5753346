"""Validate a playbook's YAML and convert it to steps; mistakes name line and remedy."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from culture.clients.scripted import steps
from culture.clients.scripted.steps import PLACES, Step, places
from culture.clients.shared.documents import Document, Key, wrong
from culture.clients.shared.errors import WrongConfiguration

LONGEST_WAIT = 3600.0
RUN_TIMEOUT = 60.0
ASK_TIMEOUT = 300.0
UNTIL_TIMEOUT = 30.0
MOST_ROUNDS = 1000

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)?")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, None: 1.0}


@dataclass(frozen=True, slots=True)
class Value:
    """A value in a playbook file, with its position for error messages.

    ``groups``: placeholders that the rule's pattern adds.
    """

    source: Document
    key: Key
    content: object
    groups: frozenset[str] = frozenset()
    """Placeholders from groups of the rule's pattern."""

    def wrong(self, text: str, hint: str = "") -> WrongConfiguration:
        """Return the exception for a mistake at this position of the playbook."""
        return wrong(self.source, self.key, text, hint)

    def inside(self, name: str | int, content: object) -> "Value":
        """Return a child of this value: ``content``, found at the key or index ``name``."""
        return Value(self.source, (*self.key, name), content, self.groups)

    def text(self) -> str:
        """Return the value as text, placeholders unchecked; ``WrongConfiguration`` if it is no text."""
        if not isinstance(self.content, str):
            raise self.wrong("expected text", "put it in quotes")
        return self.content

    def template(self) -> str:
        """Return the value as text; ``WrongConfiguration`` if it has unknown placeholders."""
        known = PLACES | self.groups
        for name in places(self.text()):
            if name not in known:
                close = get_close_matches(name, known, 1)
                hint = f"did you mean {{{close[0]}}}?" if close else f"write {{{{{name}}}}} if the braces are meant"
                raise self.wrong(f"{{{name}}} is nothing that can be filled in", hint)
        return self.text()

    def number(self, least: float, most: float) -> float:
        """Return the value as a number; ``WrongConfiguration`` if it is none or out of bounds."""
        if isinstance(self.content, bool) or not isinstance(self.content, int | float):
            raise self.wrong("expected a number", "leave out the quotes")
        if not least <= self.content <= most:
            raise self.wrong(f"must be from {least:g} to {most:g}")
        return self.content

    def truth(self) -> bool:
        """Return the value as a boolean; ``WrongConfiguration`` if it is none."""
        if not isinstance(self.content, bool):
            raise self.wrong("expected true or false")
        return self.content

    def whole(self, least: int, most: int) -> int:
        """Return the value as a whole number; ``WrongConfiguration`` if it is none or out of bounds."""
        if self.number(least, most) != int(self.number(least, most)):
            raise self.wrong("expected a whole number")
        return int(self.number(least, most))

    def duration(self) -> float:
        """Return the value in seconds, at most an hour; ``WrongConfiguration`` if it is no duration.

        It may be a number or a text such as 500ms, 2s, 5m.
        """
        match = _DURATION.fullmatch(self.content) if isinstance(self.content, str) else None
        if match is not None:
            return self.inside_bounds(float(match[1]) * _SECONDS[match[2]])
        if isinstance(self.content, str):
            raise self.wrong(f"{self.content!r} is no duration", "write 500ms, 2s or 5m")
        return self.number(0, LONGEST_WAIT)

    def inside_bounds(self, seconds: float) -> float:
        """Return the number of seconds; ``WrongConfiguration`` if it is more than an hour."""
        if seconds > LONGEST_WAIT:
            raise self.wrong(f"must be at most {LONGEST_WAIT:g} seconds")
        return seconds

    def block(self, needed: frozenset[str], more: frozenset[str] = frozenset()) -> "Mapping[str, Value]":
        """Return the children of a mapping by key; unknown and missing keys are mistakes.

        ``needed``: keys that must be there; ``more``: keys that may be there.
        """
        if not isinstance(self.content, dict):
            raise self.wrong(f"expected {', '.join(sorted(needed | more))}", f"such as {{{min(needed | more)}: …}}")
        for name in self.content:
            if name not in needed | more:
                close = get_close_matches(name, needed | more, 1)
                hint = f"did you mean {close[0]}?" if close else f"known here: {', '.join(sorted(needed | more))}"
                raise self.inside(name, None).wrong("unknown key", hint)
        for name in sorted(needed - self.content.keys()):
            raise self.wrong(f"{name} is missing", f"add {name}: …")
        return {name: self.inside(name, content) for name, content in self.content.items()}


def checked_steps(value: Value) -> tuple[Step, ...]:
    """Return the steps in a list; ``WrongConfiguration`` on mistakes."""
    if not isinstance(value.content, tuple) or not value.content:
        raise value.wrong("expected a list of steps", "begin each step with a hyphen and a space: - say: hello")
    return tuple(_step(value.inside(number, content)) for number, content in enumerate(value.content))


def _step(value: Value) -> Step:
    if not isinstance(value.content, dict) or len(value.content) != 1:
        raise value.wrong("expected one step", "one word and what it needs, such as - say: hello")
    [(name, content)] = value.content.items()
    inner = value.inside(name, content)
    if name not in STEPS:
        close = get_close_matches(name, STEPS, 1)
        hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(STEPS)}"
        raise inner.wrong(f"{name!r} is no step", hint)
    return STEPS[name](inner)


def _send(value: Value) -> Step:
    keys = value.block(frozenset({"to", "text"}))
    return steps.SendStep(keys["to"].template(), keys["text"].template())


def _ask(value: Value) -> Step:
    keys = value.block(frozenset({"to", "question"}), frozenset({"timeout", "options"}))
    timeout = keys["timeout"].duration() if "timeout" in keys else ASK_TIMEOUT
    options = keys["options"].text() if "options" in keys else ""
    return steps.AskStep(keys["to"].template(), keys["question"].template(), timeout, options)


def _run(value: Value) -> Step:
    if isinstance(value.content, str):
        return steps.RunStep(value.content, RUN_TIMEOUT)
    keys = value.block(frozenset({"command"}), frozenset({"timeout"}))
    return steps.RunStep(keys["command"].text(), keys["timeout"].duration() if "timeout" in keys else RUN_TIMEOUT)


def _wait(value: Value) -> Step:
    if not isinstance(value.content, dict):
        return steps.WaitStep(value.duration())
    keys = value.block(frozenset({"until"}), frozenset({"timeout"}))
    timeout = keys["timeout"].duration() if "timeout" in keys else UNTIL_TIMEOUT
    return steps.WaitStep(timeout, keys["until"].template())


def _usage(value: Value) -> Step:
    keys = value.block(frozenset(), frozenset({"tokens", "cost_usd", "context_pct"}))
    return steps.UsageStep(
        tokens=keys["tokens"].whole(0, 10**9) if "tokens" in keys else None,
        cost_usd=float(keys["cost_usd"].number(0, 10**6)) if "cost_usd" in keys else None,
        context_pct=float(keys["context_pct"].number(0, 100)) if "context_pct" in keys else None,
    )


def _error(value: Value) -> Step:
    if not isinstance(value.content, dict):
        return steps.ErrorStep(value.template())
    keys = value.block(frozenset({"text"}), frozenset({"full"}))
    return steps.ErrorStep(keys["text"].template(), "full" in keys and keys["full"].truth())


def _hang(value: Value) -> Step:
    if value.content is not True and value.content != "stubborn":
        raise value.wrong("expected true or stubborn", "take the step away if it is not to hang")
    return steps.HangStep(value.content == "stubborn")


def _loop(value: Value) -> Step:
    keys = value.block(frozenset({"times", "steps"}))
    return steps.LoopStep(keys["times"].whole(1, MOST_ROUNDS), checked_steps(keys["steps"]))


STEPS: Mapping[str, Callable[[Value], Step]] = {
    "say": lambda value: steps.SayStep(value.template()),
    "think": lambda value: steps.ThinkStep(value.template()),
    "send": _send,
    "ask": _ask,
    "read": lambda value: steps.ReadStep(value.template()),
    "run": _run,
    "wait": _wait,
    "usage": _usage,
    "error": _error,
    "crash": lambda value: steps.CrashStep(value.whole(-64, 255)),
    "hang": _hang,
    "loop": _loop,
}
"""Parsers of steps, by the name of the step."""
