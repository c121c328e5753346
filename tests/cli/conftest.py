"""Fixtures of the command line's tests."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.cli.shell import Shell


@pytest.fixture
async def shell(tmp_path: Path) -> AsyncIterator[Shell]:
    """A terminal; what was started in it ends with the test."""
    session = Shell(tmp_path)
    yield session
    await session.close()
