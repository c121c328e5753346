"""Looking for what was said, in one room or in all: by its words, or by what it means."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from culture.protocol.message import Message as Line
from culture.protocol.vocabulary import ExtensionVerb
from culture.transport import IRCTransport, Message, NotSent
from culture.transport.requests import refusal

_AT_ONCE = 8
_MOST_ROOMS = 60
MOST = 200

WORDS, MEANING = "SEARCH", "SEMANTIC"


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A message that was found."""

    room: str
    sender: str
    at: datetime
    text: str
    id: str


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What there is, and what stands in the way of more."""

    hits: Sequence[SearchHit]
    problem: str = ""


async def find(irc: IRCTransport, rooms: Sequence[str], text: str, how: str) -> SearchResult:
    """Look through these rooms. By words the newest come first, by meaning the best of each room in turn."""
    turn = asyncio.Semaphore(_AT_ONCE)

    async def look(room: str) -> list[SearchHit] | NotSent:
        async with turn:
            try:
                return await _look(irc, room, text, how)
            except NotSent as refused:
                return refused

    answers = await asyncio.gather(*(look(room) for room in rooms[:_MOST_ROOMS]))
    lists = [answer for answer in answers if not isinstance(answer, NotSent)]
    problems = [answer.reason for answer in answers if isinstance(answer, NotSent)]
    if how == MEANING:
        longest = max(map(len, lists), default=0)
        hits = [each[place] for place in range(longest) for each in lists if place < len(each)]
    else:
        hits = sorted((hit for each in lists for hit in each), key=lambda hit: hit.at, reverse=True)
    return SearchResult(hits[:MOST], problems[0] if problems else "")


async def recent(irc: IRCTransport, room: str, count: int) -> list[Message]:
    """The last messages of a room that one is not in, where anybody may be; ``NotSent`` where not."""
    lines = await irc.request(ExtensionVerb.HISTORY, "RECENT", room, str(count))
    refused = refusal(lines)
    if refused is not None:
        raise refused
    return [Message(hit.room, hit.sender, hit.text, hit.at, hit.id) for hit in _hits(lines)]


async def _look(irc: IRCTransport, room: str, text: str, how: str) -> list[SearchHit]:
    lines = await irc.request(ExtensionVerb.HISTORY, how, room, text)
    refused = refusal(lines)
    if refused is not None:
        raise refused
    return _hits(lines)


def _hits(lines: Sequence[Line]) -> list[SearchHit]:
    """A message of several lines goes on in lines without an id, with the same nick and time."""
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
