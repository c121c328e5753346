"""Asking a server for what a digest is made of: facts since a moment, and what was said where one may read."""

from dataclasses import replace
from datetime import datetime

from culture.ledger_views.ledger import LedgerFact, facts
from culture.protocol.names import fold, is_channel
from culture.protocol.vocabulary import ExtensionVerb, FactKind
from culture.transport import IRCTransport, Message, NotSent
from culture.transport.history import by_time

_MOST = 1_000
_LIMIT = f"limit={_MOST}"
_STANDING = (FactKind.STATE, FactKind.QUESTION, FactKind.LINK)
"""What holds until something else is said, however long ago it was."""
_PASSING = (FactKind.TASK, FactKind.SPEND, FactKind.ALERT)
_HIDDEN = frozenset("iks")
_PAGES = 100
"""So many answers of the history are read of one place."""


async def facts_since(transport: IRCTransport, since: datetime, agent: str = "") -> list[LedgerFact]:
    """All that a digest needs of the ledger; what is too much for one answer is asked for agent by agent."""
    standing = [fact for kind in _STANDING for fact in await facts(transport, kind, "*", _LIMIT)]
    nicks = {fold(fact.nick): fact.nick for fact in standing if fact.kind == FactKind.STATE}
    when = f"since={since.isoformat()}"
    passing: list[LedgerFact] = []
    for kind in _PASSING:
        found = await facts(transport, kind, agent or "*", when, _LIMIT)
        if len(found) >= _MOST and not agent:
            found = [fact for nick in nicks.values() for fact in await facts(transport, kind, nick, when, _LIMIT)]
        passing += found
    return standing + passing


async def said_since(
    transport: IRCTransport, since: datetime, until: datetime, *, in_public: bool = False
) -> list[Message]:
    """What was said in the channels one may read and to oneself, or in public alone."""
    places = {fold(name): name for name in await transport.list_channels()}
    if in_public:
        places = {key: name for key, name in places.items() if await _is_public(transport, name)}
    else:
        places |= {fold(name): name for name in await _talks(transport, since, until)}
    found: list[Message] = []
    for place in places.values():
        try:
            found += await _said_in(transport, place, since)
        except NotSent as refusal:
            if refusal.uncertain:
                raise
    return found


async def _talks(transport: IRCTransport, since: datetime, until: datetime) -> list[str]:
    """Where something was said that one may read, private talks included."""
    lines = await transport.request("CHATHISTORY", "TARGETS", by_time(since), by_time(until), "100")
    rows = [line.params for line in lines if line.verb == "CHATHISTORY" and len(line.params) > 2]
    return [name for word, name, *_ in rows if word == "TARGETS"]


async def _is_public(transport: IRCTransport, channel: str) -> bool:
    """Whether everybody may be there."""
    for line in await transport.request("MODE", channel):
        if line.verb == "324" and len(line.params) > 2:
            return not _HIDDEN & set(line.params[2])
    return False


async def _said_in(transport: IRCTransport, place: str, since: datetime) -> list[Message]:
    if is_channel(place) and fold(place) not in map(fold, transport.channels):
        return await _recent(transport, place)
    found: list[Message] = []
    page = await transport.read(place, since)
    for _ in range(_PAGES):
        found += page
        if not page:
            break
        page = await transport.history(place, after=page[-1].msgid, limit=_MOST)
    return found


async def _recent(transport: IRCTransport, channel: str) -> list[Message]:
    """The last that was said in a channel that one is not in, which everybody may read."""
    found: list[Message] = []
    for line in await transport.request(ExtensionVerb.HISTORY, "RECENT", channel, str(_MOST)):
        if line.verb != ExtensionVerb.HISTORY or len(line.params) < 4:
            continue
        _, nick, at, text = line.params
        if "msgid" in line.tags:
            found.append(Message(channel, nick, text, datetime.fromisoformat(at), line.tags["msgid"], missed=True))
        elif found:
            found[-1] = replace(found[-1], text=f"{found[-1].text}\n{text}")
    return found
