"""How long to wait before the next try: 1, 2, 4 … 60 seconds, less some chance so that not all come at once."""

FIRST = 1.0
LONGEST = 60.0
_CHANCE = 0.25


def pause(attempt: int, chance: float, first: float = FIRST, longest: float = LONGEST) -> float:
    """Seconds until try number ``attempt`` (from 0) is followed by the next; ``chance`` is between 0 and 1."""
    # Beyond 2**60 it is the longest pause in any case, and a float would overflow some day.
    whole = min(longest, first * 2.0 ** min(attempt, 60))
    return whole * (1.0 - _CHANCE * chance)


class Backoff:
    """Counts tries, and forgets them once a connection has stood for a while."""

    def __init__(self, first: float = FIRST, longest: float = LONGEST) -> None:
        self.attempt = 0
        self._first = first
        self._longest = longest

    def next(self, chance: float) -> float:
        """The pause before the next try."""
        seconds = pause(self.attempt, chance, self._first, self._longest)
        self.attempt += 1
        return seconds

    def stood(self, seconds: float) -> None:
        """A connection has lasted this long; one that falls at once is as good as none."""
        if seconds >= self._longest / 2:
            self.attempt = 0
