"""What a daemon does for its agent, as the requests see it."""

from collections.abc import Sequence
from typing import Protocol, TypedDict


class Sent(TypedDict):
    """Where something was said, and its ids where the server tells them."""

    channel: str
    msgids: list[str]


ReadMessage = TypedDict(
    "ReadMessage",
    {"nick": str, "text": str, "timestamp": str, "msgid": str, "channel": str, "class": str},
)
"""One message; the timestamp is ISO 8601 in UTC, the class one of ``UserClass``."""


class Read(TypedDict):
    """The oldest unread messages, how many are still unread after them, and how many a person has to release."""

    messages: list[ReadMessage]
    remaining: int
    withheld: int


class Found(TypedDict):
    """A message that a search found."""

    nick: str
    text: str
    timestamp: str
    msgid: str
    channel: str


Answer = TypedDict(
    "Answer",
    {
        "outcome": str,
        "text": str | None,
        "by": str | None,
        "account": str | None,
        "class": str | None,
        "human_confirmed": bool,
        "msgid": str | None,
        "question": str | None,
        "action": str | None,
    },
)
"""How a question ended: ANSWERED, TIMED_OUT (no text), DENIED or ABORTED; or INTERROGATED: somebody asks back.

Or ASKED: the call waits no longer, and the answer comes as a prompt.
"""


class Usage(TypedDict):
    """What an agent has used in all, the present turn included; ``mark`` stands for these figures."""

    tokens_ever: int
    cost_usd_ever: float
    mark: str


class JoinedChannel(TypedDict):
    """A channel the agent is in, and how many are there."""

    channel: str
    members: int


Person = TypedDict("Person", {"nick": str, "modes": str, "account": str | None, "class": str, "away": str | None})
"""A member of a channel, or the one nick asked for; ``away`` is the text they left, None when they are here."""


class Errand(TypedDict):
    """What the agent was given to do, and how far that has come.

    ``outcome`` is ``waiting`` or ``working``; at the end ``done``, ``interrupted``, ``aborted`` or ``failed``.
    """

    key: str
    outcome: str
    text: str
    """The last text of its turn; where it failed, why."""
    tokens: int
    cost_usd: float
    context_pct: float | None
    session: str | None


class Hired(TypedDict):
    """Who was hired, and what the orchestrator said."""

    nick: str
    role: str
    text: str


class RequestFailed(Exception):
    """The request cannot be done; the text tells the agent why and what would help."""


class Desk(Protocol):
    """The daemon. RequestFailed is the way to say no; all but ``ask``, ``spawn_agent`` and ``prompt`` return soon."""

    @property
    def is_outside(self) -> bool:
        """Whether the agent is in a sandbox and the daemon is not: then it reads no files for it."""

    async def send(self, channel: str, text: str) -> Sent:
        """Say it in a channel or to a nick, at once."""

    async def read(self, channel: str, limit: int) -> Read:
        """The oldest messages not read yet, which are read then."""

    async def ask(self, channel: str, question: str, timeout: float | None, options: Sequence[str] = ()) -> Answer:
        """Post a question and wait. Without a timeout the trust rules' counts, else 300 s.

        Cancelled when the client that asked has gone; the question stays, and the same one takes the wait up again.
        """

    async def again(self, id: str, reply: str | None) -> Answer:
        """Wait on for a question, after a reply to whoever asked back."""

    async def questions(self, closed: bool) -> list[dict[str, object]]:
        """The open questions, the oldest first, and where wanted those that were closed last."""

    async def search(self, channel: str, text: str, by_meaning: bool, limit: int) -> list[Found]:
        """The newest messages with all the words of a text, oldest first; or the nearest in meaning, the best first."""

    async def join(self, channel: str) -> None:
        """Enter a channel and keep what is said there."""

    async def part(self, channel: str) -> None:
        """Leave a channel."""

    async def channels(self) -> list[JoinedChannel]:
        """The channels it is in."""

    async def who(self, target: str) -> list[Person]:
        """The members of a channel, or one nick."""

    async def spawn_agent(self, role: str, text: str, timeout: float | None) -> Hired:
        """Ask the team's orchestrator for another agent, and wait for its answer."""

    async def compact(self) -> None:
        """Have the agent shorten its context when its turn is over."""

    async def clear(self) -> None:
        """Have the agent forget its conversation when its turn is over."""

    async def activity(self, content: list[dict[str, object]], hear: bool) -> list[str]:
        """Show the supervisor what an agent does that the daemon has not started; its whispers, if they are wanted."""

    async def prompt(self, key: str, text: str | None, place: str | None, wait: bool, timeout: float | None) -> Errand:
        """Give the agent something to do, once under each key; where wanted, wait until it is over."""

    async def status(self) -> dict[str, object]:
        """What the agent is doing; nothing of it appears in a channel."""

    async def usage(self, since: str | None, timeout: float | None) -> Usage:
        """What it has used, as soon as that is no longer what ``since`` marks."""

    async def pause(self, soon: bool = False) -> None:
        """Feed no more prompts; what comes is kept. ``soon``: a turn ends with the tool call that is running."""

    async def resume(self, why: str = "") -> None:
        """Go on after a pause; ``why`` is told to the agent."""

    async def shutdown(self) -> None:
        """Begin to stop, and return at once: the answer goes out before the socket closes."""
