"""Starts a program that runs on when the command ends: own session, output in a log."""

import os
import subprocess
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TypeVar

from culture.lib.files import open_private
from culture.lib.process.children import Launch, launch_unrecorded
from culture.protocol.vocabulary import Exit

LAST_LINES = 20
STEP = 0.02
"""Seconds between two looks whether it is ready."""
T = TypeVar("T")


class EndedEarly(Exception):
    """A background process exited before it was ready.

    ``text`` has the last lines of the process's output.
    """

    def __init__(self, text: str, returncode: int) -> None:
        super().__init__(text)
        self.text = text
        self.returncode = returncode
        self.code = Exit.WRONG_CONFIGURATION if returncode == Exit.WRONG_CONFIGURATION else Exit.FAILED


class BackgroundProcess:
    """A program that this command has started and that runs on when the command ends.

    The program's output is appended to ``log``; environment variables named in ``without`` are not passed on to it.
    """

    def __init__(
        self,
        name: str,
        argv: Sequence[str],
        log: Path,
        *,
        launch: Launch = launch_unrecorded,
        cwd: Path | None = None,
        without: Collection[str] = (),
    ) -> None:
        self.name = name
        self.log = log
        output = open_private(log, os.O_WRONLY | os.O_APPEND)
        try:
            self._log_start = os.fstat(output).st_size
            self._process = launch(
                name,
                lambda: subprocess.Popen(
                    argv,
                    cwd=cwd,
                    env={key: value for key, value in os.environ.items() if key not in without},
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                ),
            )
        finally:
            os.close(output)

    @property
    def pid(self) -> int:
        """Return the process id, which is also the id of the process's session."""
        return self._process.pid

    def poll(self) -> int | None:
        """Return the exit code if the process has exited; None while it runs."""
        return self._process.poll()

    def terminate(self) -> None:
        """Send SIGTERM to the process, unless it has exited."""
        self._process.terminate()

    def kill(self) -> None:
        """Send SIGKILL to the process, unless it has exited."""
        self._process.kill()

    def wait_until(self, ready: Callable[[int], T | None], timeout: float, lines: int = LAST_LINES) -> T | None:
        """Call ``ready(pid)`` again and again until it returns a value, and return that value.

        Returns None after ``timeout`` seconds. Raises ``EndedEarly``, with the last ``lines`` lines of output, if the
        process exits before.
        """
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            code = self.poll()
            if code is not None:
                raise EndedEarly(self.output(lines) or f"{self.name} ended at once; see {self.log}", code)
            found = ready(self.pid)
            if found is not None:
                return found
            time.sleep(STEP)
        return None

    def output(self, lines: int) -> str:
        """Return the last ``lines`` lines that the process has printed since its start."""
        return last_lines(self.log, lines, self._log_start)


def last_lines(log: Path, lines: int, start: int = 0) -> str:
    """Return the last ``lines`` lines of the part of a log that follows the byte ``start``.

    If the log is shorter than that, because it was rotated, the last lines of the whole log.
    """
    with log.open("rb") as file:
        file.seek(start if os.fstat(file.fileno()).st_size >= start else 0)
        return "\n".join(file.read().decode(errors="replace").splitlines()[-lines:])
