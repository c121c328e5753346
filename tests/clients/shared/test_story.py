"""`culture trace` tells the right story of messages while daemons and servers are killed: the same on every server."""

import random
from pathlib import Path

from tests.support.telling import told_right

MESSAGES = 40
TOLD = 6
"""Of so many the command itself is asked; a proof asks it of all."""


async def test_every_message_has_its_whole_story_on_every_server(tmp_path: Path) -> None:
    figures = await told_right(tmp_path, MESSAGES, kills=3, chance=random.Random(7), told=TOLD)
    assert figures["stories_right"] == TOLD
