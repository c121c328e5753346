"""``make proof NAME=delivery``: six agents on three linked servers, 2,000 messages, 100 kills of either."""

import asyncio
import json
import os
from pathlib import Path

import pytest

from tests.support.agentstorm import EDGES, NAMES, delivered
from tests.support.fleet import agents_on
from tests.support.mesh import mesh
from tests.support.rumours import QUICK

SEEDS = int(os.environ.get("DELIVERY_SEEDS", "1"))
KILLS = int(os.environ.get("DELIVERY_KILLS", "100"))
MESSAGES = int(os.environ.get("DELIVERY_MESSAGES", "2000"))
FIRST = int(os.environ.get("PROOF_SEED", "0"))
PAUSE = 1.0


@pytest.mark.fault("E7", "E8", "E22")
async def test_nothing_is_lost_and_nothing_given_twice_unmarked(tmp_path: Path) -> None:
    """Every message that was receipted reached its agent; what was given again says so and names its id."""
    runs = []
    for seed in range(FIRST, FIRST + SEEDS):
        run = await _run(tmp_path / str(seed), seed)
        print(f"seed {seed}: {run}", flush=True)
        runs.append(run)
    if path := os.environ.get("PROOF_FIGURES"):
        figures = {key: sum(run[key] for run in runs) for key in runs[0] if key != "settling_s"}
        longest = round(max(run["settling_s"] for run in runs), 1)
        await asyncio.to_thread(
            Path(path).write_text, json.dumps({"seeds": SEEDS, **figures, "longest_settling_s": longest})
        )


async def _run(folder: Path, seed: int) -> dict[str, float]:
    await asyncio.to_thread(folder.mkdir)
    async with mesh(folder, names=NAMES, edges=EDGES, federation=QUICK) as m:
        await m.linked()
        async with agents_on(m, folder) as agents:
            return await delivered(m, agents, messages=MESSAGES, kills=KILLS, seed=seed, pause=PAUSE)
