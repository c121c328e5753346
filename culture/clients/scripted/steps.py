"""The steps of playbooks: one class for each."""

from dataclasses import dataclass


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
