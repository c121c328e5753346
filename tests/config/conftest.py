"""Fixtures of the configuration's tests."""

from collections.abc import Callable
from pathlib import Path

import pytest

Write = Callable[[str], Path]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder of the test's own."""
    monkeypatch.setenv("CULTURE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """``write("name: spark")``: a file with that text."""

    def file(text: str) -> Path:
        path = tmp_path / "culture.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    return file
