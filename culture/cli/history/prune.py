"""``culture history prune``: removing what is old, little by little, beside a running server."""

import time
from collections.abc import Iterator
from typing import Annotated

import typer

from culture.cli import humanize
from culture.cli.history.open_store import OpenHistory, is_private, opened
from culture.cli.humanize import counted, shown_moment, shown_size
from culture.cli.options import Choices, ConfigFile, DataDir, Name
from culture.cli.output import confirm, fail
from culture.cli.progress import Progress, elapsing
from culture.config.skills import Retention
from culture.protocol.names import fold
from culture.protocol.vocabulary import Exit
from culture.server.core.ids import MICROSECONDS
from culture.skills.history.retention import PRIVATE, Excess, Pieces, excess
from culture.skills.history.store import Stats, Store, Unavailable, time_of

_TRIES = 60
_PAUSE = 0.25
_BETWEEN = 0.02  # seconds after each step, so that the server comes to its turn


def prune(
    channel: Annotated[
        list[str] | None, typer.Option("--channel", metavar="CHANNEL", help="In this channel; may be repeated.")
    ] = None,
    private: Annotated[bool, typer.Option("--private", help="In private conversations.")] = False,
    everywhere: Annotated[bool, typer.Option("--all", help="In every channel and in private conversations.")] = False,
    older_than: Annotated[
        float | None,
        typer.Option(
            "--older-than", metavar="AGE", parser=humanize.option(humanize.duration), help="What is older: 90d."
        ),
    ] = None,
    keep_size: Annotated[
        int | None,
        typer.Option(
            "--keep-size",
            metavar="SIZE",
            parser=humanize.option(humanize.size),
            help="The oldest beyond 100MB, of each.",
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be removed.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    config: ConfigFile = None,
    name: Name = None,
    data_dir: DataDir = None,
) -> None:
    """Remove what is old from the history, for good.

    The server may be running.
    """
    if not (channel or private or everywhere):
        fail("say where: --channel, --private or --all", Exit.USAGE)
    if older_than is None and not keep_size:
        fail("say what: --older-than or --keep-size", Exit.USAGE)
    keep = Retention(age=older_than, size=keep_size)
    with opened(Choices(config, name, None, None, data_dir)) as history:
        with elapsing("Counting"):
            found = [
                (each, _count(history.store, each)) for each in _excess(history, channel, private, everywhere, keep)
            ]
        _say(found)
        if not found or dry_run:
            return
        confirm("Remove this for good?", yes)
        for each, number in found:
            with Progress("Removing", number) as bar:
                removed = sum(_removed(history.store, each, bar))
            typer.echo(f"{_shown(each)}: {counted(removed)} removed.")
        if history.size:
            typer.echo(f"The file keeps its {shown_size(history.size)}: what comes next goes where they were.")


def _excess(
    history: OpenHistory, channels: list[str] | None, private: bool, everywhere: bool, keep: Retention
) -> list[Excess]:
    now = int(time.time() * MICROSECONDS)
    places = {history.place(channel) for channel in channels or ()}

    def is_meant(stats: Stats) -> bool:
        return everywhere or (private if stats.name == PRIVATE else fold(stats.name) in places)

    found = (excess(history.store, stats, keep, now) for stats in history.store.stats() if is_meant(stats))
    return [each for each in found if each is not None]


def _count(store: Store, what: Excess) -> int:
    """How many entries it is."""
    number = 0
    for each in store.everything(what.place):
        if time_of(each.position) >= what.before:
            break
        number += what.place is not None or is_private(each)
    return number


def _say(found: list[tuple[Excess, int]]) -> None:
    for each, number in found:
        typer.echo(f"{_shown(each)}: {counted(number)} from before {shown_moment(each.before)}.")
    if not found:
        typer.echo("There is nothing to remove.")


def _shown(what: Excess) -> str:
    return what.place or "private conversations"


def _removed(store: Store, what: Excess, bar: Progress) -> Iterator[int]:
    pieces = Pieces(what)
    for before in pieces:
        number = _patiently(store, what.place, before)
        pieces.removed(number)
        bar.step(number)
        yield number
        if number:
            time.sleep(_BETWEEN)


def _patiently(store: Store, place: str | None, before: int) -> int:
    """The server writes as well: wait for a turn."""
    for _ in range(_TRIES):
        try:
            return store.prune(place, before)
        except Unavailable:
            time.sleep(_PAUSE)
    return store.prune(place, before)
