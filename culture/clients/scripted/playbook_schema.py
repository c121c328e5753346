"""From what a playbook's YAML says to steps; every mistake has its line and a remedy."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from culture.clients.scripted import steps
from culture.clients.scripted.steps import Step
from culture.clients.scripted.templates import PLACES, places
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
    """Something the file says, and where it says it."""

    source: Document
    key: Key
    said: object
    groups: frozenset[str] = frozenset()
    """What the pattern of this rule gives to fill in."""

    def wrong(self, text: str, hint: str = "") -> WrongConfiguration:
        """A mistake here."""
        return wrong(self.source, self.key, text, hint)

    def inside(self, name: str | int, said: object) -> "Value":
        """A value inside this one."""
        return Value(self.source, (*self.key, name), said, self.groups)

    def text(self) -> str:
        """A text, without places to fill in."""
        if not isinstance(self.said, str):
            raise self.wrong("expected text", "put it in quotes")
        return self.said

    def template(self) -> str:
        """A text whose places are all known."""
        known = PLACES | self.groups
        for name in places(self.text()):
            if name not in known:
                close = get_close_matches(name, known, 1)
                hint = f"did you mean {{{close[0]}}}?" if close else f"write {{{{{name}}}}} if the braces are meant"
                raise self.wrong(f"{{{name}}} is nothing that can be filled in", hint)
        return self.text()

    def number(self, least: float, most: float) -> float:
        """A number within bounds."""
        if isinstance(self.said, bool) or not isinstance(self.said, int | float):
            raise self.wrong("expected a number", "leave out the quotes")
        if not least <= self.said <= most:
            raise self.wrong(f"must be from {least:g} to {most:g}")
        return self.said

    def truth(self) -> bool:
        """true or false."""
        if not isinstance(self.said, bool):
            raise self.wrong("expected true or false")
        return self.said

    def whole(self, least: int, most: int) -> int:
        """A whole number within bounds."""
        if self.number(least, most) != int(self.number(least, most)):
            raise self.wrong("expected a whole number")
        return int(self.number(least, most))

    def duration(self) -> float:
        """Seconds, or text such as 500ms, 2s, 5m; never longer than an hour."""
        match = _DURATION.fullmatch(self.said) if isinstance(self.said, str) else None
        if match is not None:
            return self.inside_bounds(float(match[1]) * _SECONDS[match[2]])
        if isinstance(self.said, str):
            raise self.wrong(f"{self.said!r} is no duration", "write 500ms, 2s or 5m")
        return self.number(0, LONGEST_WAIT)

    def inside_bounds(self, seconds: float) -> float:
        """The seconds, when a turn may wait that long."""
        if seconds > LONGEST_WAIT:
            raise self.wrong(f"must be at most {LONGEST_WAIT:g} seconds")
        return seconds

    def block(self, needed: frozenset[str], more: frozenset[str] = frozenset()) -> "Mapping[str, Value]":
        """The keys of a block, all of them known."""
        if not isinstance(self.said, dict):
            raise self.wrong(f"expected {', '.join(sorted(needed | more))}", f"such as {{{min(needed | more)}: …}}")
        for name in self.said:
            if name not in needed | more:
                close = get_close_matches(name, needed | more, 1)
                hint = f"did you mean {close[0]}?" if close else f"known here: {', '.join(sorted(needed | more))}"
                raise self.inside(name, None).wrong("unknown key", hint)
        for name in sorted(needed - self.said.keys()):
            raise self.wrong(f"{name} is missing", f"add {name}: …")
        return {name: self.inside(name, said) for name, said in self.said.items()}


def checked_steps(value: Value) -> tuple[Step, ...]:
    """A list of steps."""
    if not isinstance(value.said, tuple) or not value.said:
        raise value.wrong("expected a list of steps", "begin each step with a hyphen and a space: - say: hello")
    return tuple(_step(value.inside(number, said)) for number, said in enumerate(value.said))


def _step(value: Value) -> Step:
    if not isinstance(value.said, dict) or len(value.said) != 1:
        raise value.wrong("expected one step", "one word and what it needs, such as - say: hello")
    [(name, said)] = value.said.items()
    inner = value.inside(name, said)
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
    if isinstance(value.said, str):
        return steps.RunStep(value.said, RUN_TIMEOUT)
    keys = value.block(frozenset({"command"}), frozenset({"timeout"}))
    return steps.RunStep(keys["command"].text(), keys["timeout"].duration() if "timeout" in keys else RUN_TIMEOUT)


def _wait(value: Value) -> Step:
    if not isinstance(value.said, dict):
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
    if not isinstance(value.said, dict):
        return steps.ErrorStep(value.template())
    keys = value.block(frozenset({"text"}), frozenset({"full"}))
    return steps.ErrorStep(keys["text"].template(), "full" in keys and keys["full"].truth())


def _hang(value: Value) -> Step:
    if value.said is not True and value.said != "stubborn":
        raise value.wrong("expected true or stubborn", "take the step away if it is not to hang")
    return steps.HangStep(value.said == "stubborn")


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
"""Every step by its name."""
