"""An alert, and several of them told as one."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import IntEnum

from culture.config.agents import AlertEvent


class Severity(IntEnum):
    """How much it matters."""

    INFO = 1
    WARNING = 2
    ERROR = 3


SEVERITY: dict[AlertEvent, Severity] = {
    "agent_question": Severity.INFO,
    "agent_spiraling": Severity.WARNING,
    "agent_timeout": Severity.WARNING,
    "agent_error": Severity.ERROR,
    "agent_complete": Severity.INFO,
}


@dataclass(frozen=True, slots=True)
class Alert:
    """Something happened that people want to know."""

    event: AlertEvent
    nick: str
    text: str
    """One line without control characters."""
    link: str
    """Where to read more."""
    place: str = ""
    """The channel it is about; empty in private, and where it is about none."""
    question: str = ""
    """The id of the question, where it is one."""
    options: tuple[str, ...] = ()
    """What one may answer to that; empty where any text is an answer."""

    @property
    def severity(self) -> Severity:
        """How much it matters."""
        return SEVERITY[self.event]


@dataclass(frozen=True, slots=True)
class Bundle:
    """What is told at once: mostly one alert, in a burst the gravest of many and how many more there are."""

    id: str
    alerts: tuple[Alert, ...]
    more: int
    at: datetime

    @property
    def gravest(self) -> Alert:
        """The one that stands for all."""
        return self.alerts[0]

    @property
    def lines(self) -> list[str]:
        """The text of each that is told in full."""
        return [alert.text for alert in self.alerts]

    @property
    def rest(self) -> str:
        """What is said of the others; empty when there are none."""
        return and_more(self.more)

    @property
    def time(self) -> str:
        """When they were told, as people and programs write it."""
        return self.at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def and_more(count: int) -> str:
    """What is said of those that are only counted."""
    return f"… and {count} more" if count else ""


def gravest_first(alerts: Sequence[Alert]) -> list[Alert]:
    """By severity, and among equals as they came."""
    return sorted(alerts, key=lambda alert: -alert.severity)
