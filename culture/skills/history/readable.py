"""History as people read it: notices with the time, who spoke, and what they said."""

from collections.abc import Iterator, Sequence

from culture.protocol.message import Message
from culture.protocol.split import room, split_text
from culture.server.context import Context
from culture.server.core.encode import wire
from culture.server.core.ids import MICROSECONDS
from culture.server.core.render import iso_time
from culture.skills.history.entry import Entry
from culture.skills.history.store import Kept

_ACTION = "\x01ACTION "


def timestamp(at: int) -> str:
    """A time in microseconds as HISTORY writes it."""
    return f"{iso_time(at // MICROSECONDS)[:-5]}Z"


def readable(ctx: Context, channel: str, found: Sequence[Kept]) -> Iterator[bytes]:
    """One notice for each line that was said, between one that says what it is and the last."""
    how_many = f"{len(found)} message{'s' if len(found) != 1 else ''}"
    yield from _notice(ctx, f"--- {channel}: {how_many} ---" if found else f"--- {channel}: nothing found ---")
    for _, entry in found:
        yield from _notice(ctx, _line(entry))


def _line(entry: Entry) -> str:
    when = iso_time(entry.at // MICROSECONDS)[:-5].replace("T", " ")
    text = entry.text
    if text.startswith(_ACTION):
        return f"[{when}] * {entry.nick} {text.removeprefix(_ACTION).rstrip(chr(1))}"
    return f"[{when}] <{entry.nick}> {text}" if entry.verb == "PRIVMSG" else f"[{when}] -{entry.nick}- {text}"


def _notice(ctx: Context, text: str) -> Iterator[bytes]:
    server = ctx.router.name
    for piece in split_text(text, room(server, "NOTICE", ctx.nick)):
        yield wire(Message("NOTICE", (ctx.nick, piece), server))
