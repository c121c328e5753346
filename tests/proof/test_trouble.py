"""``make proof NAME=trouble``: the file locked for ten seconds, then the disk full and kill -9, under traffic."""

import asyncio
import json
import os
from pathlib import Path

from tests.support.clock import sleep
from tests.support.lockholder import locked
from tests.support.small_disk import fill, small_disk
from tests.support.storm import Server, Storm

SECONDS = float(os.environ.get("LOCK_SECONDS", "10"))
STUCK, AGAIN = "nothing can be kept at present", "messages are kept again"


async def test_a_file_locked_for_ten_seconds_and_a_full_disk(tmp_path: Path) -> None:
    """B10, B11, B12: traffic flows, receipts are withheld, operators are told, nothing that was receipted is lost."""
    figures: dict[str, float] = {"locked_seconds": SECONDS}
    with small_disk(tmp_path / "small", "64m") as disk:
        storm = Storm(Server(disk), clients=20, pace=0.02)
        async with storm.talking():
            await storm.receipts(200)
            async with locked(storm.server.database):
                await storm.told(STUCK)
                heard, receipted = storm.heard, len(storm.receipted)
                await sleep(SECONDS)
                figures["heard_while_locked"] = storm.heard - heard
                figures["receipts_while_locked"] = len(storm.receipted) - receipted
            await storm.told(AGAIN)
            await storm.receipts(200)
            ballast = fill(disk)
            await storm.told(STUCK)
            heard, receipted = storm.heard, len(storm.receipted)
            await storm.hear(20_000)
            figures["heard_while_full"] = storm.heard - heard
            figures["receipts_while_full"] = len(storm.receipted) - receipted
        # The server was killed with its disk full.
        ballast.unlink()
        figures["kept_at_the_kill"] = storm.check()
        async with storm.talking():
            await storm.receipts(200)
        figures["kept_in_the_end"] = storm.check()
        figures["receipted"] = len(storm.receipted)
    assert figures["receipts_while_locked"] == figures["receipts_while_full"] == 0
    assert figures["heard_while_locked"] > 1000
    if path := os.environ.get("PROOF_FIGURES"):
        await asyncio.to_thread(Path(path).write_text, json.dumps(figures))
