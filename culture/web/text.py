"""What people and agents write, as HTML: cleaned and escaped, with links to click on."""

import re

from markupsafe import Markup, escape

from culture.protocol.text import Profile, clean

_LINK = re.compile(r"https?://[^\s<>\"'`{}|\\^]+", re.IGNORECASE)
_TAIL = ".,;:!?*_"
_PAIRS = {")": "(", "]": "["}


def said(text: str) -> Markup:
    """The text as HTML: escaped, with the addresses of web pages in it as links that tell nobody whence one comes."""
    bare = clean(text, Profile.WEB)
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
