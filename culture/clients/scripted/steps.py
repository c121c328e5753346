"""What a playbook can have its agent do: one class for each step."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SayStep:
    """Give a text; the last one of a turn is its answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ThinkStep:
    """Think aloud; nobody in the rooms sees it."""

    text: str


@dataclass(frozen=True, slots=True)
class SendStep:
    """Say something in a channel or to somebody, through the skill client."""

    to: str
    text: str


@dataclass(frozen=True, slots=True)
class AskStep:
    """Ask and wait for the answer, through the skill client."""

    to: str
    question: str
    timeout: float
    options: str = ""
    """What there is to choose from, with / between; empty for any answer."""


@dataclass(frozen=True, slots=True)
class ReadStep:
    """Read what is unread in a channel, through the skill client."""

    channel: str


@dataclass(frozen=True, slots=True)
class RunStep:
    """Run a shell command."""

    command: str
    timeout: float


@dataclass(frozen=True, slots=True)
class WaitStep:
    """Let time pass, or wait until a file is there."""

    seconds: float
    until: str | None = None


@dataclass(frozen=True, slots=True)
class UsageStep:
    """Say what this turn is to have used; None leaves the estimate."""

    tokens: int | None = None
    cost_usd: float | None = None
    context_pct: float | None = None


@dataclass(frozen=True, slots=True)
class ErrorStep:
    """Fail as a model's API does: the turn ends without an answer; ``full`` says that the session has no more room."""

    text: str
    full: bool = False


@dataclass(frozen=True, slots=True)
class CrashStep:
    """End the agent's process with a code; a negative one is a signal."""

    code: int


@dataclass(frozen=True, slots=True)
class HangStep:
    """Never come back, whatever one is told; a stubborn agent does not end on SIGTERM either."""

    stubborn: bool


@dataclass(frozen=True, slots=True)
class LoopStep:
    """Do some steps again and again."""

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
