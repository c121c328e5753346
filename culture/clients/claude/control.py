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
    """Set the reasoning effort from the next model call on; return False if that failed."""
    settings = {"effortLevel": effort}
    return await _request(client, {"subtype": "apply_flag_settings", "settings": settings}) is not None


async def total_cost(client: ClaudeSDKClient) -> float | None:
    """Return the dollars of the session so far, or None if unknown."""
    usage = await _request(client, {"subtype": "get_usage"})
    total = ((usage or {}).get("session") or {}).get("total_cost_usd")
    return float(total) if isinstance(total, int | float) else None


async def fullness(client: ClaudeSDKClient) -> float | None:
    """Return how full the context is, in % of the size at which Claude Code compacts it.

    None if that cannot be measured. The first call costs an API request that counts tokens.
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
    """Version and login state that Claude Code reports at its start."""

    version: str = ""
    logged_in: bool = True
    """False only if the program says that nobody is logged in."""


async def greeting(client: ClaudeSDKClient) -> InitializeResponse:
    """Return version and login state from Claude Code's response to the initialize request.

    Missing fields have defaults.
    """
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
