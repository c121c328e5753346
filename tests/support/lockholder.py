"""Another process that holds a SQLite file locked until it is told to let go."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.support.waiting import PATIENCE

_PROGRAM = """
import sqlite3, sys
held = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=10)
held.execute("BEGIN EXCLUSIVE")
print("held", flush=True)
sys.stdin.readline()
held.execute("ROLLBACK")
held.close()
"""


@asynccontextmanager
async def locked(database: Path) -> AsyncIterator[None]:
    """Nobody else can write the file while in here."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _PROGRAM, str(database)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None and process.stdout is not None
    async with asyncio.timeout(PATIENCE):
        assert await process.stdout.readline() == b"held\n"
    try:
        yield
    finally:
        process.stdin.write(b"\n")
        process.stdin.close()
        await process.wait()
