"""Speaking: who hears what."""

import pytest

from tests.server.conftest import Crowd


def texts(messages: list) -> list[tuple[str, ...]]:
    return [(message.verb, *message.params) for message in messages]


@pytest.mark.requirement("B10")
async def test_a_channel_hears_what_is_said_and_the_speaker_does_not(crowd: Crowd) -> None:
    """RFC 2812 §3.3.1"""
    ori = await crowd.join("spark-ori", "#general")
    ada = await crowd.join("spark-ada", "#general")
    await ori.sync()
    assert await ori.ask("PRIVMSG #general :hello there") == []
    heard = await ada.expect("PRIVMSG", "#general", "hello there")
    assert heard.source.startswith("spark-ori!~tester@")
