"""Fixtures of the skills' tests."""

from functools import partial
from pathlib import Path

import pytest

from tests.support.servers import Serve, serving


@pytest.fixture
def serve(tmp_path: Path) -> Serve:
    """``async with serve(limits={...}) as ircd``: a server with these settings."""
    return partial(serving, tmp_path)
