"""``culture history search``, ``stats``, ``verify`` and ``prune``; export is in export.py."""

import time
from collections.abc import Iterator, Sequence
from heapq import nlargest
from typing import Annotated, NamedTuple

import typer

from culture.cli import humanize
from culture.cli.agent_access import open_to_agents
from culture.cli.history.export import Channel, Private, Since, TranscriptWriter, as_json, export
from culture.cli.history.open_store import OpenHistory, is_private, open_history
from culture.cli.humanize import counted, format_exact_time, format_size, format_time
from culture.cli.options import Choices, ConfigFile, DataDir, Name
from culture.cli.output import as_json as in_json
from culture.cli.output import clean, confirm, fail
from culture.cli.progress import Progress, elapsing
from culture.config.skills import Retention
from culture.protocol.names import fold
from culture.protocol.vocabulary import Exit
from culture.server.core.ids import MICROSECONDS
from culture.skills.history.entry import Sort
from culture.skills.history.retention import PRIVATE, Excess, Pieces, excess
from culture.skills.history.store import Gap, Kept, Stats, Store, Unavailable, View, time_of
from culture.skills.history.words import Query, fits, folded, query

_TRIES = 60
_PAUSE = 0.25
_BETWEEN = 0.02  # seconds after each step, so that the server can write


