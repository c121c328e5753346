"""Staying in the terminal until told to go, or until there is nothing to stay for."""

import asyncio
import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType

import typer

from culture.cli import pidfile
from culture.cli.agents.person import Person
from culture.cli.agents.place import plain_listener
from culture.cli.connect import example_nick
from culture.cli.ending import view_file
from culture.cli.watching.view import watch
from culture.config.lockfile import LockFile, Taken
from culture.config.model import ServerConfig
from culture.transport import Address, Hopeless

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_LOOK = 0.5


@contextmanager
def interruptible() -> Iterator[None]:
    """The signals that end a program in a terminal, as KeyboardInterrupt: what was begun is ended in order."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def has_terminal() -> bool:
    """Whether there is a terminal to type in, at present."""
    return os.isatty(0)


def stay(settings: ServerConfig, in_terminal: bool) -> None:
    """Show what happens on a server until told to go, or it is no more, or the terminal this began in."""
    note = pidfile.running(settings.name)
    if note is None:
        return
    lock = LockFile(view_file())
    try:
        lock.acquire(f"{os.getpid()}\n")
    except Taken:
        pass  # somebody looks at another server
    early: list[int] = []

    def remember(number: int, frame: FrameType | None) -> None:
        early.append(number)

    # An exception while the loop is being made would leave half of one, with a traceback of its own.
    for number in _SIGNALS:
        signal.signal(number, remember)
    try:
        asyncio.run(_stay(settings, note, in_terminal, early))
    finally:
        # A terminal that closes says so more than once.
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        lock.release(remove=True)


async def _stay(settings: ServerConfig, note: pidfile.Note, in_terminal: bool, early: Sequence[int]) -> None:
    told = asyncio.Event()
    for number in _SIGNALS:
        asyncio.get_running_loop().add_signal_handler(number, told.set)
    if early:
        told.set()

    def is_gone() -> bool:
        """Of a terminal that closes, the program it was opened for is told alone; that may be `make`."""
        return in_terminal and not has_terminal()

    def is_up() -> bool:
        now = pidfile.running(settings.name)
        return now is not None and now.pid == note.pid and not is_gone()

    at = plain_listener(settings, note.addresses)
    if at is not None:
        person = Person(Address(at.host, at.port), example_nick(settings))
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
