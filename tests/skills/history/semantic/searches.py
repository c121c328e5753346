"""Asking a search by meaning, and looking into its file."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from culture.skills.history.semantic import Semantic
from culture.skills.history.store import Store, View
from tests.skills.history.entries import PLACE
from tests.support.waiting import PATIENCE

Start = Callable[..., Semantic]


def found(semantic: Semantic, text: str, view: View | str = PLACE, limit: int = 5) -> list[str]:
    """The texts that are found, best first, once everything is ready."""
    assert semantic.caught_up(PATIENCE)
    view = View(view) if isinstance(view, str) else view
    return [each.entry.text for each in semantic.search(view, text, limit, PATIENCE)]


def stored(folder: Path) -> dict[int, tuple[str, str, int, int]]:
    """Place, model, dimension and length of the vector by position."""
    with closing(sqlite3.connect(folder / "vectors.db")) as connection:
        rows = connection.execute(
            "SELECT v.position, v.place, m.name, m.dimension, length(v.vector)"
            " FROM vectors v JOIN models m ON m.id = v.model"
        )
        return {position: tuple(rest) for position, *rest in rows}


def positions(store: Store) -> list[int]:
    """Of every message of a channel."""
    return [each.position for each in store.messages(-1, 1_000_000)]
