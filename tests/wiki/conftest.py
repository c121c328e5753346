"""A wiki to try things on."""

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from culture.wiki.pages import Pages
from tests.cli.shell import Shell


@pytest.fixture(scope="session")
def fresh_wiki(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Pages.create(tmp_path_factory.mktemp("wiki") / "demo").folder


@pytest.fixture
def wiki(fresh_wiki: Path, tmp_path: Path) -> Pages:
    """A new one, called demo."""
    return Pages(shutil.copytree(fresh_wiki, tmp_path / "wiki" / "demo"))


@pytest.fixture
async def shell(tmp_path: Path) -> AsyncIterator[Shell]:
    """A terminal where the wiki is; what was started in it ends with the test."""
    session = Shell(tmp_path, {"CULTURE_HOME": str(tmp_path)})
    yield session
    await session.close()
