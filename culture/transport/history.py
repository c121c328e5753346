"""Asking for what was said before (IRCv3 draft/chathistory)."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime

from culture.protocol.message import Message as Line
from culture.protocol.vocabulary import ExtensionVerb, Tag, UserClass
from culture.transport.batches import TARGETS, ReceivedBatch
from culture.transport.parse_messages import LOCAL
from culture.transport.requests import lines_of
from culture.transport.sending import check_target
from culture.transport.session import IrcSession
from culture.transport.types import Message, NoHistory, NotSent

CAP = "draft/chathistory"
_VERB = "CHATHISTORY"
_PAGE = 100


def has_history(session: IrcSession) -> bool:
    """Whether the server can be asked."""
    return CAP in session.enabled and "batch" in session.enabled


def page_size(session: IrcSession) -> int:
    """How many messages one answer may have."""
    return session.view.features.number("CHATHISTORY", _PAGE)


def by_time(time: datetime) -> str:
    """A reference to a time."""
    text = time.astimezone(UTC).isoformat(timespec="milliseconds")
    return f"timestamp={text.removesuffix('+00:00')}Z"


def by_id(msgid: str) -> str:
    """A reference to a message."""
    if msgid.startswith(LOCAL):
        raise NotSent(f"{msgid} is not an id of the server")
    return f"msgid={msgid}"


async def between(
    session: IrcSession, target: str, after: str | None, before: str | None, limit: int, around: str | None = None
) -> list[Message]:
    """What was said there between two references or around one, the oldest first; without any, the latest."""
    if not has_history(session):
        raise NoHistory("this server keeps no history that can be asked for")
    check_target(target)
    words: tuple[str, ...] = ("LATEST", target, "*")
    if around is not None:
        words = ("AROUND", target, around)
    elif after is not None and before is not None:
        words = ("BETWEEN", target, after, before)
    elif after is not None:
        words = ("AFTER", target, after)
    elif before is not None:
        words = ("BEFORE", target, before)
    count = str(max(1, min(limit, page_size(session))))
    items = await session.command(Line(_VERB, (*words, count)))
    # Where a batch is not labelled, what others say may have come in between.
    batches = [item for item in items if isinstance(item, ReceivedBatch)]
    return list(session.reader.messages(batches))


async def talks(session: IrcSession, since: datetime, until: datetime) -> list[str]:
    """The channels and nicks where something was said in this time, or all that fit into an answer."""
    words = ("TARGETS", by_time(since), by_time(until), str(page_size(session)))
    return list(_names(await session.command(Line(_VERB, words))))


def _names(items: list[Line | ReceivedBatch]) -> Iterator[str]:
    for item in items:
        if isinstance(item, ReceivedBatch) and item.kind == TARGETS:
            for line in lines_of(item.items):
                if len(line.params) > 2 and line.params[0] == "TARGETS":
                    yield line.params[1]


_WORDS, _MEANING = "SEARCH", "SEMANTIC"


async def found(session: IrcSession, channel: str, text: str, by_meaning: bool) -> list[Message]:
    """What was said in a channel with all these words, oldest first; or what is nearest in meaning, best first."""
    check_target(channel)
    action = _MEANING if by_meaning else _WORDS
    return said(
        lines_of(await session.command(Line(ExtensionVerb.HISTORY.value, (action, channel, " ".join(text.split())))))
    )


def said(lines: Iterable[Line]) -> list[Message]:
    """The messages of an answer; a line without an id goes on with the one before it."""
    messages: list[Message] = []
    for line in lines:
        if line.verb != ExtensionVerb.HISTORY.value or len(line.params) < 4:
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
