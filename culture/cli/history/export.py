"""``culture history export``: writes messages as JSON Lines or text."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, NamedTuple, TextIO

import typer

from culture.cli import humanize
from culture.cli.history.open_store import OpenHistory, is_private, open_history
from culture.cli.humanize import format_exact_time
from culture.cli.options import Choices, ConfigFile, DataDir, Name
from culture.cli.output import fail
from culture.cli.progress import Progress
from culture.lib.files import PRIVATE_FILE
from culture.protocol import text
from culture.protocol.text import Profile, clean
from culture.skills.history.entry import Entry, Sort, event_of
from culture.skills.history.store import Kept, time_of
from culture.skills.logger.format import ChannelLogFormat, Logged, moment

Channel = Annotated[
    list[str] | None,
    typer.Option("--channel", metavar="CHANNEL", help="Only this channel; may be repeated."),
]
Since = Annotated[
    int | None,
    typer.Option(
        "--since", metavar="DATE", parser=humanize.parser(humanize.parse_time), help="From this date on (UTC)."
    ),
]
Until = Annotated[
    int | None,
    typer.Option(
        "--until", metavar="DATE", parser=humanize.parser(humanize.parse_time), help="Before this date (UTC)."
    ),
]
Private = Annotated[bool, typer.Option("--private", help="Include private conversations.")]


def as_json(entry: Entry) -> str:
    """Return all stored fields of a history entry as one line of JSON."""
    data = json.loads(entry.data) if entry.data else {}
    fields = {
        "msgid": entry.msgid,
        "time": format_exact_time(entry.at),
        "place": entry.place,
        "target": entry.target,
        "verb": entry.verb,
        "source": entry.source,
        "account": entry.account,
        "class": entry.kind,
        "text": entry.text,
        "tags": data.pop("tags", {}),
        "mentions": data.pop("mentions", []),
        "lines": data.pop("lines", []),
        "status": entry.status,
        "closed": entry.closed,
        "data": data,
    }
    return text.as_json(fields, indent=None)


class TranscriptWriter:
    """Formats history entries as text, like the logs of the IRC client weechat.

    ``with_place``: begin each line with the channel or conversation.
    """

    def __init__(self, with_place: bool) -> None:
        self._scribe = ChannelLogFormat()
        self._with_place = with_place

    def lines(self, entry: Entry) -> Iterator[str]:
        """Yield the lines of text for a history entry; none if it was redacted or has no text."""
        if entry.sort is Sort.REDACTED or entry.verb == "TAGMSG":
            return
        event = event_of(entry)
        assert isinstance(event, Logged)
        for row in self._scribe.rows(event, (entry.target,)):
            where = f"{_place(entry)}\t" if self._with_place else ""
            yield f"{moment(row.at)}\t{where}{clean(row.who, Profile.LOG)}\t{clean(row.text, Profile.LOG)}"


def _place(entry: Entry) -> str:
    """Return the channel of a history entry, or the two parties of a private conversation."""
    one, _, other = entry.place.partition(" ")
    return f"{one[2:]},{other[2:]}" if other else clean(entry.target, Profile.LOG)


class Format(StrEnum):
    """The formats in which history can be exported: JSON Lines or text."""

    JSONL = "jsonl"
    TEXT = "text"


class Part(NamedTuple):
    """The part of a history to export: channels (none: all), private messages, times.

    ``since``, ``until``: microseconds since 1970; ``until`` None: no end.
    """

    places: list[str]
    private: bool
    since: int
    until: int | None

    @property
    def only(self) -> str | None:
        """The only channel that is to be exported; None if there are several, or private messages."""
        return self.places[0] if len(self.places) == 1 and not self.private else None

    def has(self, each: Kept) -> bool:
        """Whether a history entry is to be exported, by its channel or conversation and its time."""
        if time_of(each.position) < self.since:
            return False
        return self.private if is_private(each) else not self.places or each.entry.place in self.places


def export(
    channel: Channel = None,
    since: Since = None,
    until: Until = None,
    private: Private = False,
    form: Annotated[Format, typer.Option("--format", help="jsonl for programs, text for people.")] = Format.JSONL,
    output: Annotated[
        Path | None, typer.Option("--output", metavar="FILE", help="Write to this file instead of standard output.")
    ] = None,
    config: ConfigFile = None,
    name: Name = None,
    data_dir: DataDir = None,
) -> None:
    """Write messages to standard output or a file: everything, or a part.

    Private conversations are included only with --private.
    """
    with open_history(Choices(config, name, None, None, data_dir)) as history:
        part = Part([history.place(each) for each in channel or []], private, since or 0, until)
        reader = TranscriptWriter(with_place=part.only is None)
        total = history.entries(part.only) if sys.stderr.isatty() else 0
        with _target(output) as out, Progress("Exporting", total) as bar:
            for each in _wanted(history, part, bar):
                for line in [as_json(each.entry)] if form is Format.JSONL else reader.lines(each.entry):
                    out.write(f"{line}\n")


def _wanted(history: OpenHistory, part: Part, bar: Progress) -> Iterator[Kept]:
    for each in history.store.everything(part.only):
        if part.until is not None and time_of(each.position) >= part.until:
            return
        bar.step()
        if part.has(each):
            yield each


@contextmanager
def _target(path: Path | None) -> Iterator[TextIO]:
    """Yield the output to write to: standard output, or for a path a new file with mode 600.

    The file is deleted if writing fails. The command ends if the file exists.
    """
    if path is None:
        with open(os.dup(sys.stdout.fileno()), "w", encoding="utf-8", errors="backslashreplace") as out:
            yield out
        return
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE_FILE)
    except FileExistsError:
        fail(f"{path} exists already, and is not changed")
    except OSError as error:
        fail(f"cannot write {path}: {error.strerror}")
    try:
        with os.fdopen(file, "w", encoding="utf-8", errors="backslashreplace") as out:
            yield out
    except BaseException:
        path.unlink(missing_ok=True)
        raise
