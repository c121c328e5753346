"""What cannot be received now is received later; what can never be, holds up nobody."""

import sqlite3
from datetime import UTC, datetime

import pytest

from culture.transport.dedup import Delivery, Undelivered
from culture.transport.parse_messages import time_of
from culture.transport.types import Message


def message(msgid: str) -> Message:
    return Message("#general", "spark-ori", "hello", datetime.now(UTC), msgid)


@pytest.mark.parametrize("error", [sqlite3.OperationalError("database or disk is full"), OSError(28, "No space")])
def test_a_message_is_not_passed_over_while_the_disk_is_full(error: Exception) -> None:
    got: list[str] = []
    fails = 5

    def receive(said: Message) -> None:
        nonlocal fails
        if fails:
            fails -= 1
            raise error
        got.append(said.msgid)

    delivery = Delivery(receive, None)
    for _ in range(5):
        with pytest.raises(Undelivered):
            delivery.take_live(message("m1"))
        assert delivery.mark is None
    delivery.take_live(message("m1"))
    assert got == ["m1"]


def test_a_message_that_breaks_its_reader_twice_is_passed_over() -> None:
    def receive(said: Message) -> None:
        raise ValueError("poison")

    delivery = Delivery(receive, None)
    with pytest.raises(Undelivered):
        delivery.take_live(message("m1"))
    delivery.take_live(message("m1"))
    assert delivery.mark is not None


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "soon", ""])
def test_a_time_that_is_none_is_no_time(time: str) -> None:
    assert time_of({"time": time}) is None
