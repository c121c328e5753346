"""Text → the lines that say it, with nothing lost and nothing that could be a command. Without I/O."""

import re
from collections.abc import Iterator, Mapping
from itertools import count

from culture.protocol.caps import MULTILINE, MULTILINE_CONCAT
from culture.protocol.message import NO_TAGS, Message, format_tags
from culture.protocol.split import LONGEST_PREFIX, cut_line, room, split_text
from culture.protocol.stream import CLIENT_TAGS_LIMIT
from culture.transport.types import NotSent

_LINE_END = re.compile(r"\r\n|[\r\n\0]")
_CTCP = "\x01"
_LABEL_ROOM = 64
_LINES = 100
_names = count(1)


class MultilineLimits:
    """How long a message of several lines may be: the value of the capability."""

    def __init__(self, value: str) -> None:
        said = dict(word.partition("=")[::2] for word in value.split(","))
        self.bytes = _number(said.get("max-bytes", ""), 4096)
        self.lines = _number(said.get("max-lines", ""), _LINES)


def _number(word: str, default: int) -> int:
    return int(word) if word.isascii() and word.isdigit() and word.strip("0") else default


def check_target(target: str) -> None:
    """One channel or nick, and nothing that would read as more."""
    if not target or target[0] == ":" or re.search(r"[\x00-\x20,]", target):
        raise NotSent(f"{target!r} is neither a nick nor a channel")


def client_tags(tags: Mapping[str, str], enabled: bool) -> Mapping[str, str]:
    """The tags that a client may send, where the server takes tags."""
    if not tags or not enabled:
        return NO_TAGS
    kept = {key: value for key, value in tags.items() if key.startswith("+")}
    try:
        size = len(format_tags(kept).encode())
    except ValueError as error:
        raise NotSent(str(error)) from error
    if size > CLIENT_TAGS_LIMIT - _LABEL_ROOM:
        raise NotSent("the tags are too long")
    return kept


def utterances(
    verb: str, target: str, text: str, tags: Mapping[str, str], prefix: str | None, limits: MultilineLimits | None
) -> list[list[Message]]:
    """The text as messages in order, each of them lines with one answer: a line alone, or a batch."""
    check_target(target)
    text = text.replace(_CTCP, "").encode(errors="replace").decode()
    space = room(prefix or LONGEST_PREFIX, verb, target)
    if space < 64:
        raise NotSent(f"{target!r} is neither a nick nor a channel")
    pieces = split_text(text, space)
    if not pieces:
        raise NotSent("there is nothing to say")
    if limits is None or len(pieces) == 1:
        return [[Message(verb, (target, piece), tags=tags)] for piece in pieces]
    return [_batch(verb, target, group, tags) for group in _groups(text, space, limits)]


def _groups(text: str, space: int, limits: MultilineLimits) -> Iterator[list[tuple[str, bool]]]:
    """The lines, each with whether it goes on where the one before it ended, as many as one message takes."""
    group: list[tuple[str, bool]] = []
    size = 0
    for line in _LINE_END.split(text):
        for number, piece in enumerate(cut_line(line, min(space, limits.bytes - 1))):
            cost = len(piece.encode()) + 1
            if group and (len(group) >= limits.lines or size + cost > limits.bytes):
                yield from _trimmed(group)
                group, size = [], 0
            group.append((piece, number > 0 and bool(group)))
            size += cost
    yield from _trimmed(group)


def _trimmed(group: list[tuple[str, bool]]) -> Iterator[list[tuple[str, bool]]]:
    """Without blank lines at either end; of blank lines alone there is no message."""
    while group and not group[0][0].strip(" \t"):
        group = group[1:]
    while group and not group[-1][0].strip(" \t"):
        group = group[:-1]
    if group:
        yield group


def _batch(verb: str, target: str, group: list[tuple[str, bool]], tags: Mapping[str, str]) -> list[Message]:
    if len(group) == 1:
        return [Message(verb, (target, group[0][0]), tags=tags)]
    name = f"m{next(_names)}"
    lines = [Message("BATCH", (f"+{name}", MULTILINE, target), tags=tags)]
    for text, goes_on in group:
        marks = {"batch": name, **({MULTILINE_CONCAT: ""} if goes_on else {})}
        lines.append(Message(verb, (target, text), tags=marks))
    return [*lines, Message("BATCH", (f"-{name}",))]
