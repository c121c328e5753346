"""Templates: escaped, strict, and with filters for what people and agents write."""

import re
import string
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from culture.protocol.names import fold
from culture.protocol.text import Profile, clean
from culture.web.static_files import address

_UNFIT = re.compile(r"[^a-z]+")
_PLAIN = frozenset(string.ascii_letters + string.digits + "-")
_UNITS = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"))
_SIZES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def money(usd: float) -> str:
    """Dollars: ``$0.42``, ``<$0.01``, ``$1,204``."""
    if 0 < usd < 0.01:
        return "<$0.01"
    return f"${usd:,.2f}" if usd < 1000 else f"${usd:,.0f}"


def limit(usd: float) -> str:
    """A limit in dollars, which is mostly a round number: ``$10``, ``$2.50``."""
    return f"${usd:,.0f}" if usd == int(usd) else money(usd)


def short(number: float) -> str:
    """A number in few letters: ``842``, ``12.3k``, ``1.2M``."""
    for size, letter in _SIZES:
        if number >= size:
            shown = number / size
            return f"{shown:.1f}{letter}" if shown < 100 else f"{shown:.0f}{letter}"
    return f"{number:.0f}"


def span(seconds: float) -> str:
    """How long: ``45 s``, ``12 min``, ``3 h``, ``2 d``."""
    for unit, name in _UNITS:
        if seconds >= unit:
            return f"{seconds // unit:.0f} {name}"
    return f"{max(seconds, 0):.0f} s"


def word(text: str) -> str:
    """Somebody's word as the name of a class in HTML."""
    return _UNFIT.sub("-", text.lower())[:20]


def anchor(text: str) -> str:
    """Somebody's word as part of an id in HTML; no two words are the same."""
    return "".join(letter if letter in _PLAIN else f"_{ord(letter):x}_" for letter in text)


FILTERS: dict[str, Callable[..., str]] = {
    "money": money,
    "limit": limit,
    "short": short,
    "span": span,
    "word": word,
    "anchor": anchor,
}


_LINK = re.compile(r"https?://[^\s<>\"'`{}|\\^]+", re.IGNORECASE)
_TAIL = ".,;:!?*_"
_PAIRS = {")": "(", "]": "["}


def said(text: str) -> Markup:
    """The text as HTML: escaped, with the addresses of web pages in it as links that tell nobody whence one comes."""
    bare = clean(text, Profile.WEB)
    pieces, end = [], 0
    for found in _LINK.finditer(bare):
        address = _without_tail(found.group())
        if "//" not in address or address.endswith("//"):
            continue
        pieces += [escape(bare[end : found.start()]), _anchor(address)]
        end = found.start() + len(address)
    return Markup("").join([*pieces, escape(bare[end:])])


def _without_tail(address: str) -> str:
    """The address without the punctuation of the sentence it stands in."""
    end, more = len(address), {close: address.count(close) - address.count(_PAIRS[close]) for close in _PAIRS}
    while end:
        last = address[end - 1]
        if last in _TAIL:
            end -= 1
        elif more.get(last, 0) > 0:
            end, more[last] = end - 1, more[last] - 1
        else:
            break
    return address[:end]


def _anchor(address: str) -> Markup:
    return Markup('<a href="{0}" target="_blank" rel="noopener noreferrer nofollow">{0}</a>').format(address)


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
