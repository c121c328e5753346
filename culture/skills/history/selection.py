"""Which part of the history is asked for (IRCv3 draft/chathistory): a reference, a direction, a number."""

from collections.abc import Sequence

from culture.skills.history.references import Span
from culture.skills.history.store import Kept, Store, View

REFERENCES = {"LATEST": 1, "BEFORE": 1, "AFTER": 1, "AROUND": 1, "BETWEEN": 2}
"""The ways to ask, and how many references each takes."""


def select(store: Store, view: View, action: str, spans: Sequence[Span], limit: int) -> list[Kept]:
    """Up to so many entries, oldest first; without a span, the latest of all."""
    match action, spans:
        case "LATEST", []:
            return store.page(view, None, None, limit, newest=True)
        case "LATEST", [span]:
            return store.page(view, span.last, None, limit, newest=True)
        case "BEFORE", [span]:
            return store.page(view, None, span.first, limit, newest=True)
        case "AFTER", [span]:
            return store.page(view, span.last, None, limit, newest=False)
        case "AROUND", [span]:
            return _around(store, view, span, limit)
        case "BETWEEN", [begin, end] if begin.first <= end.first:
            return store.page(view, begin.last, end.first, limit, newest=False)
        case "BETWEEN", [begin, end]:
            return store.page(view, end.last, begin.first, limit, newest=True)
    raise ValueError(f"{action} with {len(spans)} references")


def _around(store: Store, view: View, span: Span, limit: int) -> list[Kept]:
    """What is there with about as many before as behind it; where one side has too few, the other has more."""
    earlier = store.page(view, None, span.first, limit, newest=True)
    later = store.page(view, span.first - 1, None, limit, newest=False)
    before = min(len(earlier), max(limit // 2, limit - len(later)))
    return earlier[len(earlier) - before :] + later[: limit - before]
