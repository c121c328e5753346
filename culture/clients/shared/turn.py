"""What the daemon and a runner tell each other beyond the contract."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from culture.clients.shared.sandbox.needs import ProgramNeeds

if TYPE_CHECKING:  # the agents' own command line imports the backends, and starts with the standard library alone
    from culture.clients.shared.sandbox.bubblewrap import Sandbox

COMPACT = "/compact"
CLEAR = "/clear"
COMMANDS = frozenset({COMPACT, CLEAR})
"""The prompts that are commands of the harness; every other prompt is text and stays text."""


class Can(Enum):
    """What some backends can do and others cannot."""

    RESUME = "take up an earlier session"
    COMPACT = "shorten its own context"
    CLEAR = "begin anew in the same process"
    DEEPER = "think harder for one turn"


@dataclass(frozen=True, slots=True)
class RunnerSetup:
    """What a runner is made from."""

    nick: str
    directory: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    """What the agent's processes have beside the daemon's own variables; everything that is started inherits it."""
    model: str | None = None
    thinking: str = "medium"
    instructions: str = ""
    """Added to the agent's own system prompt."""
    options: Mapping[str, object] = field(default_factory=dict)
    """The fields of the configuration that only this backend understands."""
    resume: str | None = None
    """The session to take up again; None begins a new one."""
    sandbox: "Sandbox | None" = None
    """Where its processes are started; None is no sandbox."""


@dataclass(frozen=True, slots=True)
class Permit:
    """Whether the agent may use a tool, and else why not."""

    allowed: bool
    why: str = ""
    interrupt: bool = False
    """The whole turn is not wanted any more."""


@dataclass(frozen=True, slots=True)
class FormField:
    """One thing that the agent's program asks its user by itself."""

    text: str
    options: tuple[tuple[str, str], ...] = ()
    """Labels to choose from, each with what it means; none where any text answers."""
    several: bool = False
    """More than one of them may be chosen."""


@dataclass(frozen=True, slots=True)
class FormReply:
    """What people answered: one value for each field, or none and why."""

    values: tuple[str, ...] | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Turn:
    """One answer of the agent: from a prompt to the moment it takes the next."""

    text: str = ""
    """The last text it gave; never an error, never thinking."""
    error: str = ""
    """Why it is not an answer: the model's API failed, or the turn was broken off."""
    interrupted: bool = False
    tools: tuple[str, ...] = ()
    """The tools it used, in order."""
    tokens: int = 0
    """Read and written in this turn."""
    cost_usd: float = 0.0
    context_pct: float | None = None
    """How full its context is; None when the backend cannot tell."""
    full: bool = False
    """Its context is so full that it can do nothing more; a new session is begun."""
    limited_until: float | None = None
    """The provider gives nothing more until then (seconds since 1970)."""
    compacted: bool = False
    """Its context was shortened in this turn."""


@dataclass(frozen=True, slots=True)
class News:
    """What a program would begin a turn for by itself: a background command has ended, a wake-up is due."""

    key: str
    """The same for the same news, however often it is told."""
    place: str
    """Where the agent began what it is about; empty if unknown."""
    text: str


@dataclass(frozen=True, slots=True)
class Backend:
    """A kind of agent; runner and supervisor are ``module:Class`` and loaded on use, as their SDKs are heavy."""

    name: str
    runner: str
    supervisor: str | None = None
    fields: frozenset[str] = frozenset()
    """The keys it adds to an agent in agents.yaml."""
    default_model: str | None = None
    skill: str = ""
    """The package whose ``skill`` folder teaches the agent its tools."""
    skill_folders: tuple[str, ...] = (".agents/skills",)
    """Where, under the agent's home, its program looks for skills."""
    loads_skill: bool = False
    """Whether its runner gives the program the skill at each start, so that nothing needs to be installed."""
    watched: bool = True
    """Whether such an agent has a supervisor when the configuration names none."""
    ask_bound: float | None = None
    """After so many seconds a call that asks returns without an answer, which comes as a prompt.

    Less than its program waits for a command, which it then ends or moves to its background; None where it waits.
    """
    finder: str | None = None
    """``module:function`` that tells what is installed of it: a ``programs.Found`` for each program that it could run.

    It loads no SDK and asks nobody. One that is ready is enough.
    """
    asks: tuple[str, frozenset[str]] = ("", frozenset())
    """The key of its permissions, and the values with which people are asked; with any other it never asks."""
    needs: ProgramNeeds = field(default_factory=ProgramNeeds)
    """What its program needs inside a sandbox."""
    needs_of: str | None = None
    """``module:function`` that tells the needs from an agent's own options, where they depend on the program."""


OWN_MODEL = "default"
"""The word in the configuration that leaves the model to the agent's program."""


def chosen_model(model: str | None, default: str | None = None) -> str | None:
    """Model to ask the program for, ``default`` where none is configured; None leaves it to the program."""
    return None if model == OWN_MODEL else model or default


class AgentDied(Exception):
    """The agent's process ended by itself; ``code`` is how."""

    def __init__(self, code: int, text: str = "") -> None:
        super().__init__(text or f"process exited with code {code}")
        self.code = code
