"""Amounts, spans and states as pages show them."""

import re
import string
from collections.abc import Callable

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
