"""``make proof NAME=story``: what `culture trace` tells of 500 messages to six agents on three servers, under kills."""

import asyncio
import json
import os
import random
from pathlib import Path

from tests.support.telling import told_right

MESSAGES = int(os.environ.get("STORY_MESSAGES", "500"))
KILLS = int(os.environ.get("STORY_KILLS", "40"))
SEED = int(os.environ.get("PROOF_SEED", "0"))


async def test_trace_tells_the_right_story_of_every_message(tmp_path: Path) -> None:
    """As text and as JSON: who said what, where it is stored, when it was delivered, injected and answered.

    Asked while everything is being killed, it never tells more than has happened.
    """
    chance = random.Random(SEED)
    figures = await told_right(tmp_path, MESSAGES, kills=KILLS, chance=chance, pause=0.5, watch=1.0)
    print(figures, flush=True)
    if path := os.environ.get("PROOF_FIGURES"):
        await asyncio.to_thread(Path(path).write_text, json.dumps(figures))
