"""Search the history over IRC, in one room or in several: by words or by meaning."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from culture.protocol.message import Message as Line
from culture.protocol.vocabulary import ExtensionVerb
from culture.transport import IRCTransport, Message, NotSent
from culture.transport.requests import refusal

_MAX_CONCURRENT = 8
_MAX_ROOMS = 60
MAX_HITS = 200

WORDS, MEANING = "SEARCH", "SEMANTIC"


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A message that a search in the history has found."""

    room: str
    sender: str
    at: datetime
    text: str
    id: str


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The messages that a search found, and the first error if a room could not be searched."""

    hits: Sequence[SearchHit]
    problem: str = ""


async def search_rooms(irc: IRCTransport, rooms: Sequence[str], text: str, how: str) -> SearchResult:
    """Search the history of rooms for ``text``.

    ``how``: ``SEARCH`` for words (newest first), or ``SEMANTIC`` for meaning (the best hit of each room in turn).
    """
    semaphore = asyncio.Semaphore(_MAX_CONCURRENT)

    async def search(room: str) -> list[SearchHit] | NotSent:
        async with semaphore:
            try:
                return await _search(irc, room, text, how)
            except NotSent as refused:
                return refused

    answers = await asyncio.gather(*(search(room) for room in rooms[:_MAX_ROOMS]))
    lists = [answer for answer in answers if not isinstance(answer, NotSent)]
    problems = [answer.reason for answer in answers if isinstance(answer, NotSent)]
    if how == MEANING:
        longest = max(map(len, lists), default=0)
        hits = [each[place] for place in range(longest) for each in lists if place < len(each)]
    else:
        hits = sorted((hit for each in lists for hit in each), key=lambda hit: hit.at, reverse=True)
    return SearchResult(hits[:MAX_HITS], problems[0] if problems else "")


async def recent(irc: IRCTransport, room: str, count: int) -> list[Message]:
    """Return the last ``count`` messages of a public room that the person is not in.

    ``NotSent`` if the room is not public.
    """
    lines = await irc.request(ExtensionVerb.HISTORY, "RECENT", room, str(count))
    error = refusal(lines)
    if error is not None:
        raise error
    return [Message(hit.room, hit.sender, hit.text, hit.at, hit.id) for hit in _hits(lines)]


async def _search(irc: IRCTransport, room: str, text: str, how: str) -> list[SearchHit]:
    lines = await irc.request(ExtensionVerb.HISTORY, how, room, text)
    error = refusal(lines)
    if error is not None:
        raise error
    return _hits(lines)


def _hits(lines: Sequence[Line]) -> list[SearchHit]:
    """Return the messages in the lines of the server's reply to a search.

    A line without msgid continues the message of the line before (same nick and time).
    """
    hits: list[SearchHit] = []
    for line in lines:
        if line.verb != ExtensionVerb.HISTORY or len(line.params) < 4:
            continue
        room, nick, at, text = line.params[:4]
        msgid, time = line.tags.get("msgid", ""), datetime.fromisoformat(at)
        if not msgid and hits and (hits[-1].sender, hits[-1].at) == (nick, time):
            hits[-1] = replace(hits[-1], text=f"{hits[-1].text}\n{text}")
        else:
            hits.append(SearchHit(room, nick, time, text, msgid))
    return hits
