"""Keeps `culture up` in the terminal until a signal comes, or server or terminal are gone."""

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from types import FrameType

import typer

from culture.cli.agents.irc_session import IrcPerson
from culture.cli.local_servers import example_nick, plain_listener
from culture.cli.server import pid_file
from culture.cli.up.shutdown import view_file
from culture.config.model import ServerConfig
from culture.lib.files import FileLock, LockTaken
from culture.lib.process.children import Interrupts
from culture.transport import Address, Hopeless

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_LOOK = 0.5


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
