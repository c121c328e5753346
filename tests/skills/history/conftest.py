"""A store with nothing in it, of each kind."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from culture.skills.history.store import Store
from tests.skills.history.stores import FACTORIES


@pytest.fixture(params=sorted(FACTORIES))
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with FACTORIES[request.param](tmp_path) as opened:
        yield opened
