"""Whatever happens to the process, the disk or the file: what was called stored is there, and people can talk."""

from pathlib import Path

import pytest

from tests.support.storm import run

pytestmark = pytest.mark.requirement("D06")


@pytest.mark.fault("B12")
async def test_what_was_receipted_survives_kill_9(tmp_path: Path) -> None:
    storm = await run(tmp_path, rounds=4, messages=400, clients=5, seed=4)
    assert storm.kills == 4
    assert len(storm.receipted) > 100
    assert storm.check() >= len(storm.receipted)
