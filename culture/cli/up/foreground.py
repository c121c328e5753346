"""The foreground of `culture up`: waits for a signal and restarts a server that dies."""

import asyncio
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from types import FrameType

import typer

from culture.cli import output
from culture.cli.agents.irc_session import IrcPerson
from culture.cli.local_servers import example_nick, plain_listener
from culture.cli.options import Choices
from culture.cli.server import background, pid_file
from culture.cli.up.shutdown import say, view_file
from culture.config import paths
from culture.config.model import ServerConfig
from culture.lib.files import FileLock, LockTaken
from culture.lib.process.background import EndedEarly, last_lines
from culture.lib.process.children import ChildProcesses, Interrupts
from culture.server.errors import StartError
from culture.transport import Address, Hopeless

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_LOOK = 0.5
MOST_DEATHS = 3
DEATHS_WITHIN = 300.0
"""Seconds; a server that dies more than MOST_DEATHS times within them is not restarted."""
_TAIL_BYTES = 4000
_TAIL_LINES = 15
_EXIT_PATIENCE = 5.0
"""Seconds that a process may take to exit after it has released its pid file."""


@contextmanager
def interruptible(interrupts: Interrupts) -> Iterator[None]:
    """Use ``interrupts`` as the handler of SIGINT, SIGTERM and SIGHUP during the block.

    A signal then raises KeyboardInterrupt, or does so later while ``interrupts`` holds it back.
    """
    before = {number: signal.signal(number, interrupts) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def has_terminal() -> bool:
    """Whether standard input is a terminal that is still open."""
    return os.isatty(0)


def stay_in_terminal(settings: ServerConfig, in_terminal: bool, nick: str | None = None) -> None:
    """Print activity on the server until a signal comes, or the server or the terminal is gone.

    ``in_terminal``: whether there is a terminal, which can be closed. ``nick``: the nick to connect with.
    """
    note = pid_file.running(settings.name)
    if note is None:
        return
    lock = FileLock(view_file())
    try:
        lock.acquire(f"{os.getpid()}\n")
    except LockTaken:
        pass  # another `culture up` shows another server
    handler = _Told()
    # An exception while the loop is being made would leave half of one, with a traceback of its own. They stay: a loop
    # that handles signals leaves none to handle them, and a second one must not keep what runs from being ended.
    for number in _SIGNALS:
        signal.signal(number, handler)
    try:
        asyncio.run(_stay(settings, note, in_terminal, handler, nick or example_nick(settings)))
    finally:
        lock.release(remove=True)


class _Told:
    """Signal handler that sets an asyncio event, also if its loop is only created later."""

    def __init__(self) -> None:
        self._came = False
        self._tell: Callable[[], object] | None = None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Record a signal and set the event; safe to call from a signal handler.

        ``number``, ``frame``: as Python passes them to signal handlers; not used.
        """
        self._came = True
        if self._tell is not None:
            with suppress(RuntimeError):  # the loop is closed
                self._tell()

    def event(self) -> asyncio.Event:
        """Return an event of the running loop, which is set when a signal comes or if one has come."""
        event = asyncio.Event()
        self._tell = partial(asyncio.get_running_loop().call_soon_threadsafe, event.set)
        if self._came:
            event.set()
        return event


async def _stay(
    settings: ServerConfig, note: pid_file.ServerNote, in_terminal: bool, signals: _Told, nick: str
) -> None:
    stop = signals.event()

    def is_gone() -> bool:
        """Whether the terminal was closed; this process may get no signal for that."""
        return in_terminal and not has_terminal()

    def is_up() -> bool:
        now = pid_file.running(settings.name)
        return now is not None and now.pid == note.pid and not is_gone()

    at = plain_listener(settings, note.addresses)
    if at is not None:
        from culture.cli.up.live_view import watch  # only who stays needs it

        person = IrcPerson(Address(at.host, at.port), nick)
        try:
            await watch(person, settings.channels, is_up, stop)
        except (Hopeless, TimeoutError) as error:
            typer.echo(f"What happens cannot be shown here: {error or 'the server does not answer'}.", err=True)
        except OSError:
            if not is_gone():
                raise
    while not stop.is_set() and is_up():
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), _LOOK)


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
        self._deaths = [*(at for at in self._deaths if now - at < DEATHS_WITHIN), now]
        if len(self._deaths) > MOST_DEATHS:
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
