"""Requests of Claude Code's control protocol that its SDK has no method for.

The SDK is pinned to one version; should a request be unknown to a program, the turn goes on without it.
"""

import asyncio
import logging
from dataclasses import dataclass
from typing import Any

from claude_agent_sdk import ClaudeSDKClient
from claude_agent_sdk.types import EffortLevel

log = logging.getLogger(__name__)

PATIENCE = 5.0


async def set_effort(client: ClaudeSDKClient, effort: EffortLevel | None) -> bool:
    """Let the live session think this hard from its next call on; whether it will."""
    settings = {"effortLevel": effort}
    return await _request(client, {"subtype": "apply_flag_settings", "settings": settings}) is not None


async def total_cost(client: ClaudeSDKClient) -> float | None:
    """What the session has cost so far, in dollars; None when it does not say."""
    usage = await _request(client, {"subtype": "get_usage"})
    total = ((usage or {}).get("session") or {}).get("total_cost_usd")
    return float(total) if isinstance(total, int | float) else None


async def fullness(client: ClaudeSDKClient) -> float | None:
    """How full the context is in percent of what it holds before it shortens itself, which is less than the window.

    The first time the program asks the API to count its parts.
    """
    try:
        async with asyncio.timeout(PATIENCE):
            usage = await client.get_context_usage()
        return 100 * usage["totalTokens"] / (usage.get("autoCompactThreshold") or usage["maxTokens"])
    except Exception as error:
        log.warning("the context cannot be measured: %s", error)
        return None


@dataclass(frozen=True, slots=True)
class InitializeResponse:
    """What the program tells of itself when it starts."""

    version: str = ""
    logged_in: bool = True
    """False only when it says so."""


async def greeting(client: ClaudeSDKClient) -> InitializeResponse:
    """What it told; nothing of it is needed."""
    told = await client.get_server_info() or {}
    account = told.get("account") or {}
    nobody = account.get("tokenSource") == "none" and "apiKeySource" not in account
    return InitializeResponse(str(told.get("claude_code_version", "")), not nobody)


async def _request(client: ClaudeSDKClient, request: dict[str, Any]) -> dict[str, Any] | None:
    try:
        async with asyncio.timeout(PATIENCE):
            answer = await client._query._send_control_request(request)  # type: ignore[union-attr]
        return answer if isinstance(answer, dict) else {}
    except Exception as error:
        log.warning("%s failed: %s", request["subtype"], error)
        return None
