"""All commands of ``culture history``, put together."""

from collections.abc import Iterator, Sequence
from heapq import nlargest
from typing import Annotated, NamedTuple

import typer

from culture.cli.agent_access import open_to_agents
from culture.cli.history.export import Channel, Private, Since, TranscriptWriter, as_json, export
from culture.cli.history.open_store import OpenHistory, is_private, opened
from culture.cli.history.prune import prune
from culture.cli.humanize import counted, exact_moment, shown_moment, shown_size
from culture.cli.options import Choices, ConfigFile, DataDir, Name
from culture.cli.output import as_json as in_json
from culture.cli.output import fail, shown
from culture.cli.progress import elapsing
from culture.protocol.names import fold
from culture.protocol.vocabulary import Exit
from culture.skills.history.entry import Sort
from culture.skills.history.retention import PRIVATE
from culture.skills.history.store import Gap, Kept, Stats, View
from culture.skills.history.words import Query, fits, folded, query

EVERY_RANK = ("", "@", "+")
_PATIENCE = 60.0  # seconds for one channel


class SearchQuery(NamedTuple):
    """What is looked for, and where."""

    text: str
    channels: list[str]
    private: bool
    since: int
    limit: int


def search(
    words: Annotated[list[str], typer.Argument(metavar="WORDS", show_default=False, help="All of them must be there.")],
    channel: Channel = None,
    since: Since = None,
    limit: Annotated[int, typer.Option("--limit", min=1, metavar="N", help="Only the newest N.")] = 50,
    private: Private = False,
    as_lines: Annotated[bool, typer.Option("--json", help="As JSON Lines.")] = False,
    config: ConfigFile = None,
    name: Name = None,
    data_dir: DataDir = None,
) -> None:
    """Find messages by their words.

    The exit code is 1 when nothing was found.
    """
    question = SearchQuery(" ".join(words), channel or [], private, since or 0, limit)
    with opened(Choices(config, name, None, None, data_dir)) as history, elapsing("Searching"):
        found = _found(history, question)
    reader = TranscriptWriter(with_place=True)
    for each in found:
        for line in [as_json(each.entry)] if as_lines else reader.lines(each.entry):
            typer.echo(line)
    if not found:
        typer.echo("Nothing was found.", err=True)
        raise typer.Exit(Exit.FAILED)


def _found(history: OpenHistory, question: SearchQuery) -> list[Kept]:
    """The newest that fit, oldest first."""
    asked, limit = query(question.text), question.limit
    places = [history.place(channel) for channel in question.channels] or _channels(history)
    found: list[Kept] = []
    for place in places:
        found += history.store.search(View(place, EVERY_RANK, 0, question.since), asked, limit, _PATIENCE)
    if question.private:
        found += nlargest(limit, _private(history, question))
    return sorted(found, key=lambda each: each.position)[-limit:]


def _channels(history: OpenHistory) -> list[str]:
    return [fold(each.name) for each in history.store.stats() if each.name != PRIVATE]


def _private(history: OpenHistory, question: SearchQuery) -> Iterator[Kept]:
    """Conversations have no index for all of them together: everything is looked through."""
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
    as_object: Annotated[bool, typer.Option("--json", help="As one JSON object.")] = False,
    config: ConfigFile = None,
    name: Name = None,
    data_dir: DataDir = None,
) -> None:
    """Say how much there is of each channel, and what could not be kept."""
    with opened(Choices(config, name, None, None, data_dir)) as history:
        with elapsing("Counting"):
            found, gaps = history.store.stats(), history.store.gaps()
        where, size, schema = history.where, history.size, history.schema
    if as_object:
        facts = {"where": where, "size": size, "schema": schema}
        lists = {"gaps": [_exact(gap) for gap in gaps], "channels": [_exact(each) for each in found]}
        typer.echo(in_json(facts | lists))
        return
    for line in _table(found):
        typer.echo(line)
    file = "" if size is None else f", {shown_size(size)}, schema {schema}"
    typer.echo(f"\n{where}{file}")
    for gap in gaps:
        typer.echo(shown_gap(gap))


def shown_gap(gap: Gap) -> str:
    """What was lost, as people read it."""
    lost = counted(gap.lost, "message", "messages")
    return f"{lost} between {shown_moment(gap.since)} and {shown_moment(gap.until)} could not be kept."


def _exact(fact: Stats | Gap) -> dict[str, object]:
    """What is said to programs: times to the microsecond."""
    return {key: exact_moment(value) if key in _TIMES else value for key, value in fact._asdict().items()}


def _table(found: Sequence[Stats]) -> Iterator[str]:
    rows = [_HEAD, *map(_row, found)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    for name, *numbers, first, last in rows:
        right = "  ".join(f"{text:>{width}}" for text, width in zip(numbers, widths[1:4], strict=True))
        yield f"{name:<{widths[0]}}  {right}  {first:<{widths[4]}}  {last}"


def _row(stats: Stats) -> tuple[str, str, str, str, str, str]:
    name = "(private)" if stats.name == PRIVATE else shown(stats.name)
    return (
        name,
        str(stats.messages),
        str(stats.events),
        shown_size(stats.bytes),
        shown_moment(stats.first),
        shown_moment(stats.last),
    )


@open_to_agents
def verify(config: ConfigFile = None, name: Name = None, data_dir: DataDir = None) -> None:
    """Look through everything, and say what is not whole, and when messages could not be kept.

    The exit code is 1 when something is not whole.
    """
    with opened(Choices(config, name, None, None, data_dir)) as history:
        with elapsing("Checking"):
            problems = list(history.store.verify())
            entries, gaps = history.entries(), history.store.gaps()
        where = history.where
    for problem in problems:
        typer.echo(shown(problem))
    if problems:
        fail(f"{where} is damaged; restore a backup, or save what can be read with `culture history export`")
    typer.echo(f"{counted(entries)}, all whole.")
    for gap in gaps:
        typer.echo(shown_gap(gap))


group = typer.Typer(help="Look into what was said; the server may be running.", no_args_is_help=True)
for _command in (search, export, stats, verify, prune):
    group.command()(_command)
