"""Staying in the terminal until told to go, or until there is nothing to stay for."""

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from types import FrameType

import typer

from culture.cli.agents.irc_session import IrcPerson
from culture.cli.agents.local_servers import plain_listener
from culture.cli.connect_hints import example_nick
from culture.cli.server import pid_file
from culture.cli.up.live_view import watch
from culture.cli.up.shutdown import view_file
from culture.config.model import ServerConfig
from culture.lib.files import FileLock, LockTaken
from culture.lib.process.children import Interrupts
from culture.transport import Address, Hopeless

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_LOOK = 0.5


@contextmanager
def interruptible(interrupts: Interrupts) -> Iterator[None]:
    """The signals that end a program in a terminal, as KeyboardInterrupt: what was begun is ended in order."""
    before = {number: signal.signal(number, interrupts) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def has_terminal() -> bool:
    """Whether there is a terminal to type in, at present."""
    return os.isatty(0)


def stay(settings: ServerConfig, in_terminal: bool, nick: str | None = None) -> None:
    """Show what happens on a server, as this nick, until told to go, or it or the terminal this began in is gone."""
    note = pid_file.running(settings.name)
    if note is None:
        return
    lock = FileLock(view_file())
    try:
        lock.acquire(f"{os.getpid()}\n")
    except LockTaken:
        pass  # somebody looks at another server
    told = _Told()
    # An exception while the loop is being made would leave half of one, with a traceback of its own. They stay: a loop
    # that handles signals leaves none to handle them, and a second one must not keep what runs from being ended.
    for number in _SIGNALS:
        signal.signal(number, told)
    try:
        asyncio.run(_stay(settings, note, in_terminal, told, nick or example_nick(settings)))
    finally:
        lock.release(remove=True)


class _Told:
    """A handler of signals that breaks nothing off: it tells a loop, also one that is made later."""

    def __init__(self) -> None:
        self._came = False
        self._tell: Callable[[], object] | None = None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """A signal has come."""
        self._came = True
        if self._tell is not None:
            with suppress(RuntimeError):  # the loop is closed
                self._tell()

    def event(self) -> asyncio.Event:
        """What is set once a signal has come, for the loop that runs."""
        told = asyncio.Event()
        self._tell = partial(asyncio.get_running_loop().call_soon_threadsafe, told.set)
        if self._came:
            told.set()
        return told


async def _stay(
    settings: ServerConfig, note: pid_file.ServerNote, in_terminal: bool, signals: _Told, nick: str
) -> None:
    told = signals.event()

    def is_gone() -> bool:
        """Of a terminal that closes, the program it was opened for is told alone; that may be `make`."""
        return in_terminal and not has_terminal()

    def is_up() -> bool:
        now = pid_file.running(settings.name)
        return now is not None and now.pid == note.pid and not is_gone()

    at = plain_listener(settings, note.addresses)
    if at is not None:
        person = IrcPerson(Address(at.host, at.port), nick)
        try:
            await watch(person, settings.channels, is_up, told)
        except (Hopeless, TimeoutError) as error:
            typer.echo(f"What happens cannot be shown here: {error or 'the server does not answer'}.", err=True)
        except OSError:
            if not is_gone():
                raise
    while not told.is_set() and is_up():
        with suppress(TimeoutError):
            await asyncio.wait_for(told.wait(), _LOOK)
