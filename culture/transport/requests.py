"""Commands and their answers: by label where the server has labels, else by what comes before a PONG."""

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import count

from culture.protocol.message import Message
from culture.transport.batches import LABELED, Item, ReceivedBatch
from culture.transport.types import NotSent

_MAY_WAIT = ("263",)
_REFUSALS = ("716", "734", "902", "904", "905", "906", "908")
_BARRIER = "barrier"


class CommandAnswer:
    """What the server says to one command, once it has said it."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.items: list[Item] = []
        self.complete: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def wait(self, seconds: float) -> list[Item]:
        """The answer; ``NotSent`` when the connection ends or nothing comes."""
        try:
            async with asyncio.timeout(seconds):
                await self.complete
        except TimeoutError:
            raise NotSent("the server did not answer", uncertain=True) from None
        return self.items


class Requests:
    """The commands of one connection that are not answered yet."""

    def __init__(self, labels: bool) -> None:
        self.labels = labels
        self._numbers = count(1)
        self._labelled: dict[str, CommandAnswer] = {}
        self._queue: deque[CommandAnswer] = deque()

    def begin(self, message: Message) -> tuple[list[Message], CommandAnswer]:
        """The lines to send for a command, and its answer to come."""
        return self.begin_all([message])

    def begin_all(self, messages: list[Message]) -> tuple[list[Message], CommandAnswer]:
        """The same for lines that have one answer, such as a batch: the first of them is the one that is labelled."""
        number = next(self._numbers)
        if self.labels:
            first = messages[0]
            answer = self._labelled[f"c{number}"] = CommandAnswer(f"c{number}")
            return [first._replace(tags={**first.tags, "label": answer.key}), *messages[1:]], answer
        answer = CommandAnswer(f"{_BARRIER}{number}")
        self._queue.append(answer)
        return [*messages, Message("PING", (answer.key,))], answer

    def take(self, item: Item, own: bool) -> None:
        """Something came; ``own`` says that it was done by ourselves."""
        label = item.tags.get("label")
        if label is not None:
            self._take_labelled(label, item)
        elif self._queue:
            head = self._queue[0]
            if isinstance(item, Message) and item.verb == "PONG" and item.params[-1:] == (head.key,):
                self._queue.popleft()
                _complete(head)
            elif own or _is_reply(item):
                head.items.append(item)

    def _take_labelled(self, label: str, item: Item) -> None:
        answer = self._labelled.pop(label, None)
        if answer is None:
            return
        if isinstance(item, ReceivedBatch) and item.kind == LABELED:
            answer.items += item.items
        elif isinstance(item, ReceivedBatch) or item.verb != "ACK":
            answer.items.append(item)
        _complete(answer)

    def drop(self, answer: CommandAnswer) -> None:
        """Nobody waits for this one any more."""
        self._labelled.pop(answer.key, None)

    def fail(self, reason: str) -> None:
        """The connection is gone."""
        for answer in (*self._labelled.values(), *self._queue):
            if not answer.complete.done():
                answer.complete.set_exception(NotSent(reason, uncertain=True))
                answer.complete.exception()  # perhaps nobody waits for it any more
        self._labelled.clear()
        self._queue.clear()


def _complete(answer: CommandAnswer) -> None:
    if not answer.complete.done():
        answer.complete.set_result(None)


def _is_reply(item: Item) -> bool:
    return (
        isinstance(item, ReceivedBatch) or item.verb.isdigit() or item.verb in ("FAIL", "WARN", "NOTE", "CHATHISTORY")
    )


def lines_of(items: Iterable[Item]) -> Iterator[Message]:
    """All lines of an answer."""
    for item in items:
        if isinstance(item, ReceivedBatch):
            yield from item.lines()
        else:
            yield item


def refusal(items: Iterable[Item]) -> NotSent | None:
    """The first line of an answer that says no."""
    for line in lines_of(items):
        verb = line.verb
        if verb == "FAIL":
            return NotSent(
                line.params[-1] if line.params else "refused", line.params[1] if len(line.params) > 1 else ""
            )
        if verb.isdigit() and ("400" <= verb <= "599" or verb in _REFUSALS or verb in _MAY_WAIT):
            return NotSent(line.params[-1] if line.params else "refused", verb)
    return None
