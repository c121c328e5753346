"""Flood control: whoever says too much at once is read more slowly, never cut off."""

from culture.config.model import Rate


class FloodBucket:
    """How many commands may still come at once; it refills with time."""

    __slots__ = ("_at", "_left")

    def __init__(self, now: float) -> None:
        self._left: float | None = None  # full
        self._at = now

    def take(self, commands: int, allowed: Rate, now: float) -> int:
        """Of so many commands, how many may run now."""
        if not allowed.rate:
            return commands
        left = allowed.burst if self._left is None else self._left
        left = min(allowed.burst, left + (now - self._at) * allowed.rate)
        granted = min(commands, int(left))
        self._left = left - granted
        self._at = now
        return granted

    def give_back(self, part: float) -> None:
        """What came cost less than a command."""
        if self._left is not None:
            self._left += part

    def wait(self, allowed: Rate) -> float:
        """Seconds until the next command may run."""
        left = allowed.burst if self._left is None else self._left
        return max(0.0, (1 - left) / allowed.rate) if allowed.rate else 0.0
