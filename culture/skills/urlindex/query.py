"""What a URLS line asks for."""

from collections.abc import Sequence
from typing import NamedTuple

from culture.protocol.names import is_channel
from culture.protocol.numerics import Numeric
from culture.protocol.text import Profile, one_line
from culture.protocol.vocabulary import Verb
from culture.server.errors import Failed, Refused

SEARCH = "SEARCH"
USUAL = 10
"""How many links are shown where nobody says how many."""
_LONGEST_NUMBER = 9  # digits; more is as good as all


class Recent(NamedTuple):
    """The latest links of a channel; None: of the one where the asker is."""

    channel: str | None
    most: int


class Search(NamedTuple):
    """The latest links with these words."""

    term: str
    most: int


def read(params: Sequence[str], limit: int) -> Recent | Search:
    """The question in these parameters; nobody gets more than ``limit`` links."""
    first, *rest = params or ("",)
    if is_channel(first):
        return Recent(first, number(rest[0], limit) if rest else min(USUAL, limit))
    if first.upper() == SEARCH:
        if not rest:
            raise Refused(Numeric.ERR_NEEDMOREPARAMS, Verb.URLS)
        return Search(one_line(" ".join(rest), Profile.INDEX), limit)
    return Recent(None, number(first, limit) if params else min(USUAL, limit))


def number(text: str, limit: int) -> int:
    """How many are wanted: 1 or more."""
    if not (text.isascii() and text.isdigit()) or not text.strip("0"):
        hint = f"{Verb.URLS} #channel [how many], {Verb.URLS} {SEARCH} :words, or {Verb.URLS} [how many]"
        raise Failed(Verb.URLS, "INVALID_PARAMS", text, text=hint)
    digits = text.lstrip("0")
    return limit if len(digits) > _LONGEST_NUMBER else min(int(digits), limit)
