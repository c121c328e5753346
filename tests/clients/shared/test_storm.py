"""Agents on linked servers miss nothing while daemons and servers are killed: the proof ``delivery`` in small."""

from pathlib import Path

import pytest

from tests.support.agentstorm import EDGES, NAMES, delivered
from tests.support.fleet import agents_on
from tests.support.mesh import mesh
from tests.support.rumours import QUICK


@pytest.mark.fault("E7", "E22")
@pytest.mark.requirement("F23")
async def test_nothing_is_lost_when_daemons_and_servers_are_killed(tmp_path: Path) -> None:
    async with mesh(tmp_path, names=NAMES, edges=EDGES, federation=QUICK) as m:
        await m.linked()
        async with agents_on(m, tmp_path) as agents:
            figures = await delivered(m, agents, messages=60, kills=4, seed=1, pause=0.2, settling=30.0)
            assert figures["given"] + figures["read"] == figures["receipted"] >= 60
            assert figures["kills_of_daemons"] + figures["kills_of_servers"] == 4
