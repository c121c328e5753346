"""What to do after a crash: a plain decision about times."""

from collections import deque
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Restart:
    """Start again after so many seconds; ``fresh`` gives the old session up."""

    delay: float
    fresh: bool


class Recovery:
    """Counts crashes within a window: the first takes the session up again, the last ends the restarts."""

    def __init__(self, delay: float, crashes: int, window: float, *, always_fresh: bool = False) -> None:
        self._delay = delay
        self._crashes = crashes
        self._window = window
        self._always_fresh = always_fresh
        self._times: deque[float] = deque(maxlen=crashes)

    def crashed(self, now: float) -> Restart | None:
        """The agent has died: how to go on, or None when it shall not be started again."""
        while self._times and now - self._times[0] > self._window:
            self._times.popleft()
        self._times.append(now)
        if len(self._times) >= self._crashes:
            return None
        # A session that kills its agent must not do so a second time.
        return Restart(self._delay, self._always_fresh or len(self._times) > 1)

    def forget(self) -> None:
        """A person has looked after it: count from the beginning."""
        self._times.clear()
