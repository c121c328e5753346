"""Reads and searches the server's history: CHATHISTORY, HISTORY SEARCH and SEMANTIC."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime

from culture.protocol.message import Message as Line
from culture.protocol.vocabulary import ExtensionVerb, Tag, UserClass
from culture.transport.batches import TARGETS, ReceivedBatch
from culture.transport.message_sender import check_target
from culture.transport.parse_messages import LOCAL
from culture.transport.requests import lines_of
from culture.transport.session import IrcSession
from culture.transport.types import Message, NoHistory, NotSent

CAP = "draft/chathistory"
_VERB = "CHATHISTORY"
_DEFAULT_PAGE = 100


def has_history(session: IrcSession) -> bool:
    """Whether the session has the capabilities that requests of history (CHATHISTORY) need."""
    return CAP in session.enabled and "batch" in session.enabled


def page_size(session: IrcSession) -> int:
    """Return the most messages that one CHATHISTORY request may ask this server for."""
    return session.view.features.number("CHATHISTORY", _DEFAULT_PAGE)


def by_time(time: datetime) -> str:
    """Return a time as CHATHISTORY commands name it: ``timestamp=<UTC time>``."""
    text = time.astimezone(UTC).isoformat(timespec="milliseconds")
    return f"timestamp={text.removesuffix('+00:00')}Z"


def by_id(msgid: str) -> str:
    """Return a message id as CHATHISTORY commands name it: ``msgid=<id>``.

    ``NotSent`` is raised for an id that this client made itself, since the server does not know it.
    """
    if msgid.startswith(LOCAL):
        raise NotSent(f"{msgid} is not an id of the server")
    return f"msgid={msgid}"


async def fetch_messages(
    session: IrcSession, target: str, after: str | None, before: str | None, limit: int, around: str | None = None
) -> list[Message]:
    """Return at most ``limit`` messages of the history of a channel or nick, oldest first.

    ``after``, ``before`` and ``around`` are references made by ``by_id`` or ``by_time``; without any of them the
    latest messages are returned. Raises ``NoHistory`` if the server has no history, ``NotSent`` if it refuses.
    """
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
    # Without labels, live messages of others may be among the items: only batches are history.
    batches = [item for item in items if isinstance(item, ReceivedBatch)]
    return list(session.reader.messages(batches))


async def fetch_targets(session: IrcSession, since: datetime, until: datetime) -> list[str]:
    """Return channels and nicks with messages between two times, as many as one page holds."""
    words = ("TARGETS", by_time(since), by_time(until), str(page_size(session)))
    return list(_target_names(await session.command(Line(_VERB, words))))


def _target_names(items: list[Line | ReceivedBatch]) -> Iterator[str]:
    for item in items:
        if isinstance(item, ReceivedBatch) and item.kind == TARGETS:
            for line in lines_of(item.items):
                if len(line.params) > 2 and line.params[0] == "TARGETS":
                    yield line.params[1]


async def search(session: IrcSession, channel: str, text: str, by_meaning: bool) -> list[Message]:
    """Return messages of a channel that match ``text``; ``NotSent`` if the server refuses.

    They contain all words of ``text``, oldest first; with ``by_meaning`` they are similar to it, best match first.
    """
    check_target(channel)
    words = ("SEMANTIC" if by_meaning else "SEARCH", channel, " ".join(text.split()))
    return parse_results(lines_of(await session.command(Line(ExtensionVerb.HISTORY.value, words))))


def parse_results(lines: Iterable[Line]) -> list[Message]:
    """Return the messages in the lines of a search answer.

    A line without an id continues the text of the message before it.
    """
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
    """Return the user class named by ``word``; unknown if there is no such class."""
    return UserClass(word) if word in set(UserClass) else UserClass.UNKNOWN
