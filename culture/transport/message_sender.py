"""Outgoing messages: text → lines that fit, sent in order, each with a known result.

No text can become a command: line breaks split it, CTCP markers are removed, the target is checked.
"""

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from weakref import WeakValueDictionary

from culture.protocol.caps import MULTILINE, MULTILINE_CONCAT
from culture.protocol.message import NO_TAGS, Message, format_tags
from culture.protocol.split import LONGEST_PREFIX, cut_line, room, split_text
from culture.protocol.stream import CLIENT_TAGS_LIMIT
from culture.transport.batches import MultilineLimits
from culture.transport.channels import with_hint
from culture.transport.dedup import Delivery
from culture.transport.requests import refusal
from culture.transport.session import IrcSession
from culture.transport.types import NotSent, call_safely

_LINE_END = re.compile(r"\r\n|[\r\n\0]")
_CTCP = "\x01"
_LABEL_BYTES = 64
_UNKNOWN_TARGET = ("401", "403", "404", "442", "INVALID_TARGET")


class MessageSender:
    """Sends texts; those to the same target one after the other, so that long texts do not mix."""

    def __init__(self, delivery: Delivery) -> None:
        self._delivery = delivery
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def send(
        self, session: IrcSession, verb: str, target: str, text: str, tags: Mapping[str, str], skip: int = 0
    ) -> list[str]:
        """Send a text to a channel or nick; return the msgids that the server gave.

        ``verb`` is PRIVMSG or NOTICE; ``tags``: message tags that clients may send. A text too long for one message
        becomes several; the first ``skip`` of them are left out as sent before. ``NotSent`` is raised with the
        server's reason if it refuses the text.
        """
        view = session.view
        allowed_tags = client_tags(tags, "message-tags" in session.enabled)
        messages = split_messages(verb, target, text, allowed_tags, view.prefix, session.multiline)
        lock = self._locks.setdefault(view.fold(target), asyncio.Lock())
        msgids: list[str] = []
        async with lock:
            for lines in messages[skip:]:
                msgids += await self._send_message(session, verb, target, lines)
        return msgids

    async def _send_message(self, session: IrcSession, verb: str, target: str, lines: Sequence[Message]) -> list[str]:
        items = await session.ask(*lines, paced=True)
        echoes = [item for item in map(session.reader.message, items) if item is not None and item.own]
        refused = refusal(items)
        if refused is not None and not echoes:
            if refused.code in _UNKNOWN_TARGET:
                raise NotSent(with_hint(refused.reason, target, session.view.names()), refused.code)
            raise refused
        if "echo-message" not in session.enabled:
            call_safely(self._delivery.take_live, session.reader.own_message(verb, target, lines))
        elif "labeled-response" in session.enabled and not echoes:
            raise NotSent(f"the server did not pass it on to {target}")
        return [echo.msgid for echo in echoes if "msgid" in echo.tags]


def check_target(target: str) -> None:
    """Raise ``NotSent`` unless the target is one channel or nick."""
    if not target or target[0] == ":" or re.search(r"[\x00-\x20,]", target):
        raise NotSent(f"{target!r} is neither a nick nor a channel")


def client_tags(tags: Mapping[str, str], enabled: bool) -> Mapping[str, str]:
    """Return those of ``tags`` that a client may send (``+name``); none without ``enabled``.

    ``enabled``: the server accepts message tags. ``NotSent`` is raised if they are invalid or too long.
    """
    if not tags or not enabled:
        return NO_TAGS
    allowed = {key: value for key, value in tags.items() if key.startswith("+")}
    try:
        size = len(format_tags(allowed).encode())
    except ValueError as error:
        raise NotSent(str(error)) from error
    if size > CLIENT_TAGS_LIMIT - _LABEL_BYTES:
        raise NotSent("the tags are too long")

    return allowed


def split_messages(
    verb: str, target: str, text: str, tags: Mapping[str, str], prefix: str | None, limits: MultilineLimits | None
) -> list[list[Message]]:
    """Split a text into messages; each is a list of lines that the server answers together.

    ``verb``: PRIVMSG or NOTICE. A message is one line, or with ``limits`` a multiline batch. ``prefix`` is our
    ``nick!user@host``, which takes room in each line. ``NotSent`` is raised for an empty text or an invalid target.
    """
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
    # A batch is written whole before the next one begins, so the next text may use its name again.
    return [
        _batch(f"m{number}", verb, target, group, tags) for number, group in enumerate(_groups(text, space, limits), 1)
    ]


def _groups(text: str, space: int, limits: MultilineLimits) -> Iterator[list[tuple[str, bool]]]:
    """Group the lines of a text into multiline messages that fit the limits.

    A group is a list of pairs: a piece of text that fits in ``space`` bytes, and whether it continues the line
    before.
    """
    group: list[tuple[str, bool]] = []
    size = 0
    for line in _LINE_END.split(text):
        for number, piece in enumerate(cut_line(line, min(space, limits.bytes - 1))):
            cost = len(piece.encode()) + 1
            if group and (len(group) >= limits.lines or size + cost > limits.bytes):
                yield from _trim_blank_lines(group)
                group, size = [], 0
            group.append((piece, number > 0 and bool(group)))
            size += cost
    yield from _trim_blank_lines(group)


def _trim_blank_lines(group: list[tuple[str, bool]]) -> Iterator[list[tuple[str, bool]]]:
    """Yield the lines without blank ones at the start and end; nothing if all are blank.

    ``group``: pairs of a piece of text and whether it continues the line before.
    """
    while group and not group[0][0].strip(" \t"):
        group = group[1:]
    while group and not group[-1][0].strip(" \t"):
        group = group[:-1]
    if group:
        yield group


def _batch(name: str, verb: str, target: str, group: list[tuple[str, bool]], tags: Mapping[str, str]) -> list[Message]:
    if len(group) == 1:
        return [Message(verb, (target, group[0][0]), tags=tags)]
    lines = [Message("BATCH", (f"+{name}", MULTILINE, target), tags=tags)]
    for text, is_continued in group:
        line_tags = {"batch": name, **({MULTILINE_CONCAT: ""} if is_continued else {})}
        lines.append(Message(verb, (target, text), tags=line_tags))
    return [*lines, Message("BATCH", (f"-{name}",))]
