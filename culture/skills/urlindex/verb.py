"""The verb URLS: its parameters, and its answer as URLS lines for programs, NOTICE for people."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from culture.protocol.message import Message
from culture.protocol.names import is_channel
from culture.protocol.numerics import Numeric
from culture.protocol.stream import LINE_LIMIT
from culture.protocol.text import Profile, one_line
from culture.protocol.vocabulary import ExtensionVerb
from culture.server.core.render import iso_time
from culture.server.errors import Failed, Refused
from culture.skills.urlindex.facts import LinkPage, Shared

SEARCH = "SEARCH"
DEFAULT_COUNT = 10
"""Number of links if the client names none."""
_LONGEST_NUMBER = 9  # digits; a longer number means all
_END = "End of results"
_UNNAMED = "*"  # instead of a link that is too long for a line


class RecentLinks(NamedTuple):
    """A query for the latest links of a channel; None: the client's current channel."""

    channel: str | None
    most: int


class LinkSearch(NamedTuple):
    """A query for the latest links that have the words ``term`` in them or beside them."""

    term: str
    most: int


def parse_query(params: Sequence[str], limit: int) -> RecentLinks | LinkSearch:
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


def rows(server: str, about: str, page: LinkPage) -> Iterator[Message]:
    """Yield the reply to URLS for programs: one line per link, then the end line.

    ``server``: the source of the lines; ``about``: the channel, or * for a search.
    """
    for link in page.links:
        yield row(server, link)
    if not page.complete:
        text = "The time for a search is over; older links were not looked at"
        yield Message("WARN", (ExtensionVerb.URLS, "TIMEOUT", about, text), server)
    yield Message(ExtensionVerb.URLSEND, (about, _END), server)


def row(server: str, link: Shared) -> Message:
    """Return the reply line for a link; if that is too long, one with its msgid only.

    ``server``: the source of the line.
    """
    channel, nick, at, times, url, context, msgid = link
    head = (channel, nick, f"{iso_time(at)[:-5]}Z", str(times))
    made = Message(ExtensionVerb.URLS, (*head, url, context), server)
    if len(bytes(made._replace(params=(*head, url, "")))) <= LINE_LIMIT:
        return made
    return made._replace(params=(*head, _UNNAMED, _too_long(url, msgid)))


def notices(server: str, nick: str, channel: str, page: LinkPage) -> Iterator[Message]:
    """Yield the reply to URLS for people: a heading and one notice per link.

    ``server`` and ``nick``: source and recipient of the notices.
    """
    head = f"Links in {channel}, newest first:" if page.links else f"No links were shared in {channel}"
    yield Message("NOTICE", (nick, head), server)
    for link in page.links:
        yield _notice(server, nick, link)


def _notice(server: str, nick: str, link: Shared) -> Message:
    when = iso_time(link.at)[:-8].replace("T", " ")
    count = "" if link.times == 1 else f" ({link.times} times)"
    text = f"{when} <{link.nick}> {link.url}{count}"
    if len(bytes(Message("NOTICE", (nick, text), server))) > LINE_LIMIT:
        text = f"{when} <{link.nick}> {_too_long(link.url, link.msgid)}{count}"
    elif link.context != link.url:
        text += f" – {link.context}"
    return Message("NOTICE", (nick, text), server)


def _too_long(url: str, msgid: str) -> str:
    return f"A link of {len(url.encode(errors='replace'))} bytes, too long for a line; it is in the message {msgid}"
