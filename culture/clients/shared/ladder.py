"""The ladder of a supervisor: a whisper, a stronger one, and only then people."""

from dataclasses import dataclass

from culture.clients.shared.verdicts import Action, Verdict

LEAST_THRESHOLD = 3
"""Two interventions must have failed before people are called."""


@dataclass(frozen=True, slots=True)
class Whisper:
    """Tell the agent, and nobody else."""

    action: Action
    message: str


@dataclass(frozen=True, slots=True)
class Escalate:
    """Call people; ``message`` says why."""

    message: str


Step = Whisper | Escalate


class Ladder:
    """Counts the findings in a row. After people were called it stands still until it is begun anew."""

    def __init__(self, threshold: int = LEAST_THRESHOLD) -> None:
        self._threshold = max(threshold, LEAST_THRESHOLD)
        self.findings = 0
        self.escalated = False

    def climb(self, verdict: Verdict) -> Step | None:
        """What a verdict leads to; None when nothing is to be done."""
        if self.escalated:
            return None
        if verdict.action is Action.OK:
            self.findings = 0
            return None
        self.findings += 1
        if self.findings >= self._threshold:
            self.escalated = True
            return Escalate(verdict.message)
        return Whisper(verdict.action, self._worded(verdict.message))

    def again(self) -> None:
        """A person has looked at it: begin at the bottom."""
        self.findings, self.escalated = 0, False

    def _worded(self, message: str) -> str:
        if self.findings == 1:
            return message
        left = self._threshold - self.findings
        end = "the next time people are called" if left == 1 else f"after {left} more people are called"
        return f"STILL NO PROGRESS, and this is warning {self.findings}; {end}. Stop what you are doing now. {message}"
