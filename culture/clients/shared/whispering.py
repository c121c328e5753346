"""What an agent is told by its supervisor: each word once, by whichever way reaches it first."""

from collections.abc import Callable, Sequence

from culture.clients.shared.ipc import Whisper
from culture.clients.shared.verdicts import Action

CHECK_IN = (
    "You haven't checked your channels in {minutes} minutes. "
    "Consider doing an irc_read() to see if there's relevant input."
)
COMPACT = (
    "Your context is {percent:.0f} % full. Consider compact_context() at the next good moment; "
    "write down first what you must not lose."
)


def shown(whispers: Sequence[Whisper]) -> list[str]:
    """Whispers as an agent sees them, wherever it does."""
    return [f"[SUPERVISOR/{kind}] {message}" for kind, message in whispers]


class Advice:
    """What needs no model: reminds an agent of its channels, and that its context fills up; each once in a while."""

    def __init__(self, check_in: float, compact_at: float, clock: Callable[[], float]) -> None:
        self._check_in = check_in
        self._compact_at = compact_at
        self._clock = clock
        self._looked = clock()
        self._reminded = clock()
        self._advised: float | None = None

    def read(self) -> None:
        """The agent has read a channel, or begins something new."""
        self._looked = self._clock()

    def on_channels(self, unread: Callable[[], bool]) -> Whisper | None:
        """What to tell an agent that works, when there is something unread in its channels."""
        now = self._clock()
        if now - max(self._looked, self._reminded) < self._check_in or not unread():
            return None
        self._reminded = now
        minutes = max(round((now - self._looked) / 60), 1)
        return Whisper(Action.CORRECTION.value, CHECK_IN.format(minutes=minutes))

    def on_context(self, percent: float) -> Whisper | None:
        """What to tell an agent whose context is so full."""
        if percent <= self._compact_at:
            self._advised = None
            return None
        now = self._clock()
        if self._advised is not None and now - self._advised < self._check_in:
            return None
        self._advised = now
        return Whisper(Action.CORRECTION.value, COMPACT.format(percent=percent))
