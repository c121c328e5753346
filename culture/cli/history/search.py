"""``culture history search``: messages by their words."""

from collections.abc import Iterator
from heapq import nlargest
from typing import Annotated, NamedTuple

import typer

from culture.cli.choices import Choices, ConfigFile, DataDir, Name
from culture.cli.history.choices import Channel, Private, Since
from culture.cli.history.entries import Reader, as_json
from culture.cli.history.opening import History, is_private, opened
from culture.cli.progress import elapsing
from culture.protocol.names import fold
from culture.protocol.vocabulary import Exit
from culture.skills.history.entry import Sort
from culture.skills.history.retention import PRIVATE
from culture.skills.history.store import Kept, View
from culture.skills.history.words import Query, fits, folded, query

EVERY_RANK = ("", "@", "+")
_PATIENCE = 60.0  # seconds for one channel


class Question(NamedTuple):
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
    question = Question(" ".join(words), channel or [], private, since or 0, limit)
    with opened(Choices(config, name, None, None, data_dir)) as history, elapsing("Searching"):
        found = _found(history, question)
    reader = Reader(with_place=True)
    for each in found:
        for line in [as_json(each.entry)] if as_lines else reader.lines(each.entry):
            typer.echo(line)
    if not found:
        typer.echo("Nothing was found.", err=True)
        raise typer.Exit(Exit.FAILED)


def _found(history: History, question: Question) -> list[Kept]:
    """The newest that fit, oldest first."""
    asked, limit = query(question.text), question.limit
    places = [history.place(channel) for channel in question.channels] or _channels(history)
    found: list[Kept] = []
    for place in places:
        found += history.store.search(View(place, EVERY_RANK, 0, question.since), asked, limit, _PATIENCE)
    if question.private:
        found += nlargest(limit, _private(history, question))
    return sorted(found, key=lambda each: each.position)[-limit:]


def _channels(history: History) -> list[str]:
    return [fold(each.name) for each in history.store.stats() if each.name != PRIVATE]


def _private(history: History, question: Question) -> Iterator[Kept]:
    """Conversations have no index for all of them together: everything is looked through."""
    needles = Query((), tuple(folded(question.text).split()))
    for each in history.store.everything():
        entry = each.entry
        is_meant = is_private(each) and entry.sort is Sort.MESSAGE and entry.at >= question.since
        if is_meant and fits(needles, entry.text):
            yield each