def prune(
    channel: Annotated[
        list[str] | None, typer.Option("--channel", metavar="CHANNEL", help="In this channel; may be repeated.")
    ] = None,
    private: Annotated[bool, typer.Option("--private", help="In private conversations.")] = False,
    everywhere: Annotated[bool, typer.Option("--all", help="In every channel and in private conversations.")] = False,
    older_than: Annotated[
        float | None,
        typer.Option(
            "--older-than",
            metavar="AGE",
            parser=humanize.parser(humanize.parse_age),
            help="Remove what is older than this, for example 90d.",
        ),
    ] = None,
    keep_size: Annotated[
        int | None,
        typer.Option(
            "--keep-size",
            metavar="SIZE",
            parser=humanize.parser(humanize.parse_size),
            help="Keep at most this much of each, for example 100MB.",
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print what would be removed.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    config: ConfigFile = None,
    name: Name = None,
    data_dir: DataDir = None,
) -> None:
    """Delete old messages from the history for good.

    The server may be running.
    """
    if not (channel or private or everywhere):
        fail("choose where: --channel, --private or --all", Exit.USAGE)
    if older_than is None and not keep_size:
        fail("choose what: --older-than or --keep-size", Exit.USAGE)
    keep = Retention(age=older_than, size=keep_size)
    with open_history(Choices(config, name, None, None, data_dir)) as history:
        with elapsing("Counting"):
            excesses = [
                (each, _count(history.store, each)) for each in _excess(history, channel, private, everywhere, keep)
            ]
        _say(excesses)
        if not excesses or dry_run:
            return
        confirm("Remove this for good?", yes)
        for each, number in excesses:
            with Progress("Removing", number) as bar:
                removed = sum(_removed(history.store, each, bar))
            typer.echo(f"{_shown_place(each)}: {counted(removed)} removed.")
        if history.size:
            typer.echo(f"The file keeps its size of {format_size(history.size)}: new messages reuse the space.")


def _excess(
    history: OpenHistory, channels: list[str] | None, private: bool, everywhere: bool, keep: Retention
) -> list[Excess]:
    now = int(time.time() * MICROSECONDS)
    places = {history.place(channel) for channel in channels or ()}

    def is_meant(stats: Stats) -> bool:
        return everywhere or (private if stats.name == PRIVATE else fold(stats.name) in places)

    excesses = (excess(history.store, stats, keep, now) for stats in history.store.stats() if is_meant(stats))
    return [each for each in excesses if each is not None]


def _count(store: Store, what: Excess) -> int:
    """Return how many history entries pruning would remove.

    ``what``: a place (channel, or None for private conversations) and the time before which its entries would be
    removed.
    """
    number = 0
    for each in store.everything(what.place):
        if time_of(each.position) >= what.before:
            break
        number += what.place is not None or is_private(each)
    return number


def _say(excesses: list[tuple[Excess, int]]) -> None:
    for each, number in excesses:
        typer.echo(f"{_shown_place(each)}: {counted(number)} from before {format_time(each.before)}.")
    if not excesses:
        typer.echo("There is nothing to remove.")


def _shown_place(what: Excess) -> str:
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
    """Remove the history entries of a place from before a time; return how many were removed.

    ``place``: a channel, None for private conversations. ``before``: microseconds since 1970. It tries again while the
    server writes.
    """
    for _ in range(_TRIES):
        try:
            return store.prune(place, before)
        except Unavailable:
            time.sleep(_PAUSE)
    return store.prune(place, before)


EVERY_RANK = ("", "@", "+")
_PATIENCE = 60.0  # seconds for one channel


class SearchQuery(NamedTuple):
    """A query of the history: words, channels (none: all), time, and number of results.

    ``private``: search private conversations too. ``since``: microseconds since 1970.
    """

    text: str
    channels: list[str]
    private: bool
    since: int
    limit: int


def search(
    words: Annotated[
        list[str], typer.Argument(metavar="WORDS", show_default=False, help="Words to find; all must occur.")
    ],
    channel: Channel = None,
    since: Since = None,
    limit: Annotated[int, typer.Option("--limit", min=1, metavar="N", help="Only the newest N.")] = 50,
    private: Private = False,
    as_lines: Annotated[bool, typer.Option("--json", help="Print JSON Lines.")] = False,
    config: ConfigFile = None,
    name: Name = None,
    data_dir: DataDir = None,
) -> None:
    """Search messages by their words.

    The exit code is 1 when nothing was found.
    """
    question = SearchQuery(" ".join(words), channel or [], private, since or 0, limit)
    with open_history(Choices(config, name, None, None, data_dir)) as history, elapsing("Searching"):
        results = _found(history, question)
    reader = TranscriptWriter(with_place=True)
    for each in results:
        for line in [as_json(each.entry)] if as_lines else reader.lines(each.entry):
            typer.echo(line)
    if not results:
        typer.echo("Nothing found.", err=True)
        raise typer.Exit(Exit.FAILED)


def _found(history: OpenHistory, question: SearchQuery) -> list[Kept]:
    """Return the newest history entries that match the query, sorted oldest first."""
    parsed, limit = query(question.text), question.limit
    places = [history.place(channel) for channel in question.channels] or _channels(history)
    results: list[Kept] = []
    for place in places:
        results += history.store.search(View(place, EVERY_RANK, 0, question.since), parsed, limit, _PATIENCE)
    if question.private:
        results += nlargest(limit, _private(history, question))
    return sorted(results, key=lambda each: each.position)[-limit:]


def _channels(history: OpenHistory) -> list[str]:
    return [fold(each.name) for each in history.store.stats() if each.name != PRIVATE]


def _private(history: OpenHistory, question: SearchQuery) -> Iterator[Kept]:
    """Yield the private messages in the history that match the query.

    Private conversations have no index, so every entry of the history is read.
    """
    needles = Query((), tuple(folded(question.text).split()))
    for each in history.store.everything():
        entry = each.entry
        is_meant = is_private(each) and entry.sort is Sort.MESSAGE and entry.at >= question.since
        if is_meant and fits(needles, entry.text):
            yield each


_HEAD = ("channel", "messages", "events", "size", "first", "last")
_TIMES = frozenset({"first", "last", "since", "until"})


@open_to_agents
def stats(
    as_object: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    config: ConfigFile = None,
    name: Name = None,
    data_dir: DataDir = None,
) -> None:
    """Show the size of each channel's history, and the gaps in it."""
    with open_history(Choices(config, name, None, None, data_dir)) as history:
        with elapsing("Counting"):
            channels, gaps = history.store.stats(), history.store.gaps()
        where, size, schema = history.where, history.size, history.schema
    if as_object:
        facts = {"where": where, "size": size, "schema": schema}
        lists = {"gaps": [_exact(gap) for gap in gaps], "channels": [_exact(each) for each in channels]}
        typer.echo(in_json(facts | lists))
        return
    for line in _table(channels):
        typer.echo(line)
    file = "" if size is None else f", {format_size(size)}, schema {schema}"
    typer.echo(f"\n{where}{file}")
    for gap in gaps:
        typer.echo(shown_gap(gap))


def shown_gap(gap: Gap) -> str:
    """Return a sentence about a gap in the history: how many messages were lost, and when."""
    lost = counted(gap.lost, "message", "messages")
    return f"{lost} between {format_time(gap.since)} and {format_time(gap.until)} could not be stored."


def _exact(fact: Stats | Gap) -> dict[str, object]:
    """Return a statistic or a gap of the history as a dict for --json, with times in ISO 8601."""
    return {key: format_exact_time(value) if key in _TIMES else value for key, value in fact._asdict().items()}


def _table(channels: Sequence[Stats]) -> Iterator[str]:
    rows = [_HEAD, *map(_row, channels)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    for name, *numbers, first, last in rows:
        right = "  ".join(f"{text:>{width}}" for text, width in zip(numbers, widths[1:4], strict=True))
        yield f"{name:<{widths[0]}}  {right}  {first:<{widths[4]}}  {last}"


def _row(stats: Stats) -> tuple[str, str, str, str, str, str]:
    name = "(private)" if stats.name == PRIVATE else clean(stats.name)
    return (
        name,
        str(stats.messages),
        str(stats.events),
        format_size(stats.bytes),
        format_time(stats.first),
        format_time(stats.last),
    )


@open_to_agents
def verify(config: ConfigFile = None, name: Name = None, data_dir: DataDir = None) -> None:
    """Check the whole history for damage, and show its gaps.

    The exit code is 1 when something is damaged.
    """
    with open_history(Choices(config, name, None, None, data_dir)) as history:
        with elapsing("Checking"):
            problems = list(history.store.verify())
            entries, gaps = history.entries(), history.store.gaps()
        where = history.where
    for problem in problems:
        typer.echo(clean(problem))
    if problems:
        fail(f"{where} is damaged; restore a backup, or save what can be read with `culture history export`")
    typer.echo(f"{counted(entries)}, all intact.")
    for gap in gaps:
        typer.echo(shown_gap(gap))


group = typer.Typer(help="Search, export and prune the history.", no_args_is_help=True)
for _command in (search, export, stats, verify, prune):
    group.command()(_command)
