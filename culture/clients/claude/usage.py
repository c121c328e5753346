"""Estimate the cost of a running turn, and read quotas from Claude Code's rate limit reports.

Claude Code reports dollars only at the end of a turn. The price list has one price per model family. At the end of a
turn the real figure replaces the estimate, and their ratio corrects the estimates of later turns, so that a model with
another price is estimated wrongly only once.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from claude_agent_sdk import RateLimitInfo
from claude_agent_sdk.types import ContentBlock

from culture.clients.shared.budget import Quota

_MILLION = 1_000_000
_PRICES = {"haiku": (1.0, 5.0), "sonnet": (3.0, 15.0), "opus": (5.0, 25.0)}
"""Dollars per million input and output tokens."""
_DEAREST = _PRICES["opus"]
_CACHE_READ, _CACHE_WRITTEN = 0.1, 1.25
"""Price of cached tokens relative to other input."""
_LETTERS = 4
"""Characters per token, roughly."""
_LEAST, _MOST = 0.1, 10.0
REJECTED = "rejected"
# Paid usage beyond the subscription: not a quota that resets.
_OVERAGE = "overage"
_ALL = "unifiedWindows"


def price(model: str, usage: Mapping[str, Any] | None, content: Sequence[ContentBlock] = ()) -> float:
    """Return the estimated dollars of one model call.

    ``usage``: the tokens as the call reports them; the output tokens are estimated from ``content``.
    """
    if not usage:
        return 0.0
    read, written = next((each for family, each in _PRICES.items() if family in model), _DEAREST)
    tokens = {name: value for name, value in usage.items() if isinstance(value, int)}
    output = max(tokens.get("output_tokens", 0), sum(map(_letters, content)) // _LETTERS)
    weighed = (
        tokens.get("input_tokens", 0)
        + _CACHE_READ * tokens.get("cache_read_input_tokens", 0)
        + _CACHE_WRITTEN * tokens.get("cache_creation_input_tokens", 0)
    )
    return (weighed * read + output * written) / _MILLION


class Estimate:
    """Corrects list prices by the ratio of real cost to list price in the last turn."""

    def __init__(self) -> None:
        self._factor = 1.0

    def of(self, listed: float) -> float:
        """Return an estimate in dollars: ``listed``, corrected by the last turn's real cost.

        ``listed``: the amount according to the price list.
        """
        return listed * self._factor

    def correct(self, listed: float, cost_usd: float) -> None:
        """Record a turn's dollars by the price list and its real cost, to correct later estimates."""
        if listed > 0 and cost_usd > 0:
            self._factor = min(max(cost_usd / listed, _LEAST), _MOST)


def _letters(block: ContentBlock) -> int:
    parts = (getattr(block, name, None) for name in ("text", "thinking", "input"))
    return sum(len(each if isinstance(each, str) else json.dumps(each)) for each in parts if each)


def quotas(told: RateLimitInfo) -> list[Quota]:
    """Return the usage quotas in a rate limit report, one per time window.

    A rejected window counts as used up.
    """
    windows = told.raw.get(_ALL)
    found = {
        name: Quota(name, float(each["utilization"]), float(each["resetsAt"]))
        for name, each in (windows.items() if isinstance(windows, dict) else ())
        if _is_figure(each, "utilization") and _is_figure(each, "resetsAt")
    }
    name, used = told.rate_limit_type, 1.0 if told.status == REJECTED else told.utilization
    if name is not None and name != _OVERAGE and used is not None and told.resets_at is not None:
        found[name] = Quota(name, used, float(told.resets_at))
    return list(found.values())


def _is_figure(window: object, key: str) -> bool:
    return isinstance(window, Mapping) and isinstance(window.get(key), int | float)
