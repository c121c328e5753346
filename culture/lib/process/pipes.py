"""Subprocesses of asyncio with pipes, which children of the subprocess may hold open."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from culture.lib.process.handle import wait_gone

LONGEST_LINE = 16 * 1024 * 1024
"""Bytes that one line of output may have."""


async def spawn(
    argv: Sequence[str], cwd: Path, environment: Mapping[str, str], *, stderr: int | None = None
) -> asyncio.subprocess.Process:
    """Start a program, with pipes for its input and output, in a process session of its own.

    ``environment`` is added to that of this process. ``stderr``: the value for asyncio, such as ``PIPE``; None:
    inherited.
    """
    return await asyncio.create_subprocess_exec(
        *argv,
        cwd=cwd,
        env={**os.environ, **environment},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=stderr,
        limit=LONGEST_LINE,
        start_new_session=True,
    )


async def ended(process: asyncio.subprocess.Process) -> int:
    """Wait until a process exits; return its exit code.

    asyncio's own ``wait`` would wait until no grandchild holds a pipe any more.
    """
    if process.returncode is None:
        await wait_gone(process.pid)
    while process.returncode is None:  # noqa: ASYNC110
        # A thread of asyncio's reaps it, and tells the loop a moment later.
        await asyncio.sleep(0.001)
    return process.returncode


async def release(process: asyncio.subprocess.Process) -> None:
    """Close our ends of a process's pipes, even if its children have them open.

    The process is killed if it still lives.
    """
    # There is no public way to close the pipes of a process; this also kills it if it lives.
    transport: asyncio.SubprocessTransport = process._transport  # type: ignore[attr-defined]
    transport.close()
    await ended(process)
    # The pipes are closed in the loop's next round.
    await asyncio.sleep(0)
