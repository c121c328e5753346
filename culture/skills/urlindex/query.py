"""What a URLS line asks for."""

from collections.abc import Sequence
from typing import NamedTuple

from culture.protocol.names import is_channel
from culture.protocol.numerics import Numeric
from culture.protocol.text import Profile, one_line
from culture.protocol.vocabulary import ExtensionVerb
from culture.server.errors import Failed, Refused

SEARCH = "SEARCH"
USUAL = 10
"""How many links are shown where nobody says how many."""
_LONGEST_NUMBER = 9  # digits; more is as good as all


class RecentLinks(NamedTuple):
    """The latest links of a channel; None: of the one where the asker is."""

    channel: str | None
    most: int


class LinkSearch(NamedTuple):
    """The latest links with these words."""

    term: str
    most: int


def read(params: Sequence[str], limit: int) -> RecentLinks | LinkSearch:
    """The question in these parameters; nobody gets more than ``limit`` links."""
    first, *rest = params or ("",)
    if is_channel(first):
        return RecentLinks(first, number(rest[0], limit) if rest else min(USUAL, limit))
    if first.upper() == SEARCH:
        if not rest:
            raise Refused(Numeric.ERR_NEEDMOREPARAMS, ExtensionVerb.URLS)
        return LinkSearch(one_line(" ".join(rest), Profile.INDEX), limit)
    return RecentLinks(None, number(first, limit) if params else min(USUAL, limit))


def number(text: str, limit: int) -> int:
    """How many are wanted: 1 or more."""
    if not (text.isascii() and text.isdigit()) or not text.strip("0"):
        urls = ExtensionVerb.URLS
        hint = f"{urls} #channel [how many], {urls} {SEARCH} :words, or {urls} [how many]"
        raise Failed(ExtensionVerb.URLS, "INVALID_PARAMS", text, text=hint)
    digits = text.lstrip("0")
    return limit if len(digits) > _LONGEST_NUMBER else min(int(digits), limit)
