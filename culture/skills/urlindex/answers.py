"""Links as lines: for programs (URLS), and for people (NOTICE)."""

import time
from collections.abc import Iterator

from culture.protocol.message import Message
from culture.protocol.stream import LINE_LIMIT
from culture.protocol.vocabulary import ExtensionVerb
from culture.skills.urlindex.facts import LinkPage, Shared

_END = "End of results"
_UNNAMED = "*"  # in place of a link that is too long for a line


def rows(server: str, about: str, found: LinkPage) -> Iterator[Message]:
    """A line per link and the one that ends them."""
    for shared in found.links:
        yield row(server, shared)
    if not found.complete:
        text = "The time for a search is over; older links were not looked at"
        yield Message("WARN", (ExtensionVerb.URLS, "TIMEOUT", about, text), server)
    yield Message(ExtensionVerb.URLSEND, (about, _END), server)


def row(server: str, shared: Shared) -> Message:
    """One link. What is too long to be told whole is named by its message, never cut."""
    channel, nick, at, times, url, context, msgid = shared
    head = (channel, nick, time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at)), str(times))
    made = Message(ExtensionVerb.URLS, (*head, url, context), server)
    if len(bytes(made._replace(params=(*head, url, "")))) <= LINE_LIMIT:
        return made
    return made._replace(params=(*head, _UNNAMED, _too_long(url, msgid)))


def notices(server: str, nick: str, channel: str, found: LinkPage) -> Iterator[Message]:
    """The same for somebody who reads it, without a word for programs."""
    head = f"Links in {channel}, newest first:" if found.links else f"No links were shared in {channel}"
    yield Message("NOTICE", (nick, head), server)
    for shared in found.links:
        yield _notice(server, nick, shared)


def _notice(server: str, nick: str, shared: Shared) -> Message:
    when = time.strftime("%Y-%m-%d %H:%M", time.gmtime(shared.at))
    often = "" if shared.times == 1 else f" ({shared.times} times)"
    text = f"{when} <{shared.nick}> {shared.url}{often}"
    if len(bytes(Message("NOTICE", (nick, text), server))) > LINE_LIMIT:
        text = f"{when} <{shared.nick}> {_too_long(shared.url, shared.msgid)}{often}"
    elif shared.context != shared.url:
        text += f" – {shared.context}"
    return Message("NOTICE", (nick, text), server)


def _too_long(url: str, msgid: str) -> str:
    return f"A link of {len(url.encode(errors='replace'))} bytes, too long for a line; it is in the message {msgid}"
