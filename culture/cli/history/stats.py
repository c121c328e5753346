"""``culture history stats``: how much there is."""

from collections.abc import Iterator, Sequence
from typing import Annotated

import typer

from culture.cli.agent_access import open_to_agents
from culture.cli.amounts import counted, exact_moment, shown_moment, shown_size
from culture.cli.choices import Choices, ConfigFile, DataDir, Name
from culture.cli.history.opening import opened
from culture.cli.output import as_json as in_json
from culture.cli.output import shown
from culture.cli.progress import elapsing
from culture.skills.history.retention import PRIVATE
from culture.skills.history.store import Gap, Stats

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
