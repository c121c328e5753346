"""Matches answers to commands: by label, or by a PING sent behind each command.

With ``labeled-response`` a command carries a label and the server's answer carries the same one. Without, a PING with
a unique token follows each command. A server processes commands in order, so every reply before the PONG with that
token, and everything that we did ourselves, belongs to the oldest command whose PONG has not come. Live messages of
others in between are told apart by their source.
"""

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
    """The items of the answer to one command, and a future that is done when all have come.

    ``key`` is the label or the PING token by which the answer is recognized.
    """

    def __init__(self, key: str) -> None:
        self.key = key
        self.items: list[Item] = []
        self.complete: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def wait(self, seconds: float) -> list[Item]:
        """Return the complete answer; ``NotSent`` if it takes more than ``seconds`` or is cut off."""
        try:
            async with asyncio.timeout(seconds):
                await self.complete
        except TimeoutError:
            raise NotSent("the server did not answer", uncertain=True) from None
        return self.items


class Requests:
    """The commands of one connection whose answers are not complete yet."""

    def __init__(self, labels: bool) -> None:
        self.labels = labels
        self._numbers = count(1)
        self._labelled: dict[str, CommandAnswer] = {}
        self._queue: deque[CommandAnswer] = deque()

    def begin(self, messages: list[Message]) -> tuple[list[Message], CommandAnswer]:
        """Return the lines to send for a command, with a label or PING added, and its answer object.

        ``messages``: the lines of the command.
        """
        number = next(self._numbers)
        if self.labels:
            first = messages[0]
            answer = self._labelled[f"c{number}"] = CommandAnswer(f"c{number}")
            return [first._replace(tags={**first.tags, "label": answer.key}), *messages[1:]], answer
        answer = CommandAnswer(f"{_BARRIER}{number}")
        self._queue.append(answer)
        return [*messages, Message("PING", (answer.key,))], answer

    def take(self, item: Item, own: bool) -> None:
        """Add a received item to the answer of the command it belongs to, if it belongs to any.

        ``own``: the item reports an action of ours, such as our own JOIN.
        """
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
        """Forget a labelled command whose answer is no longer needed."""
        self._labelled.pop(answer.key, None)

    def fail(self, reason: str) -> None:
        """End all pending commands with ``NotSent``, as the connection has ended for ``reason``."""
        for answer in (*self._labelled.values(), *self._queue):
            if not answer.complete.done():
                answer.complete.set_exception(NotSent(reason, uncertain=True))
                answer.complete.exception()  # marked as retrieved: perhaps nobody waits for it
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
    """Iterate over all lines of a command's answer, including those inside batches."""
    for item in items:
        if isinstance(item, ReceivedBatch):
            yield from item.lines()
        else:
            yield item


def refusal(items: Iterable[Item]) -> NotSent | None:
    """Return the first error line (FAIL or numeric) of an answer as ``NotSent``, or None."""
    for line in lines_of(items):
        verb = line.verb
        if verb == "FAIL":
            return NotSent(
                line.params[-1] if line.params else "refused", line.params[1] if len(line.params) > 1 else ""
            )
        if verb.isdigit() and ("400" <= verb <= "599" or verb in _REFUSALS or verb in _MAY_WAIT):
            return NotSent(line.params[-1] if line.params else "refused", verb)
    return None
