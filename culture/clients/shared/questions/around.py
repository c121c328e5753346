"""What questions need of the daemon around them."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from culture.clients.shared.inbox import Mail
from culture.clients.shared.once import Once
from culture.clients.shared.questions.model import Question
from culture.config.agents import AlertEvent
from culture.protocol.mentions import mentions
from culture.protocol.names import fold, is_channel
from culture.protocol.vocabulary import ClientTag, UserClass
from culture.transport import IRCTransport, NotSent


class Notify(Protocol):
    """Says something to somebody, as soon as it can be said."""

    def __call__(self, place: str, text: str, *, notice: bool = False) -> None:
        """Say it."""


class Fire(Protocol):
    """Tells people of an event."""

    def __call__(
        self,
        event: AlertEvent,
        text: str,
        *,
        place: str | None = None,
        question: str = "",
        options: Sequence[str] = (),
    ) -> None:
        """Tell it; ``place`` is where to read more, ``question`` its id with what one may answer."""


@dataclass(frozen=True, slots=True)
class Around:
    """The daemon, as its questions see it."""

    transport: IRCTransport
    once: Once
    say: Notify
    fire: Fire
    changed: Callable[[], None]
    task: Callable[[], str]
    silence: Callable[[str, Question, bool], None]
    """Does what silence means (pause, abort), for a question, and whether a call waited for it."""
    next_aside: Callable[[int, str], Mail | None]
    """The oldest unread message about a question from this place, which is read then."""
    read: Callable[[str], None]
    """The agent has been told of this message, unread as it is."""
    reopen: Callable[[str, int, str], None]
    """The agent has not been told of this message about a question after all, and reads it with this remark."""
    news: Callable[[str, str, str, int], object]
    """Keeps for the agent, under a key, what nobody said in a place about a question of this number."""

    whisper: Callable[[str], None] = lambda text: None
    """Tells an agent that is at work at once."""
    tags: Callable[[], Mapping[str, str]] = dict
    """What caused what the agent says now."""
    aborted: Callable[[str], None] = lambda task: None
    """The answer to a question aborts the task that asked."""

    def post(self, place: str, text: str, answers: str = "") -> Awaitable[Sequence[str]]:
        """Say it in a place, as a reply to the message it ``answers``; the ids of the lines."""
        reply = {ClientTag.REPLY.value: answers} if answers else {}
        return self.transport.send_privmsg(place, text, {**reply, **self.tags()})

    def post_once(self, key: str, place: str, text: str) -> Awaitable[Sequence[str]]:
        """The same for what may have been said before under this key."""
        return self.once.say(place, text, {**self.tags(), ClientTag.ONCE.value: key})

    def notify(self, nick: str, text: str) -> None:
        """Tell somebody, without waking anybody."""
        self.say(nick, text, notice=True)

    async def agents(self, place: str, asker: str) -> tuple[str, ...]:
        """The agents in a channel, or the one in private, less the asker: the electorate of a question.

        Only class agent counts, which the server alone gives: a bot is one by its own word. Where the asker has an
        account only those with one count.
        """
        try:
            found = await self.transport.send_who(place)
        except NotSent:
            found = self.transport.members(place) if is_channel(place) else []
        agents = [each for each in found if each.kind is UserClass.AGENT]
        own = next((each.account for each in agents if fold(each.nick) == fold(asker)), None)
        others = (each for each in agents if fold(each.nick) != fold(asker))
        return tuple(each.nick for each in others if own is None or each.account is not None)

    def called(self, place: str, text: str) -> set[str]:
        """The folded nicks of whom a question is for: who it was said to in private, or whom it calls."""
        if not is_channel(place):
            return {fold(place)}
        return set(map(fold, mentions(text, [member.nick for member in self.transport.members(place)])))

    def is_operator(self, place: str, nick: str) -> bool:
        """Whether somebody runs the channel."""
        return any(fold(nick) == fold(each) for each in self.transport.view.operators(place))
