"""Hours of the day in which messages wait."""

from datetime import datetime, time, timedelta


def is_quiet(span: str | None, now: datetime) -> bool:
    """Whether a moment of the machine's own time lies in a span such as ``22:00-07:00``."""
    if span is None:
        return False
    begin, end = map(time.fromisoformat, span.split("-"))
    clock = now.time()
    return begin <= clock < end if begin <= end else clock >= begin or clock < end


def seconds_left(span: str, now: datetime) -> float:
    """How long the span that now lies in still lasts."""
    end = time.fromisoformat(span.split("-")[1])
    until = datetime.combine(now.date(), end, now.tzinfo)
    if until <= now:
        until += timedelta(days=1)
    return (until - now).total_seconds()
