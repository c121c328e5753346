"""Asking a server of ours what was said about something (HISTORY SEARCH, HISTORY SEMANTIC)."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from culture.protocol.message import Message as Line
from culture.protocol.vocabulary import Tag, UserClass, Verb
from culture.transport.base import Message
from culture.transport.requests import lines_of
from culture.transport.sending import check_target
from culture.transport.session import Session

_WORDS, _MEANING = "SEARCH", "SEMANTIC"


async def found(session: Session, channel: str, text: str, by_meaning: bool) -> list[Message]:
    """What was said in a channel with all these words, oldest first; or what is nearest in meaning, best first."""
    check_target(channel)
    action = _MEANING if by_meaning else _WORDS
    return said(lines_of(await session.command(Line(Verb.HISTORY.value, (action, channel, " ".join(text.split()))))))


def said(lines: Iterable[Line]) -> list[Message]:
    """The messages of an answer; a line without an id goes on with the one before it."""
    messages: list[Message] = []
    for line in lines:
        if line.verb != Verb.HISTORY.value or len(line.params) < 4:
            continue
        channel, sender, time, text = line.params[:4]
        msgid = line.tags.get("msgid", "")
        last = messages[-1] if messages else None
        if last is not None and last.msgid and not msgid and last.sender == sender:
            messages[-1] = replace(last, text=f"{last.text}\n{text}")
        else:
            at, kind = datetime.fromisoformat(time), _kind(line.tags.get(Tag.CLASS.value, ""))
            messages.append(Message(channel, sender, text, at, msgid, kind=kind, missed=True))
    return messages


def _kind(word: str) -> UserClass:
    """A server that does not tell the class vouches for nobody."""
    return UserClass(word) if word in set(UserClass) else UserClass.UNKNOWN
