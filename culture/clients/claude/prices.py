"""Estimate the cost of a running turn: Claude Code reports dollars only at its end.

The price list has one price per model family. At the end of a turn the real figure replaces the estimate, and their
ratio corrects the estimates of later turns, so that a model with another price is estimated wrongly only once.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from claude_agent_sdk.types import ContentBlock

_MILLION = 1_000_000
_PRICES = {"haiku": (1.0, 5.0), "sonnet": (3.0, 15.0), "opus": (5.0, 25.0)}
"""Dollars per million input and output tokens."""
_DEAREST = _PRICES["opus"]
_CACHE_READ, _CACHE_WRITTEN = 0.1, 1.25
"""Price of cached tokens relative to other input."""
_LETTERS = 4
"""Characters per token, roughly."""
_LEAST, _MOST = 0.1, 10.0


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
