"""The steps of playbooks, one class for each, and the placeholders in their texts: ``Hello {sender}``."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

_OF_THE_MESSAGE = ("sender", "text", "target", "prompt")
_OF_THE_AGENT = ("nick", "server", "count", "session", "time", "thinking")
_OF_THE_STEPS = ("output", "code", "round")
PLACES = frozenset((*_OF_THE_MESSAGE, *_OF_THE_AGENT, *_OF_THE_STEPS))
"""Placeholders of all rules; a rule also has the groups of its pattern."""

_PLACE = re.compile(r"(?<!\$)\{\{(\w+)\}\}|(?<!\$)\{(\w+)\}")
_VARIABLE = "PLAYBOOK_"


@dataclass(frozen=True, slots=True)
class SayStep:
    """Say a text; the last such text of a turn is its answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ThinkStep:
    """Emit a thought, which is not sent to IRC."""

    text: str


@dataclass(frozen=True, slots=True)
class SendStep:
    """Send a message to a channel or nick, through ``irc_client``."""

    to: str
    text: str


@dataclass(frozen=True, slots=True)
class AskStep:
    """Ask a question and wait ``timeout`` seconds for the answer, through ``irc_client``."""

    to: str
    question: str
    timeout: float
    options: str = ""
    """Allowed answers, separated by ``/``; empty allows any."""


@dataclass(frozen=True, slots=True)
class ReadStep:
    """Read the unread messages of a channel, through ``irc_client``."""

    channel: str


@dataclass(frozen=True, slots=True)
class RunStep:
    """Run a shell command, for at most ``timeout`` seconds."""

    command: str
    timeout: float


@dataclass(frozen=True, slots=True)
class WaitStep:
    """Wait for some seconds, or until the file ``until`` exists."""

    seconds: float
    until: str | None = None


@dataclass(frozen=True, slots=True)
class UsageStep:
    """Set the usage that is reported for this turn; None keeps the estimate."""

    tokens: int | None = None
    cost_usd: float | None = None
    context_pct: float | None = None


@dataclass(frozen=True, slots=True)
class ErrorStep:
    """Fail as a model's API fails; ``full``: because the context is full."""

    text: str
    full: bool = False


@dataclass(frozen=True, slots=True)
class CrashStep:
    """End the agent's process with an exit code; a negative code is a signal."""

    code: int


@dataclass(frozen=True, slots=True)
class HangStep:
    """Hang, until the process is killed; a ``stubborn`` agent also ignores SIGTERM."""

    stubborn: bool


@dataclass(frozen=True, slots=True)
class LoopStep:
    """Repeat some steps, ``times`` times."""

    times: int
    steps: "tuple[Step, ...]"


Step = (
    SayStep
    | ThinkStep
    | SendStep
    | AskStep
    | ReadStep
    | RunStep
    | WaitStep
    | UsageStep
    | ErrorStep
    | CrashStep
    | HangStep
    | LoopStep
)


def places(text: str) -> Iterator[str]:
    """Iterate over the names of the placeholders in a text; ``{{name}}`` is an escaped one."""
    return (found[2] for found in _PLACE.finditer(text) if found[2])


def fill(text: str, values: Mapping[str, str]) -> str:
    """Return the text with its placeholders filled in; unknown ones stay as they are."""
    return _PLACE.sub(lambda found: _filled(found, values), text)


def shell_command(command: str, values: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """Return a shell command with its placeholders filled in, and its environment variables.

    The values are passed as variables, so that no value is run as a command.
    """
    known = {name: value for name, value in values.items() if name in set(places(command))}
    text = fill(command, {name: f'"${{{_VARIABLE}{name}}}"' for name in known})
    # No variable can hold a NUL.
    return text, {f"{_VARIABLE}{name}": value.replace("\0", "") for name, value in known.items()}


def _filled(found: re.Match[str], values: Mapping[str, str]) -> str:
    if found[1]:
        return f"{{{found[1]}}}"
    return values.get(found[2], found[0])
