"""When to try again."""

from email.utils import parsedate_to_datetime

from culture.lib import backoff

FIRST = 1.0
LONGEST = 60.0
LONGEST_REST = 300.0
"""However long a receiver asks us to wait, so long it is believed."""


def retry_after(said: str, now: float) -> float | None:
    """The seconds that a Retry-After means (RFC 9110 §10.2.3), be it a number or a date; None when it says nothing."""
    text = said.strip()
    try:
        seconds = float(text) if text.replace(".", "", 1).isascii() and text[:1].isdigit() else _until(text, now)
    except (ValueError, TypeError, OverflowError):
        return None
    return min(max(seconds, 0.0), LONGEST_REST)


def delay(attempt: int, asked: float | None, chance: float) -> float:
    """How long to wait after the attempt of this number, 1 being the first; ``chance`` is between 0 and 1.

    Twice as long each time, and never the same for two senders; at least what the receiver asked for.
    """
    return (asked or 0.0) + backoff.delay(attempt - 1, FIRST, LONGEST, jitter=0.5, chance=1 - chance)


def _until(text: str, now: float) -> float:
    return parsedate_to_datetime(text).timestamp() - now
