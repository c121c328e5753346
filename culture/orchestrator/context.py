"""How full a member's context is, and what follows from it."""

from enum import Enum

WARN_PCT = 80


class Fill(Enum):
    """What is to be done because of it."""

    ROOM = "nothing"
    WARN = "the member wraps up what it is at"
    SHIFT = "the member hands over"


class ContextTracker:
    """The backend's own figure where it gives one; else what was read so far, against the window of the model."""

    def __init__(self, window_size: int, threshold_pct: float = 90, warn_pct: float = WARN_PCT) -> None:
        self.window_size = window_size
        self.threshold_pct = threshold_pct
        self.warn_pct = min(warn_pct, threshold_pct)
        self.input_tokens = 0
        self._told: float | None = None

    def add(self, input_tokens: int, pct: float | None = None) -> None:
        """A turn is over: what was read in it, and how full its backend says the context is."""
        self.input_tokens += input_tokens
        if pct is not None:
            self._told = pct

    def renew(self) -> None:
        """A new session begins, with nothing in it."""
        self.input_tokens = 0
        self._told = None

    @property
    def pct(self) -> float:
        """How full it is."""
        return self._told if self._told is not None else 100 * self.input_tokens / self.window_size

    @property
    def fill(self) -> Fill:
        """What is to be done."""
        if self.pct >= self.threshold_pct:
            return Fill.SHIFT
        return Fill.WARN if self.pct >= self.warn_pct else Fill.ROOM
