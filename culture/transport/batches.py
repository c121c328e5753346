"""Lines that belong together (IRCv3 batch), put together as they come."""

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
"""What is in these happened before."""

_HELD = frozenset({LABELED, MULTILINE, CHATHISTORY, TARGETS, MISSED})
_OPEN = 64
_SIZE = 32 << 20


@dataclass(slots=True)
class ReceivedBatch:
    """Lines under one name, and batches among them."""

    kind: str
    params: tuple[str, ...]
    source: str = ""
    tags: Mapping[str, str] = field(default_factory=lambda: NO_TAGS)
    items: list["Message | ReceivedBatch"] = field(default_factory=list)

    def lines(self) -> Iterator[Message]:
        """Every line, those of inner batches in their place."""
        for item in self.items:
            if isinstance(item, ReceivedBatch):
                yield from item.lines()
            else:
                yield item


Item = Message | ReceivedBatch


class ReceivedBatches:
    """The open batches of one connection. What only marks a group, such as a netsplit, is passed on line by line."""

    def __init__(self) -> None:
        self._open: dict[str, ReceivedBatch | None] = {}
        self._inner: set[str] = set()
        self._size = 0

    def take(self, line: Message) -> Iterator[Item]:
        """What this line makes complete: itself, a batch, or nothing yet."""
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
        if len(self._open) >= _OPEN:
            raise ProtocolError("too many batches at once")
        kind = line.params[1]
        outer = self._open.get(line.tags.get("batch", ""))
        if kind not in _HELD and outer is None:
            self._open[name] = None
            return
        batch = self._open[name] = ReceivedBatch(kind, line.params[2:], line.source, line.tags)
        if outer is not None:
            self._inner.add(name)
            outer.items.append(batch)

    def _grow(self, size: int) -> None:
        self._size += size
        if self._size > _SIZE:
            raise ProtocolError("a batch without end")


def text_of(batch: ReceivedBatch) -> str:
    """The text that the lines of a multiline batch make together."""
    text = ""
    for number, line in enumerate(batch.lines()):
        said = line.params[-1] if len(line.params) > 1 else ""
        text += said if number == 0 or MULTILINE_CONCAT in line.tags else f"\n{said}"
    return text
