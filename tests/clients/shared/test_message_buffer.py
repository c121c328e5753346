"""The last messages of each place: nothing is read twice, and what fell out is known to have done so."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culture.clients.shared.message_buffer import MessageBuffer
from culture.config.agents import AgentsConfig
from culture.transport import Message


def said(number: int, channel: str = "#general") -> Message:
    return Message(channel, "spark-ori", f"text {number}", datetime(2026, 3, 19, tzinfo=UTC), f"id{number}")


@pytest.mark.requirement("H27", "K07")
def test_five_hundred_are_kept_with_who_what_and_when() -> None:
    buffer = MessageBuffer()
    for number in range(501):
        buffer.add(said(number))
    kept = buffer.read("#general", 1000)
    assert len(kept) == 500 == AgentsConfig().buffer_size
    assert (kept[0].nick, kept[0].text, kept[0].timestamp.year) == ("spark-ori", "text 1", 2026)
    assert buffer.ring("#general").behind


@pytest.mark.requirement("H07", "F30")
@given(st.lists(st.one_of(st.just(0), st.integers(1, 7)), max_size=60), st.integers(1, 10))
def test_each_is_read_once_and_in_order(steps: list[int], size: int) -> None:
    """0 is a message that comes, another number a read of so many."""
    buffer, came, read = MessageBuffer(size), 0, []
    for step in steps:
        if step:
            read += [int(message.text.split()[1]) for message in buffer.read("#general", step)]
        else:
            buffer.add(said(came))
            came += 1
    rest = [int(message.text.split()[1]) for message in buffer.read("#GENERAL", 100)]
    assert read + rest == sorted(set(read + rest))
    missing = set(range(came)) - set(read + rest)
    assert not missing or buffer.ring("#general").behind


def test_places_are_apart() -> None:
    buffer = MessageBuffer()
    buffer.add(said(1))
    buffer.add(said(2, "#other"))
    assert [message.msgid for message in buffer.read("#general")] == ["id1"]
    buffer.forget("#other")
    assert buffer.read("#other") == []
