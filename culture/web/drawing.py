"""Templates: escaped, strict, and with filters for what people and agents write."""

from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from culture.protocol.names import fold
from culture.protocol.text import Profile, clean
from culture.web.figures import FILTERS
from culture.web.files import address
from culture.web.text import said

FOLDER = Path(__file__).parent / "templates"
_STEPS = ((60.0, 1.0, "s"), (3600.0, 60.0, "min"), (86400.0, 3600.0, "h"))


@cache
def environment() -> Environment:
    """How every page is made."""
    made = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )
    made.filters |= {"at": at, "ago": ago, "said": said, "clock": clock, **FILTERS}
    made.globals |= {"file": address, "room_path": room_path, "fold": fold}
    return made


def _finalize(value: object) -> object:
    """A text of others is cleaned wherever it stands on a page; what is HTML already was cleaned when it was made."""
    return clean(value, Profile.WEB) if type(value) is str else value


def room_path(name: str) -> str:
    """Where a room or a conversation is."""
    return f"/rooms/{quote(name, safe='')}" if name else "/rooms"


def at(time: datetime) -> str:
    """A time for the attribute ``datetime``; the browser shows it in the zone of whoever looks."""
    return time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def clock(time: datetime) -> str:
    """The time of a message, before a browser has put it into its zone."""
    return time.astimezone(UTC).strftime("%H:%M")


def ago(time: datetime) -> str:
    """How long ago: ``4 min``."""
    seconds = max(0.0, (datetime.now(UTC) - time).total_seconds())
    for limit, unit, name in _STEPS:
        if seconds < limit:
            return f"{seconds // unit:.0f} {name}"
    return f"{seconds // 86400:.0f} d"
