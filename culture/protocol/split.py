"""Splits long text into lines that fit, without losing any of it."""

import re
import unicodedata
from collections.abc import Iterator

from culture.protocol.stream import LINE_LIMIT

LONGEST_PREFIX = f"{'n' * 32}!{'u' * 16}@{'h' * 63}"
"""The longest sender that the default limits allow, for clients that do not know theirs."""

_LINE_END = re.compile(r"\r\n|[\r\n\0]")
_BLANK = " \t"  # not plain strip(), which also removes \x1f, the underline of IRC
_FENCE = "```"
_JOINER = "\u200d"
_FLAG_HALVES = "".join(map(chr, range(0x1F1E6, 0x1F200)))
_LONGEST_GRAPHEME = 40


def room(prefix: str, verb: str, target: str) -> int:
    """Return the bytes left for the text in a line that a server relays.

    ``prefix``: the source of the line, ``nick!user@host``. Servers refuse longer text with numeric 417.
    """
    return LINE_LIMIT - len(f":{prefix} {verb} {target} :\r\n".encode())


def clip(text: str, size: int) -> str:
    """Return the start of the text that fits into ``size`` bytes, cut between two characters."""
    return text.encode(errors="replace")[:size].decode(errors="ignore")


def split_text(text: str, room: int) -> list[str]:
    """Split a text into pieces of at most ``room`` bytes of UTF-8, for one message each.

    CR, LF and NUL end a piece. Long lines break between words, long words between characters. Only the space at a break
    and empty lines are left out, and within a code fence not even these.
    """
    if room < 4:
        raise ValueError("no room for a character")
    pieces: list[str] = []
    fenced = False
    for line in _LINE_END.split(text.encode(errors="replace").decode()):
        code = fenced
        if line.count(_FENCE) % 2:
            fenced = not fenced
        if line.strip(_BLANK):
            pieces += _pieces(line, room, code=code or fenced)
        elif code:
            pieces.append(" ")
    return pieces


def cut_line(line: str, room: int) -> list[str]:
    """Cut a line into pieces of at most ``room`` bytes of UTF-8, without leaving out anything."""
    if room < 4:
        raise ValueError("no room for a character")
    return list(_pieces(line, room, code=True)) or [""]


def _pieces(line: str, room: int, *, code: bool) -> Iterator[str]:
    while (end := _fitting(line, room)) < len(line):
        head, line = _cut(line, end, code=code)
        if code or head.strip(_BLANK):
            yield head
    if line:
        yield line


def _fitting(line: str, room: int) -> int:
    """Return how many characters of the line fit into ``room`` bytes of UTF-8."""
    window = line[:room]
    raw = window.encode()
    return len(window) if len(raw) <= room else len(raw[:room].decode(errors="ignore"))


def _cut(line: str, end: int, *, code: bool) -> tuple[str, str]:
    space = max(line.rfind(blank, 0, end if code else end + 1) for blank in _BLANK)
    if not line[: max(space, 0)].strip(_BLANK):
        end = _grapheme(line, end)
        return line[:end], line[end:]
    if code:
        return line[: space + 1], line[space + 1 :]
    return line[:space].rstrip(_BLANK), line[space:].lstrip(_BLANK)


def _grapheme(line: str, end: int) -> int:
    """Return the last position up to ``end`` at which the line can be cut between two graphemes.

    A grapheme is what people see as one character. Returns ``end`` itself if there is no such position near it.
    """
    for place in range(end, max(0, end - _LONGEST_GRAPHEME), -1):
        if not _belongs_together(line, place):
            return place
    return end


def _belongs_together(line: str, place: int) -> bool:
    before, after = line[place - 1], line[place]
    if before in _FLAG_HALVES and after in _FLAG_HALVES:
        return (place - len(line[:place].rstrip(_FLAG_HALVES))) % 2 == 1
    return (
        unicodedata.category(after)[0] == "M"
        or before == _JOINER
        or after == _JOINER
        or "\U0001f3fb" <= after <= "\U0001f3ff"  # skin tones
        or "\U000e0020" <= after <= "\U000e007f"  # the letters of a region's flag
    )
