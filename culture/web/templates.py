"""The Jinja environment: autoescape, strict names, filters for numbers, times and text."""

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

_NOT_A_CLASS = re.compile(r"[^a-z]+")
_PLAIN = frozenset(string.ascii_letters + string.digits + "-")
_UNITS = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"))
_SIZES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def money(usd: float) -> str:
    """Return a sum in dollars as text: ``$0.42``, ``<$0.01``, ``$1,204``."""
    if 0 < usd < 0.01:
        return "<$0.01"
    return f"${usd:,.2f}" if usd < 1000 else f"${usd:,.0f}"


def limit(usd: float) -> str:
    """Return a limit in dollars as text, without cents if it is whole: ``$10``, ``$2.50``."""
    return f"${usd:,.0f}" if usd == int(usd) else money(usd)


def short(number: float) -> str:
    """Return a number as text with an SI suffix: ``842``, ``12.3k``, ``1.2M``."""
    for size, letter in _SIZES:
        if number >= size:
            scaled = number / size
            return f"{scaled:.1f}{letter}" if scaled < 100 else f"{scaled:.0f}{letter}"
    return f"{number:.0f}"


def span(seconds: float) -> str:
    """Return a duration as text in its largest unit: ``45 s``, ``12 min``, ``3 h``, ``2 d``."""
    for unit, name in _UNITS:
        if seconds >= unit:
            return f"{seconds // unit:.0f} {name}"
    return f"{max(seconds, 0):.0f} s"


def word(text: str) -> str:
    """Return untrusted text as the name of an HTML class.

    The name has lower-case letters and dashes, at most 20 characters.
    """
    return _NOT_A_CLASS.sub("-", text.lower())[:20]


def anchor(text: str) -> str:
    """Return untrusted text in the form of an HTML id; different texts give different ids."""
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


def linked(text: str) -> Markup:
    """Return untrusted text as HTML: escaped, with web addresses as links.

    The links have ``noopener noreferrer nofollow``.
    """
    bare = clean(text, Profile.WEB)
    pieces, end = [], 0
    for match in _LINK.finditer(bare):
        address = _without_tail(match.group())
        if "//" not in address or address.endswith("//"):
            continue
        pieces += [escape(bare[end : match.start()]), _anchor(address)]
        end = match.start() + len(address)
    return Markup("").join([*pieces, escape(bare[end:])])


def _without_tail(address: str) -> str:
    """Return a web address found in a sentence without the sentence's own punctuation.

    Trailing punctuation and unpaired closing brackets are removed.
    """
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
    """Return the Jinja environment with the filters and functions that all pages use."""
    jinja = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )
    jinja.filters |= {"at": at, "ago": ago, "linked": linked, "clock": clock, **FILTERS}
    jinja.globals |= {"file": address, "room_path": room_path, "fold": fold}
    return jinja


def _finalize(value: object) -> object:
    """Return a value as a template shows it: plain text without control characters.

    ``Markup`` is returned unchanged, since it was cleaned when it was made.
    """
    return clean(value, Profile.WEB) if type(value) is str else value


def room_path(name: str) -> str:
    """Return the path of the page of a room or private conversation."""
    return f"/rooms/{quote(name, safe='')}" if name else "/rooms"


def at(time: datetime) -> str:
    """Return a time as ISO 8601 in UTC, for HTML's ``datetime``; app.js shows it in local time."""
    return time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def clock(time: datetime) -> str:
    """Return a time as ``14:05`` in UTC; app.js replaces it by local time."""
    return time.astimezone(UTC).strftime("%H:%M")


def ago(time: datetime) -> str:
    """Return the time elapsed since ``time`` as text: ``4 min``."""
    seconds = max(0.0, (datetime.now(UTC) - time).total_seconds())
    for limit, unit, name in _STEPS:
        if seconds < limit:
            return f"{seconds // unit:.0f} {name}"
    return f"{seconds // 86400:.0f} d"
