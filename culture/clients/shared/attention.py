"""Whether a message is for this agent, and whether it is a control word for its daemon."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from culture.config.agents import Attention
from culture.protocol.names import fold, name_part
from culture.protocol.vocabulary import ControlWord, UserClass
from culture.transport import Message

_RESUME = re.compile(rf"{ControlWord.RESUME.value}(?::|\s+because\b)\s*(?P<reason>\S.*)", re.IGNORECASE | re.DOTALL)


def is_addressed(message: Message, nicks: Iterable[str], may_call_all: Callable[[str], bool]) -> bool:
    """Whether a message calls one of these nicks of the agent. A NOTICE and the agent's own words call nobody."""
    ours = set(map(fold, nicks))
    if message.own or message.notice or fold(message.sender) in ours:
        return False
    if message.private or not ours.isdisjoint(map(fold, message.mentions)):
        return True
    return message.calls_all and (message.kind is UserClass.HUMAN or may_call_all(message.sender))


def is_overheard(message: Message, nicks: Iterable[str], attention: Attention) -> bool:
    """Whether a message that does not mention the agent is for it, in a room of which it takes every message."""
    is_own = message.own or fold(message.sender) in map(fold, nicks)
    return attention == "all" and not (message.private or message.notice or is_own)


def is_stale(message: Message, now: datetime, limit: float) -> bool:
    """Whether it is too old to start a turn."""
    return now - message.timestamp > timedelta(seconds=limit)


@dataclass(frozen=True, slots=True)
class Command:
    """A control word, and behind ``go on`` the nick of the sender whose messages it releases."""

    word: ControlWord
    sender: str = ""
    reason: str = ""
    """What stands behind ``resume:`` or ``resume because``."""


def command(
    message: Message, nick: str, holds: Callable[[str], bool] = lambda sender: False, *, stopped: bool = False
) -> Command | None:
    """The control word that is the whole text behind the call, said by a person; None when it is none.

    ``go on NICK`` is one where something of this sender is held, ``resume: REASON`` where the agent is ``stopped``;
    else it may be the beginning of a sentence.
    """
    if message.kind is not UserClass.HUMAN:
        return None
    said = without_call(message.text, nick)
    if said is None:
        return None
    words = said.split()
    try:
        return Command(ControlWord(" ".join(words).lower()))
    except ValueError:
        if stopped and (found := _RESUME.fullmatch(said)) is not None:
            return Command(ControlWord.RESUME, reason=found["reason"])
        sender = words[-1].lstrip("@") if words else ""
        is_release = " ".join(words[:-1]).lower() == ControlWord.GO_ON.value and holds(sender)
        return Command(ControlWord.GO_ON, sender) if is_release else None


def without_call(text: str, nick: str) -> str | None:
    """The text behind ``@nick``, ``@name`` or ``nick:`` at its beginning; None when it does not begin so."""
    names = "|".join(re.escape(name) for name in (nick, name_part(nick)) if name)
    found = re.match(rf"\s*(?:@(?:{names})[:,]?|{re.escape(nick)}[:,])(?:\s+|$)", text, re.IGNORECASE)
    return text[found.end() :].strip() if found else None
