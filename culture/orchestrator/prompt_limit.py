"""Limit of the prompts that answer a member's own lines: a model that repeats a line is not prompted for ever."""

import time
from collections import defaultdict, deque

MOST = 5
"""Prompts of one kind that a member gets within ``WITHIN``."""
WITHIN = 3600.0
LAST = " You are not prompted about further ones for an hour: ask, or do something else."
"""End of the last prompt before the limit."""


class PromptLimit:
    """Counts the prompts of one kind, by member. A restart of the orchestrator begins the count anew."""

    def __init__(self) -> None:
        self._given: defaultdict[str, deque[float]] = defaultdict(deque)

    def take(self, nick: str) -> str | None:
        """Count one more prompt: what to add to it, mostly nothing; None where the member gets no more."""
        given, now = self._given[nick.lower()], time.monotonic()
        while given and now - given[0] >= WITHIN:
            given.popleft()
        if len(given) >= MOST:
            return None
        given.append(now)
        return LAST if len(given) == MOST else ""
