"""Token buckets, sliding windows and slots, on a clock that the test moves."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culture.lib.ratelimit import FixedRate, KeyedTokenBuckets, SlidingWindow, Slots, TokenBucket

NO_LIMIT = FixedRate(1, 0)
steps = st.lists(st.tuples(st.floats(0, 5), st.integers(0, 30)), max_size=50)


@given(st.integers(1, 20), st.floats(0.1, 50), steps)
def test_no_more_than_burst_and_rate_pass(burst: int, rate: float, asked: list[tuple[float, int]]) -> None:
    limit, bucket, now, granted = FixedRate(burst, rate), TokenBucket(0.0), 0.0, 0
    for pause, count in asked:
        now += pause
        granted += bucket.take(count, limit, now)
        assert granted <= burst + now * rate + 2e-6


@given(st.integers(1, 20), st.floats(0.1, 50), steps)
def test_after_the_wait_a_token_is_there(burst: int, rate: float, asked: list[tuple[float, int]]) -> None:
    limit, bucket, now = FixedRate(burst, rate), TokenBucket(0.0), 0.0
    for pause, count in asked:
        now += pause
        bucket.take(count, limit, now)
        now += bucket.wait(limit, now)
        assert bucket.wait(limit, now) == 0
        assert bucket.take(1, limit, now) == 1


@given(st.integers(1, 20), st.floats(0.1, 50), steps)
def test_credit_is_paid_back_at_the_rate(burst: int, rate: float, asked: list[tuple[float, int]]) -> None:
    """Who waits as long as told before each action keeps to the limit."""
    limit, bucket, now, spent = FixedRate(burst, rate), TokenBucket(0.0), 0.0, 0
    for pause, count in asked:
        now += pause
        now += bucket.spend(count, limit, now)
        spent += count
        assert spent <= burst + now * rate + 2e-6


def test_lines_to_a_foreign_server_go_five_at_once_then_one_in_two_seconds() -> None:
    limit, bucket = FixedRate(burst=5, rate=0.5), TokenBucket(0.0)
    assert [bucket.spend(1, limit, 0.0) for _ in range(7)] == [0, 0, 0, 0, 0, 2, 4]
    assert bucket.take(1, limit, 0.0) == 0, "nothing is granted on credit"
    assert bucket.spend(1, limit, 100.0) == 0
    assert bucket.spend(8, limit, 100.0) == 8.0


def test_full_bucket_has_the_burst_of_the_limit_that_it_is_asked_for() -> None:
    bucket = TokenBucket(0.0)
    assert bucket.take(1000, FixedRate(100, 1), 0.0) == 100
    assert bucket.take(1000, FixedRate(5, 1), 50.0) == 5, "a smaller limit holds at once"


def test_rate_of_zero_is_no_limit_and_a_part_can_be_given_back() -> None:
    bucket = TokenBucket(0.0)
    assert bucket.take(10**6, NO_LIMIT, 0.0) == 10**6
    assert bucket.wait(NO_LIMIT, 0.0) == bucket.spend(10**6, NO_LIMIT, 0.0) == 0
    limit = FixedRate(1, 0.001)
    assert bucket.take(1, limit, 0.0) == 1
    bucket.give_back(0.5)
    assert bucket.wait(limit, 0.0) == pytest.approx(500)
    assert bucket.take(1, limit, -10.0) == 0, "a clock that goes back gives nothing"


def test_each_key_has_its_own_bucket_and_only_so_many_are_remembered() -> None:
    buckets = KeyedTokenBuckets(FixedRate(1, 0.001), most_keys=3)
    assert [buckets.take(key, 0.0) for key in "aab"] == [True, False, True]
    for number in range(100):
        assert not buckets.take("a", 0.0), "who is active is not forgotten"
        buckets.take(number, 0.0)
    assert len(buckets) == 3


@given(st.lists(st.tuples(st.floats(0, 4), st.sampled_from("ab")), max_size=60), st.integers(1, 5))
def test_no_window_has_more_than_the_limit(events: list[tuple[float, str]], most: int) -> None:
    window, now, period = SlidingWindow(), 0.0, 10.0
    allowed: dict[str, list[float]] = {"a": [], "b": []}
    for pause, key in events:
        now += pause
        wait = window.wait(key, most, period, now)
        assert (wait == 0) == (window.count(key, period, now) < most)
        if wait:
            assert window.count(key, period, now) == most and 0 < wait <= period
            continue
        window.add(key, now)
        allowed[key].append(now)
        assert len([at for at in allowed[key] if at > now - period]) <= most


def test_window_forgets_what_is_old_undone_or_cleared() -> None:
    window = SlidingWindow()
    for at in (0.0, 1.0, 2.0):
        window.add("a", at)
    assert (window.count("a", 10.0, 2.0), window.count("a", 10.0, 10.0), window.count("a", 10.0, 12.0)) == (3, 2, 0)
    assert len(window) == 0
    window.add("a", 20.0)
    window.undo("a")
    window.undo("a")
    window.add("b", 20.0)
    window.clear("b")
    assert len(window) == 0
    window.add("c", 20.0)
    window.add("d", 29.0)
    window.prune(10.0, 30.0)
    assert len(window) == 1


def test_memory_of_a_window_is_bounded() -> None:
    window = SlidingWindow(most_keys=3)
    for number in range(100):
        window.add("active", float(number), most=5)
        window.add(number, float(number))
    assert len(window) == 3 and window.count("active", 1000.0, 100.0) == 5


def test_slots_are_free_again_when_they_are_released() -> None:
    slots = Slots()
    assert [slots.take("a", 2) for _ in range(3)] == [True, True, False]
    assert slots.take("b", 2)
    slots.release("a")
    assert slots.take("a", 2) and len(slots) == 2
    for key in "aab":
        slots.release(key)
    assert len(slots) == 0
