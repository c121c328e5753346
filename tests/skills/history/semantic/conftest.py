"""A store, and searches by meaning in it that are ended with the test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from culture.config.skills import Embeddings
from culture.skills.history.semantic import Semantic
from culture.skills.history.store import Store
from tests.skills.history.semantic.double import Double
from tests.skills.history.semantic.searches import Start
from tests.skills.history.stores import sqlite


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """The vectors lie beside the store whatever it is, so one kind is enough."""
    with sqlite(tmp_path) as opened:
        yield opened


@pytest.fixture
def begin(store: Store, tmp_path: Path) -> Iterator[Start]:
    """``begin()``: a search that runs, by default with the offline model."""
    running: list[Semantic] = []

    def begin(settings: Embeddings | None = None, *, of: Store | None = None) -> Semantic:
        semantic = Semantic(of or store, tmp_path, settings or Embeddings())
        running.append(semantic)
        semantic.start()
        return semantic

    yield begin
    for semantic in running:
        semantic.stop()


@pytest.fixture
def double() -> Iterator[Double]:
    """An endpoint that gives vectors without a model."""
    with Double() as running:
        yield running
