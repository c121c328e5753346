"""What is read of Claude Code."""

import asyncio

import pytest

from culture.clients.shared.queued import UNKNOWN_EXIT
from tests.support.waiting import PATIENCE

pytest.importorskip("claude_agent_sdk", reason="the extra culture[claude] is not installed")

from claude_agent_sdk import ClaudeSDKClient
from claude_agent_sdk.types import Message

from culture.clients.claude.session import ClaudeSession


@pytest.mark.timeout(30)
async def test_one_that_is_not_there_is_dead_and_holds_up_nobody() -> None:
    told: asyncio.Queue[int] = asyncio.Queue()

    async def heard(message: Message) -> None:
        raise AssertionError(message)

    session = ClaudeSession(ClaudeSDKClient(), heard, told.put)
    async with asyncio.timeout(PATIENCE):
        assert await told.get() == UNKNOWN_EXIT
    await asyncio.wait([session._reader])
