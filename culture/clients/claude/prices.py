"""What the calls of a turn cost so far, about: Claude Code tells dollars only when the turn is over.

The price list is that of the models' families; a turn's own figure replaces the estimate at its end, and corrects the
estimate of the next turn, so that a model of another price is wrong once.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from claude_agent_sdk.types import ContentBlock

_MILLION = 1_000_000
_PRICES = {"haiku": (1.0, 5.0), "sonnet": (3.0, 15.0), "opus": (5.0, 25.0)}
"""Dollars for a million tokens that are read, and written."""
_DEAREST = _PRICES["opus"]
_CACHE_READ, _CACHE_WRITTEN = 0.1, 1.25
"""What these cost in terms of other input."""
_LETTERS = 4
"""So many make about a token."""
_LEAST, _MOST = 0.1, 10.0


def price(model: str, usage: Mapping[str, Any] | None, content: Sequence[ContentBlock] = ()) -> float:
    """The dollars of one call of a model, as far as its message tells; its output is known before it is counted."""
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
    """Corrects the price list by what the last turn is known to have cost."""

    def __init__(self) -> None:
        self._factor = 1.0

    def of(self, listed: float) -> float:
        """What comes to so much by the list."""
        return listed * self._factor

    def correct(self, listed: float, cost_usd: float) -> None:
        """A turn that comes to so much by the list has cost this."""
        if listed > 0 and cost_usd > 0:
            self._factor = min(max(cost_usd / listed, _LEAST), _MOST)


def _letters(block: ContentBlock) -> int:
    parts = (getattr(block, name, None) for name in ("text", "thinking", "input"))
    return sum(len(each if isinstance(each, str) else json.dumps(each)) for each in parts if each)
