"""What people and agents write, made safe to show: formatting and control characters out, links to click on."""

import re

from markupsafe import Markup, escape

_COLOUR = re.compile(r"\x03(?:\d{1,2}(?:,\d{1,2})?)?|\x04(?:[0-9a-fA-F]{6}(?:,[0-9a-fA-F]{6})?)?")
_LINK = re.compile(r"https?://[^\s<>\"'`{}|\\^]+", re.IGNORECASE)
_TAIL = ".,;:!?*_"
_PAIRS = {")": "(", "]": "["}
_TURNING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c")
_KEPT = frozenset("\n\t")


def plain(text: str) -> str:
    """The text without colours, control characters, and what turns letters around."""
    bare = _COLOUR.sub("", text)
    return "".join(letter for letter in bare if letter in _KEPT or (ord(letter) >= 32 and not _is_unsafe(letter)))


def _is_unsafe(letter: str) -> bool:
    return letter in _TURNING or "\x7f" <= letter <= "\x9f" or "\ud800" <= letter <= "\udfff"


def said(text: str) -> Markup:
    """The text as HTML: escaped, with the addresses of web pages in it as links that tell nobody whence one comes."""
    bare = plain(text)
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
