"""Waiting for a fact: the one `until`, and the one patience, of the tests."""

import asyncio
import inspect
import os
from collections.abc import Awaitable, Callable
from typing import Any

PATIENCE = float(os.environ.get("CULTURE_TEST_PATIENCE", "40"))
"""Seconds that a test waits for a fact before it fails. No test passes by waiting this long."""

_LOOK_AGAIN = 0.01


async def until(fact: Callable[[], Awaitable[Any] | Any], what: str = "", *, patience: float = PATIENCE) -> Any:
    """Wait until the function, or what it returns to await, gives something true; return that.

    It is asked again and again: where an object has an `until` of its own, it knows when it changes, and is cheaper.
    """
    try:
        async with asyncio.timeout(patience):
            while True:
                found = fact()
                if inspect.isawaitable(found):
                    found = await found
                if found:
                    return found
                await asyncio.sleep(_LOOK_AGAIN)
    except TimeoutError:
        raise AssertionError(what or f"not true within {patience:g} s: {_source(fact)}") from None


def _source(fact: Callable[[], Any]) -> str:
    try:
        return " ".join(inspect.getsource(fact).split())[:200]
    except (OSError, TypeError):
        return repr(fact)
