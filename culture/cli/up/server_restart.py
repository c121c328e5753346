"""Restarts a server that dies under `culture up`, until it dies too often."""

import signal
import time
from dataclasses import replace

from culture.cli import output
from culture.cli.options import Choices
from culture.cli.server import background, pid_file
from culture.cli.up.shutdown import say
from culture.cli.up.wait import interruptible
from culture.config import paths
from culture.lib.process.background import EndedEarly, last_lines
from culture.lib.process.children import ChildProcesses, Interrupts
from culture.server.errors import StartError

MOST = 3
WITHIN = 300.0
"""Seconds; a server that dies more than MOST times within them is not restarted."""
_TAIL_BYTES = 4000
_TAIL_LINES = 15
_EXIT_PATIENCE = 5.0
"""Seconds that a process may take to exit after it has released its pid file."""


class ServerRestart:
    """Watches the server of a `culture up`, and restarts it when it dies."""

    def __init__(self, name: str, choices: Choices, launched: ChildProcesses, interrupts: Interrupts) -> None:
        self._name = name
        self._launched = launched
        self._interrupts = interrupts
        self._deaths: list[float] = []
        note = pid_file.running(name)
        ports = {port for _, port in note.addresses} if note is not None else set()
        # Port 0 was resolved once: clients and agents know that port.
        self._choices = replace(choices, port=ports.pop()) if choices.port == 0 and len(ports) == 1 else choices

    def death(self) -> str | None:
        """Return how the server died (signal or exit code) as text.

        None if it runs or was asked to stop.
        """
        if pid_file.running(self._name) is not None:
            return None
        code = self._launched.exit_code(self._name, _EXIT_PATIENCE)
        if not code or pid_file.was_told_to_stop(self._name):
            return None
        return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"

    def restart(self, why: str) -> bool:
        """Print ``why`` the server died and start it again; return whether it accepts connections.

        A server that died too often is not started again.
        """
        log, now = paths.log_file(self._name), time.monotonic()
        lines = output.clean(last_lines(log, _TAIL_LINES, max(0, log.stat().st_size - _TAIL_BYTES)))
        say(f"culture: {self._name} died ({why}). The end of {log}:\n{lines}", err=True)
        self._deaths = [*(at for at in self._deaths if now - at < WITHIN), now]
        if len(self._deaths) > MOST:
            say(f"culture: it died {len(self._deaths)} times and is not restarted: `culture doctor`", err=True)
            return False
        try:
            with interruptible(self._interrupts):
                note = background.start(self._name, self._choices.arguments, self._launched.launch)
        except (EndedEarly, StartError, OSError) as error:
            say(f"culture: {self._name} cannot be restarted: {error}\n`culture doctor` looks for the reason.", err=True)
            return False
        say(f"{self._name} is up again (pid {note.pid}).")
        return True
