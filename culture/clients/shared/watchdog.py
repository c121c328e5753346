"""Starts the process that ends the agent's program when the daemon is killed (kill -9, the OOM killer).

A killed daemon cannot end anything itself, and its program would go on without permissions, budget and supervisor until
the next start. The parent death signal of Linux reaches a direct child alone, follows the thread that started it, and
cannot be set where an SDK starts the program; so a small process of ours waits for the daemon's death instead, for
every backend. It knows the processes by the token in their environment, as the daemon does.
"""

import asyncio
import logging
import os
import sys
from pathlib import Path

from culture.clients.shared import watchdog_process

log = logging.getLogger(__name__)

PATIENCE = 2.0
AGENT, SUPERVISOR = "agent", "supervisor"


class Watchdog:
    """One process beside a daemon; without it the daemon works as ever, and what is left is ended at its next start."""

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start the process."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("CULTURE_")}
        try:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", str(Path(watchdog_process.__file__))),
                stdin=asyncio.subprocess.PIPE,
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            log.warning("without a watchdog, as it cannot be started: %s", error)

    def watch(self, what: str, token: str | None) -> None:
        """From now on the processes with this token end with the daemon."""
        if token is not None:
            self._write(f"{what} {token}")

    async def stop(self) -> None:
        """The daemon ends in order, and has ended its agent."""
        process = self._process
        if process is None or process.stdin is None:
            return
        self._write(watchdog_process.STOPPED)
        process.stdin.close()
        try:
            async with asyncio.timeout(PATIENCE):
                await process.wait()
        except TimeoutError:
            process.kill()

    def _write(self, line: str) -> None:
        if self._process is not None and self._process.stdin is not None and not self._process.stdin.is_closing():
            self._process.stdin.write(f"{line}\n".encode())
