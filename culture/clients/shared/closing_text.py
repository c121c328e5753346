"""The closing text of a turn: all that the agent said since it last worked, unless it has spoken there by itself.

An agent that says "On it", works, and then ends its turn with the result has not told the result yet: what it sent
before its last work is no reason to keep its closing text back. What it sent after that work is the result itself, and
the closing text only repeats it ("I have told them"). So both, the texts and whether it spoke, count from its last
work: from the last use of a tool that does more than talk on IRC. A question (``irc_ask``) is no word of the agent on
its task, so that asking keeps nothing back either.
"""

from collections.abc import Mapping, Sequence

from culture.clients.shared.loops import is_work
from culture.protocol.names import fold

NO_REPLY = "[no reply]"
"""What an agent ends its turn with that has nothing to say."""


class ClosingText:
    """Collects what an agent says and does in one turn."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._works: set[object] = set()  # the ids of the calls that are work
        self._spoken_in: set[str] = set()
        self._spoken_since_work: set[str] = set()

    def begin(self) -> None:
        """Forget the turn before: a new one begins."""
        self._texts.clear()
        self._works.clear()
        self._spoken_in.clear()
        self._spoken_since_work.clear()

    def take(self, blocks: Sequence[Mapping[str, object]]) -> None:
        """Take note of the blocks of one message of the agent."""
        for block in blocks:
            match block:
                case {"type": "text", "text": str(text)} if text.strip():
                    self._texts.append(text)
                case {"type": "tool_use"} if is_work(block):
                    self._works.add(block.get("id"))
                    self._texts.clear()
                    self._spoken_since_work.clear()
                case {"type": "tool_result", "tool_use_id": call} if call in self._works:
                    # Called beside a message that was sent, it has ended after that.
                    self._spoken_since_work.clear()

    def speak(self, place: str) -> None:
        """The agent has sent a message there by itself."""
        self._spoken_in.add(fold(place))
        self._spoken_since_work.add(fold(place))

    def has_spoken(self, place: str) -> bool:
        """Whether the agent has sent something there that its closing text would only repeat or precede."""
        since = self._spoken_since_work if self._texts else self._spoken_in
        return fold(place) in since

    def text(self, last: str) -> str:
        """The text to post at the end of the turn; empty when there is none, or the agent wants silence.

        ``last`` is the last text by the runner's own account; it is what there is where the turn ended with work.
        ``[no reply]`` as the last text silences those before it.
        """
        said = [text.strip() for text in _with(self._texts, last) or [last] if text.strip()]
        return "" if not said or said[-1].casefold() == NO_REPLY else "\n\n".join(said)


def _with(texts: Sequence[str], last: str) -> list[str]:
    """The texts, with the pieces of the last one put together where a program gave it in pieces."""
    for first in range(len(texts)):
        if "".join(texts[first:]) == last:
            return [*texts[:first], last]
    return list(texts)
