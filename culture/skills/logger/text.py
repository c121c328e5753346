"""What somebody wrote, as text that is safe in a line of a file and on a terminal."""

import re

# What IRC clients show as colours and styles.
_STYLES = re.compile(
    "\x03(?:[0-9]{1,2}(?:,[0-9]{1,2})?)?|\x04(?:[0-9A-Fa-f]{6}(?:,[0-9A-Fa-f]{6})?)?|[\x02\x0f\x11\x16\x1d-\x1f]"
)
# What would end a line, command a terminal, or show a line in another order than it was written in.
_UNSAFE = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_PICTURES, _DELETE, _UNKNOWN = 0x2400, "\N{SYMBOL FOR DELETE}", "\N{REPLACEMENT CHARACTER}"


def clean(text: str) -> str:
    """The text without colours and styles; other control characters become their pictures (``␛``)."""
    if text.isascii() and text.isprintable():
        return text
    return _UNSAFE.sub(_picture, _STYLES.sub("", text))


def _picture(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code == 0x7F:
        return _DELETE
    return chr(_PICTURES + code) if code < 0x20 else _UNKNOWN
