"""The links in a text: found in one pass, without what is only next to them."""

import re
from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from culture.protocol.text import Profile, clean, one_line

LONGEST = 2000
"""Bytes; what is longer is data rather than an address, and is no link here."""
MOST = 20
"""So many links of one message are taken."""

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
    """A link as it was written, the form in which it compares, and the text around it."""

    url: str
    key: str
    context: str


def may_link(text: str) -> bool:
    """Whether it is worth looking closer."""
    return "://" in text


def links(text: str) -> list[FoundLink]:
    """The links of a message, each once, in the order of the text."""
    if text.startswith("\x01"):
        if not text.startswith(_ACTION):
            return []
        text = text[len(_ACTION) :]
    text = clean(text, Profile.INDEX)
    found: dict[str, FoundLink] = {}
    for start, url in _written(text):
        key = normal(url)
        if key not in found:
            found[key] = FoundLink(url, key, around(text, start))
            if len(found) == MOST:
                break
    return list(found.values())


def normal(url: str) -> str:
    """The form in which links compare: scheme and host in small letters, the root as a path; the rest as it is."""
    head = _HEAD.match(url)
    if head is None:
        return url
    user, at, host = head[0].rpartition("@")
    scheme, slashes, name = user.partition("//")
    small = f"{scheme.lower()}{slashes}{name}@{host.lower()}" if at else host.lower()
    return small + (url[head.end() :] or "/")


def around(text: str, start: int) -> str:
    """The text of a message as one line; of a long one the part about the link."""
    begin = 0 if len(text) <= _CONTEXT else max(0, start - _BEFORE)
    context = one_line(text[begin : begin + _CONTEXT], Profile.INDEX)
    return f"…{context}" if begin else context


def _written(text: str) -> Iterator[tuple[int, str]]:
    """Where each link begins, and the link; every character is looked at once."""
    place = 0
    while match := _START.search(text, place):
        place = _end(text, match.end())
        url = text[match.start() : place].rstrip(_TAIL)
        if len(url.encode(errors="replace")) <= LONGEST and _START.match(url):
            yield match.start(), url


def _end(text: str, begin: int) -> int:
    """Where a link ends: a bracket belongs to it only where it was opened in it."""
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
