"""One line of IRC as a value: ``Message.parse`` reads it, ``bytes(message)`` writes it."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

NO_TAGS: Mapping[str, str] = MappingProxyType({})

_new = tuple.__new__  # NamedTuple's own would cost the hot path half as much again
_UNESCAPED = {":": ";", "s": " ", "\\": "\\", "r": "\r", "n": "\n"}


class ProtocolError(Exception):
    """The other side has sent something that is not IRC."""


class Message(NamedTuple):
    """A line of IRC: its verb, parameters, source (who sent it) and tags."""

    verb: str
    params: tuple[str, ...] = ()
    source: str = ""
    tags: Mapping[str, str] = NO_TAGS

    @classmethod
    def parse(cls, line: str) -> "Message":
        """Parse a line that has no line end any more; raises ProtocolError if it has no verb."""
        head, colon, trailing = line.partition(" :")
        words = head.split(" ")
        verb = words.pop(0)
        # Double, leading or trailing spaces show as an empty word.
        if not verb or "" in words or verb[0] in "@:":
            return _parse_unusual(line)
        if colon:
            words.append(trailing)
        # Only ASCII is folded: the long s (U+017F) would become "S" and spell a verb.
        return _new(cls, (verb.upper() if verb.isascii() else verb, tuple(words), "", NO_TAGS))

    def __str__(self) -> str:
        """Return the line without a line end.

        Raises ValueError if it would parse to another message.
        """
        verb, params, source, tags = self
        words = [verb, *params]
        last = words.pop() if params else None
        for word in words:
            if not word or " " in word or word[0] == ":":
                raise ValueError(f"not a word: {word!r}")
        if last is not None:
            words.append(":" + last if not last or last[0] == ":" or " " in last else last)
        line = " ".join(words)
        if source:
            if " " in source:
                raise ValueError(f"not a source: {source!r}")
            line = f":{source} {line}"
        elif verb[0] == "@" and not tags:
            raise ValueError(f"not a verb: {verb!r}")
        if tags:
            line = f"@{format_tags(tags)} {line}"
        if "\n" in line or "\r" in line or "\0" in line:
            raise ValueError("CR, LF and NUL cannot be part of a line")
        return line

    def __bytes__(self) -> bytes:
        """Return the line as bytes, with CR LF at the end."""
        return (str(self) + "\r\n").encode()


def _parse_unusual(line: str) -> Message:
    """Parse a line with tags, a source or extra spaces; raises ProtocolError if it has no verb."""
    tags, source = NO_TAGS, ""
    rest = line.lstrip(" ")
    if rest.startswith("@"):
        word, _, rest = rest[1:].partition(" ")
        tags, rest = _parse_tags(word), rest.lstrip(" ")
    if rest.startswith(":"):
        source, _, rest = rest[1:].partition(" ")
        rest = rest.lstrip(" ")
    head, colon, trailing = rest.partition(" :")
    words = head.split(" ")
    if "" in words:
        words = [word for word in words if word]
    if not words:
        raise ProtocolError("a line without a verb")
    verb = words.pop(0)
    if colon:
        words.append(trailing)
    return _new(Message, (verb.upper() if verb.isascii() else verb, tuple(words), source, tags))


def _parse_tags(word: str) -> Mapping[str, str]:
    tags = {}
    for tag in word.split(";"):
        key, _, value = tag.partition("=")
        if key:
            tags[key] = unescape(value) if "\\" in value else value
    return tags or NO_TAGS


def format_tags(tags: Mapping[str, str]) -> str:
    """Return message tags as they stand in a line, without the ``@`` before and the space after.

    Raises ValueError for a key that would not survive parsing.
    """
    parts = []
    for key, value in tags.items():
        if not key or "=" in key:
            raise ValueError(f"not a tag: {key!r}")
        parts.append(f"{key}={escape(value)}" if value else key)
    text = ";".join(parts)
    # Values are escaped here, so a separator in the text comes from a key.
    if " " in text or text.count(";") >= len(parts) > 0:
        raise ValueError(f"not tags: {text!r}")
    return text


def escape(value: str) -> str:
    """Return the value of a tag escaped for a line (IRCv3 message-tags, "Escaping values")."""
    if "\\" in value:
        value = value.replace("\\", "\\\\")
    if " " in value:
        value = value.replace(" ", "\\s")
    if ";" in value:
        value = value.replace(";", "\\:")
    if "\r" in value:
        value = value.replace("\r", "\\r")
    if "\n" in value:
        value = value.replace("\n", "\\n")
    return value


def unescape(value: str) -> str:
    """Return the value of an escaped tag; a backslash without a meaning is dropped."""
    if "\\" not in value:
        return value
    out = []
    characters = iter(value)
    for character in characters:
        if character == "\\":
            character = next(characters, "")
            character = _UNESCAPED.get(character, character)
        out.append(character)
    return "".join(out)
