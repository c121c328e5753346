"""Bursts become few messages, and nothing is lost of them."""

import heapq

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culture.clients.shared.webhook.alerts import Alert
from culture.clients.shared.webhook.coalescing import SHOWN, Bucket, Pending
from culture.clients.shared.webhook.poster import LIMITS
from culture.clients.shared.webhook.retrying import LONGEST_REST, delay, retry_after
from tests.support.clock import Clock, ClockedRuntime

ALLOWED = {"discord": 30, "slack": 60, "ntfy": 60, "json": 65}
"""What a receiver takes in a minute."""


def alert(event: str = "agent_error", text: str = "[ERROR] x") -> Alert:
    return Alert(event, "spark-claude", text, "irc://spark/x")  # type: ignore[arg-type]


def simulated(moments: list[float], burst: int, every: float, latency: float) -> list[tuple[float, int]]:
    """When something would be sent, and how many alerts were in it: arrivals, waits and posts on a clock of our own."""
    clock, pending, sent = Clock(), Pending(), []
    start = clock.now
    bucket = Bucket(burst, every, runtime=ClockedRuntime(clock, steady=True))
    arrivals = [start + moment for moment in sorted(moments)]
    heapq.heapify(arrivals)
    while arrivals or pending:
        if not pending:
            clock.now = max(clock.now, heapq.heappop(arrivals))
            pending.add(alert())
        while bucket.wait() > 0:
            clock.now += bucket.wait()
        assert bucket.take()
        while arrivals and arrivals[0] <= clock.now:
            heapq.heappop(arrivals)
            pending.add(alert())
        shown, more = pending.take()
        assert 1 <= len(shown) <= SHOWN
        sent.append((clock.now - start, len(shown) + more))
        clock.now += latency
    return sent


@given(
    st.lists(st.floats(0, 120), min_size=1, max_size=200),
    st.sampled_from(sorted(LIMITS.items())),
    st.floats(0, 3),
)
@pytest.mark.fault("H8")
def test_no_receiver_gets_more_than_it_takes_and_every_alert_is_counted(
    moments: list[float], limit: tuple[str, tuple[int, float]], latency: float
) -> None:
    kind, (burst, every) = limit
    sent = simulated(moments, burst, every, latency)
    assert sum(count for _, count in sent) == len(moments)
    for at, _ in sent:
        assert len([other for other, _ in sent if at <= other < at + 59.9]) <= ALLOWED[kind]


@pytest.mark.parametrize("kind", sorted(LIMITS))
@pytest.mark.fault("H8")
def test_ten_thousand_in_a_minute(kind: str) -> None:
    sent = simulated([index * 60 / 10_000 for index in range(10_000)], *LIMITS[kind], 0.05)  # type: ignore[index]
    assert sum(count for _, count in sent) == 10_000
    assert len([at for at, _ in sent if at < 59.9]) <= ALLOWED[kind]
    assert sent[0] == (0.0, 1), "the first is told at once"


def test_the_gravest_are_told_in_full() -> None:
    pending = Pending()
    for number in range(9):
        pending.add(alert("agent_complete", f"done {number}"))
    pending.add(alert("agent_error", "broken"))
    pending.add(alert("agent_timeout", "no answer"))
    shown, more = pending.take()
    assert [each.text for each in shown] == ["broken", "no answer", "done 0", "done 1", "done 2"] and more == 6
    assert len(pending) == 0


@pytest.mark.fault("H2")
def test_a_receiver_that_asks_for_a_rest_gets_it() -> None:
    clock = Clock()
    bucket = Bucket(5, 1.0, runtime=ClockedRuntime(clock, steady=True))
    bucket.rest(30)
    assert not bucket.take() and bucket.wait() == 30
    clock.now += 30
    assert bucket.take()


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("7", 7.0),
        ("0.5", 0.5),
        ("99999", LONGEST_REST),
        ("Thu, 01 Jan 1970 00:01:10 GMT", 10.0),
        ("Thu, 01 Jan 1970 00:00:10 GMT", 0.0),
        ("", None),
        ("soon", None),
        ("-3", None),
        ("1e999", LONGEST_REST),
        ("\u0663", None),
    ],
)
@pytest.mark.fault("H2")
def test_retry_after_is_a_number_or_a_date(said: str, seconds: float | None) -> None:
    assert retry_after(said, 60.0) == seconds


@given(st.integers(1, 50), st.none() | st.floats(0, 300), st.floats(0, 1))
@pytest.mark.fault("H2")
def test_it_waits_longer_each_time_and_at_least_as_asked(attempt: int, asked: float | None, chance: float) -> None:
    wait = delay(attempt, asked, chance)
    assert wait >= (asked or 0.0)
    assert 0.5 <= wait - (asked or 0.0) <= 60.1
    assert delay(1, None, chance) <= 1.0 <= delay(3, None, chance)
    assert delay(attempt, asked, 0.0) < delay(attempt, asked, 1.0)
