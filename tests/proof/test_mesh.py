"""``make proof NAME=mesh``: five servers in a ring with a chord, cut, half open and killed while fifty people talk."""

import asyncio
import json
import os
import random
import time
from pathlib import Path

from tests.support.mesh import mesh
from tests.support.rumours import CHORD, QUICK, RING, Rumours

SEEDS = int(os.environ.get("MESH_SEEDS", "20"))
SECONDS = float(os.environ.get("MESH_SECONDS", "60"))
FIRST = int(os.environ.get("PROOF_SEED", "0"))
CLIENTS = 10


async def test_every_history_is_the_same_afterwards(tmp_path: Path) -> None:
    """D8, D9: nothing is missing from any history, nothing is there twice, and nobody heard anything twice."""
    runs = []
    for seed in range(FIRST, FIRST + SEEDS):
        run = await _run(tmp_path / str(seed), seed)
        print(f"seed {seed}: {run}", flush=True)
        runs.append(run)
    if path := os.environ.get("PROOF_FIGURES"):
        figures = {"seeds": SEEDS, "missing": 0, "twice": 0}
        figures |= {key: sum(run[key] for run in runs) for key in ("said", "stored", "kept", "heard", "cuts", "kills")}
        figures["longest_settling_s"] = round(max(run["settling_s"] for run in runs), 1)
        await asyncio.to_thread(Path(path).write_text, json.dumps(figures))


async def _run(folder: Path, seed: int) -> dict[str, float]:
    await asyncio.to_thread(folder.mkdir)
    async with mesh(folder, names=RING, edges=CHORD, federation=QUICK) as m:
        await m.linked()
        async with Rumours(m, clients=CLIENTS, pace=0.5).going() as rumours:
            await rumours.break_things(CHORD, SECONDS, kills=2, chance=random.Random(seed))
            ended = time.monotonic()
            kept = await rumours.settle()
            settling = time.monotonic() - ended
            rumours.check()
            assert rumours.kills == 2 and rumours.stored <= kept
            heard = sum(len(each) for each in rumours.heard)
            return {
                "said": rumours.said,
                "stored": len(rumours.stored),
                "kept": len(kept),
                "heard": heard,
                "cuts": rumours.cuts,
                "kills": rumours.kills,
                "settling_s": settling,
            }
