"""``make proof NAME=patience``: a person answers the real Claude Code after 130 s, longer than its shell waits."""

import asyncio
import json
import os
from dataclasses import asdict
from pathlib import Path

from culture.clients.claude import BACKEND
from culture.server.ircd import IRCd
from tests.clients import surroundings
from tests.clients.claude import conftest
from tests.clients.claude.rooms import working
from tests.clients.patience import answers_late
from tests.support.model import Model

SECONDS = float(os.environ.get("PATIENCE_SECONDS", "130"))
"""When the person answers; Claude Code moves a command to its background after 120 s."""
FIGURES = os.environ.get("PROOF_FIGURES")

model, ircd = surroundings.model, surroundings.ircd
environment, home = conftest.environment, conftest.home


async def test_an_answer_after_130_seconds_is_a_prompt_with_its_sender(ircd: IRCd, home: Path, model: Model) -> None:
    """No variable of the program is shortened, and the bound of a call that asks is its own."""
    assert BACKEND.ask_bound is not None
    async with working(ircd, home) as (daemon, ori):
        seconds = await answers_late(daemon, ori, model, later=SECONDS, bound=BACKEND.ask_bound)
    assert BACKEND.ask_bound <= seconds.returned < 120 < SECONDS <= seconds.answered <= seconds.prompted
    assert not any("<task-notification>" in each.prompt for each in model.journal.requests)
    if FIGURES:
        figures = {"seconds": asdict(seconds), "requests_of_the_model": len(model.journal.requests)}
        await asyncio.to_thread(Path(FIGURES).write_text, json.dumps(figures))
