"""Find the links in a text, in one pass, without surrounding punctuation and brackets."""

import re
from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from culture.protocol.text import Profile, clean, one_line

LONGEST = 2000
"""Bytes of a link, at most; longer ones are ignored."""
MOST = 20
"""Links per message, at most."""

_CONTEXT = 300  # characters
_BEFORE = 100  # of them before the link, where the text is longer

_SCHEME = r"(?:https?|ftps?|sftp|ssh|git(?:\+(?:ssh|https?))?)://"
_START = re.compile(rf"(?<![A-Za-z0-9+.-]){_SCHEME}(?=[^\W_]|[\[%])", re.IGNORECASE)
_OPENED = {")": "(", "]": "[", "}": "{", "）": "（", "」": "「", "』": "『", "】": "【", "》": "《"}
_BRACKETS = re.escape("".join(chain(*_OPENED.items())))
# Where a link may end: at a bracket, before a space, a control, a quote, and before a comma that another one follows.
_PLACE = re.compile(rf"[{_BRACKETS}]|[\s\x00-\x1f\x7f-\x9f<>\"`]|[,;|](?={_SCHEME})", re.IGNORECASE)
_HEAD = re.compile(r"[^/?#]*//[^/?#]*")
_TAIL = ".,;:!?'*|…’”»。，、；：！？" + "".join(_OPENED.values())
_ACTION = "\x01ACTION "


class FoundLink(NamedTuple):
    """A link as it was written, its normal form for comparison, and the text around it."""

    url: str
    key: str
    context: str


def may_link(text: str) -> bool:
    """Return whether a text may contain a link; a fast check before ``links``."""
    return "://" in text


def links(text: str) -> list[FoundLink]:
    """Return the links in a message without duplicates, in order, at most ``MOST``."""
    if text.startswith("\x01"):
        if not text.startswith(_ACTION):
            return []
        text = text[len(_ACTION) :]
    text = clean(text, Profile.INDEX)
    by_key: dict[str, FoundLink] = {}
    for start, url in _written(text):
        key = normal(url)
        if key not in by_key:
            by_key[key] = FoundLink(url, key, around(text, start))
            if len(by_key) == MOST:
                break
    return list(by_key.values())


def normal(url: str) -> str:
    """Return the normal form of a link: scheme and host in lower case, ``/`` for an empty path."""
    head = _HEAD.match(url)
    if head is None:
        return url
    user, at, host = head[0].rpartition("@")
    scheme, slashes, name = user.partition("//")
    small = f"{scheme.lower()}{slashes}{name}@{host.lower()}" if at else host.lower()
    return small + (url[head.end() :] or "/")


def around(text: str, start: int) -> str:
    """Return the text around the link at ``start``, as one line of at most 300 characters."""
    begin = 0 if len(text) <= _CONTEXT else max(0, start - _BEFORE)
    context = one_line(text[begin : begin + _CONTEXT], Profile.INDEX)
    return f"…{context}" if begin else context


def _written(text: str) -> Iterator[tuple[int, str]]:
    """Yield start and text of each link; every character is scanned once."""
    place = 0
    while match := _START.search(text, place):
        place = _end(text, match.end())
        url = text[match.start() : place].rstrip(_TAIL)
        if len(url.encode(errors="replace")) <= LONGEST and _START.match(url):
            yield match.start(), url


def _end(text: str, begin: int) -> int:
    """Return where a link ends: at a space, a quote or an unpaired closing bracket.

    ``begin``: where to start looking.
    """
    opened = dict.fromkeys(_OPENED.values(), 0)
    for match in _PLACE.finditer(text, begin):
        character = match[0]
        if character in opened:
            opened[character] += 1
        elif not opened.get(_OPENED.get(character, "")):
            return match.start()
        else:
            opened[_OPENED[character]] -= 1
    return len(text)
