"""IRCv3 batches: collects the lines of a batch as they arrive; joins multiline text."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from culture.protocol.caps import MULTILINE, MULTILINE_CONCAT
from culture.protocol.message import NO_TAGS, Message, ProtocolError
from culture.protocol.vocabulary import BatchType as Kind

LABELED = "labeled-response"
CHATHISTORY = "chathistory"
TARGETS = "draft/chathistory-targets"
MISSED = Kind.MISSED.value
HISTORY = (CHATHISTORY, MISSED)
"""Batches whose messages are from the past."""

_COLLECTED = frozenset({LABELED, MULTILINE, CHATHISTORY, TARGETS, MISSED})
_MAX_OPEN = 64
_MAX_BYTES = 32 << 20


@dataclass(slots=True)
class ReceivedBatch:
    """A complete IRCv3 batch: its lines and the batches inside it, in order of arrival."""

    kind: str
    params: tuple[str, ...]
    source: str = ""
    tags: Mapping[str, str] = field(default_factory=lambda: NO_TAGS)
    items: list["Message | ReceivedBatch"] = field(default_factory=list)

    def lines(self) -> Iterator[Message]:
        """Iterate over all lines of this batch; lines of an inner batch come where that batch began."""
        for item in self.items:
            if isinstance(item, ReceivedBatch):
                yield from item.lines()
            else:
                yield item


Item = Message | ReceivedBatch


class MultilineLimits:
    """The most bytes and lines a multiline message may have, parsed from the capability's value."""

    def __init__(self, value: str) -> None:
        limits = dict(word.partition("=")[::2] for word in value.split(","))
        self.bytes = _parse_limit(limits.get("max-bytes", ""), 4096)
        self.lines = _parse_limit(limits.get("max-lines", ""), 100)


def _parse_limit(word: str, default: int) -> int:
    return int(word) if word.isascii() and word.isdigit() and word.strip("0") else default


class ReceivedBatches:
    """Collects the lines of the batches that are open on one connection.

    Only batches whose lines mean something together are collected (labels, multiline, history). Lines of a batch
    that only marks a group, such as a netsplit, are passed on one by one.
    """

    def __init__(self) -> None:
        self._open: dict[str, ReceivedBatch | None] = {}
        self._inner: set[str] = set()
        self._size = 0

    def take(self, line: Message) -> Iterator[Item]:
        """Process one line; yield the line itself, the batch that it completes, or nothing.

        Nothing is yielded while a collected batch is open. ``ProtocolError`` is raised if too many batches are open
        or if they grow too large.
        """
        if line.verb == "BATCH" and line.params:
            yield from self._batch(line)
            return
        batch = self._open.get(line.tags.get("batch", ""))
        if batch is None:
            yield line
        else:
            self._grow(len(line.params[-1]) + 64 * (1 + len(line.tags)) if line.params else 64)
            batch.items.append(line)

    def _batch(self, line: Message) -> Iterator[Item]:
        sign, name = line.params[0][:1], line.params[0][1:]
        if sign == "+" and len(line.params) > 1:
            self._begin(name, line)
        elif sign == "-" and name in self._open:
            batch = self._open.pop(name)
            inner = name in self._inner
            self._inner.discard(name)
            if not self._open:
                self._size = 0
            if batch is not None and not inner:
                yield batch

    def _begin(self, name: str, line: Message) -> None:
        self._grow(64)
        if len(self._open) >= _MAX_OPEN:
            raise ProtocolError("too many batches at once")
        kind = line.params[1]
        outer = self._open.get(line.tags.get("batch", ""))
        if kind not in _COLLECTED and outer is None:
            self._open[name] = None
            return
        batch = self._open[name] = ReceivedBatch(kind, line.params[2:], line.source, line.tags)
        if outer is not None:
            self._inner.add(name)
            outer.items.append(batch)

    def _grow(self, size: int) -> None:
        self._size += size
        if self._size > _MAX_BYTES:
            raise ProtocolError("a batch without end")


def text_of(batch: ReceivedBatch) -> str:
    """Return the text of a multiline batch: its lines joined by newlines.

    A line with the tag ``multiline-concat`` continues the one before without a newline.
    """
    text = ""
    for number, line in enumerate(batch.lines()):
        piece = line.params[-1] if len(line.params) > 1 else ""
        text += piece if number == 0 or MULTILINE_CONCAT in line.tags else f"\n{piece}"
    return text
