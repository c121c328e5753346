"""Parse the parameters of a ``URLS`` line."""

from collections.abc import Sequence
from typing import NamedTuple

from culture.protocol.names import is_channel
from culture.protocol.numerics import Numeric
from culture.protocol.text import Profile, one_line
from culture.protocol.vocabulary import ExtensionVerb
from culture.server.errors import Failed, Refused

SEARCH = "SEARCH"
DEFAULT_COUNT = 10
"""Number of links if the client names none."""
_LONGEST_NUMBER = 9  # digits; a longer number means all


class RecentLinks(NamedTuple):
    """A query for the latest links of a channel; None: the client's current channel."""

    channel: str | None
    most: int


class LinkSearch(NamedTuple):
    """A query for the latest links that have the words ``term`` in them or beside them."""

    term: str
    most: int


def read(params: Sequence[str], limit: int) -> RecentLinks | LinkSearch:
    """Return the query in the parameters of URLS, for at most ``limit`` links.

    Raises ``Refused`` or ``Failed`` if the parameters are wrong.
    """
    first, *rest = params or ("",)
    if is_channel(first):
        return RecentLinks(first, number(rest[0], limit) if rest else min(DEFAULT_COUNT, limit))
    if first.upper() == SEARCH:
        if not rest:
            raise Refused(Numeric.ERR_NEEDMOREPARAMS, ExtensionVerb.URLS)
        return LinkSearch(one_line(" ".join(rest), Profile.INDEX), limit)
    return RecentLinks(None, number(first, limit) if params else min(DEFAULT_COUNT, limit))


def number(text: str, limit: int) -> int:
    """Return how many links the text asks for, at most ``limit``.

    Raises ``Failed`` if the text is no positive whole number.
    """
    if not (text.isascii() and text.isdigit()) or not text.strip("0"):
        urls = ExtensionVerb.URLS
        hint = f"{urls} #channel [how many], {urls} {SEARCH} :words, or {urls} [how many]"
        raise Failed(ExtensionVerb.URLS, "INVALID_PARAMS", text, text=hint)
    digits = text.lstrip("0")
    return limit if len(digits) > _LONGEST_NUMBER else min(int(digits), limit)
