"""``make proof NAME=killstorm``: kill -9 at 200 points while twenty clients with receipts say 10,000 messages."""

import asyncio
import json
import os
import time
from pathlib import Path

from tests.support.storm import kill_again_and_again

KILLS = int(os.environ.get("STORM_KILLS", "200"))
MESSAGES = int(os.environ.get("STORM_MESSAGES", "10000"))
SEED = int(os.environ.get("PROOF_SEED", "0"))


async def test_what_was_receipted_survives_every_kill(tmp_path: Path) -> None:
    """B12: after each kill the database opens clean and holds every receipted message once, whole and in order."""
    began = time.monotonic()
    storm = await kill_again_and_again(tmp_path, KILLS, MESSAGES, 20, SEED)
    kept = storm.check()
    assert len(storm.receipted) >= MESSAGES * 0.8
    if path := os.environ.get("PROOF_FIGURES"):
        figures = {
            "kills": storm.kills,
            "sent": storm.sent.total(),
            "receipted": len(storm.receipted),
            "kept": kept,
            "receipted_and_missing": 0,
            "seconds": round(time.monotonic() - began, 1),
        }
        await asyncio.to_thread(Path(path).write_text, json.dumps(figures))
