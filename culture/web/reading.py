"""How far a person has read, and with whom they have talked, as the server keeps it for all their devices."""

import asyncio
from datetime import UTC, datetime, timedelta

from culture.protocol.message import Message as Line
from culture.protocol.names import fold, is_channel
from culture.transport import IRCTransport, Message, NoHistory, NotSent
from culture.transport.history import by_time
from culture.transport.requests import refusal
from culture.web.talks import Talk, Talks

MARKREAD = "MARKREAD"
_CAP = "draft/read-marker"
_LOOKED_AT = 40
"""So many rooms are counted at the start; the others once something is said there."""
_TALKED = timedelta(days=60)
_TIMESTAMP = "timestamp="


def calls(message: Message, nick: str) -> bool:
    """Whether something is said to this person: by name, to all in a room, or in private."""
    if message.own or message.notice:
        return False
    return message.private or message.calls_all or fold(nick) in map(fold, message.mentions)


async def take_stock(irc: IRCTransport, talks: Talks) -> None:
    """Learn what is unread where, and with whom this person has talked."""
    await irc.request("CAP", "REQ", _CAP)
    for name in await _talked_with(irc):
        talks.of(name, private=True)
    found = [*talks.rooms(irc.channels), *talks.conversations()][:_LOOKED_AT]
    await asyncio.gather(*(_count(irc, talk) for talk in found))


async def _talked_with(irc: IRCTransport) -> list[str]:
    now = datetime.now(UTC)
    since, until = by_time(now - _TALKED), by_time(now + timedelta(days=1))
    lines = await irc.request("CHATHISTORY", "TARGETS", since, until, "100")
    named = [line.params[1] for line in lines if line.verb == "CHATHISTORY" and len(line.params) > 2]
    return [name for name in named if not is_channel(name)]


async def _count(irc: IRCTransport, talk: Talk) -> None:
    for line in await irc.request(MARKREAD, talk.name):
        note(talk, line)
    if talk.read_to is None:
        # Whoever has never read anything here need not be told of all that was ever said.
        talk.read_to = datetime.now(UTC)
        return
    try:
        said = await irc.read(talk.name, talk.read_to)
    except (NoHistory, NotSent):
        return
    for message in said:
        talk.heard(message, calls(message, irc.nick))


def note(talk: Talk, line: Line) -> None:
    """Take what MARKREAD says."""
    if line.verb == MARKREAD and len(line.params) > 1 and line.params[1].startswith(_TIMESTAMP):
        talk.read(datetime.fromisoformat(line.params[1].removeprefix(_TIMESTAMP)))


async def mark_read(irc: IRCTransport, talk: Talk, to: datetime) -> None:
    """It is read up to then, on all devices."""
    talk.read(to)
    lines = await irc.request(MARKREAD, talk.name, by_time(to))
    refused = refusal(lines)
    if refused is not None:
        raise refused
