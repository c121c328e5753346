"""Fetch what a digest needs from a server: facts since a moment, and the readable messages."""

from dataclasses import replace
from datetime import datetime

from culture.ledger_views.ledger import LedgerFact, facts
from culture.protocol.names import fold, is_channel
from culture.protocol.vocabulary import ExtensionVerb, FactKind
from culture.transport import IRCTransport, Message, NotSent
from culture.transport.history import by_time

_MOST = 1_000
_LIMIT = f"limit={_MOST}"
_CURRENT = (FactKind.STATE, FactKind.QUESTION, FactKind.LINK)
"""Facts that hold until they are replaced, however old."""
_EVENTS = (FactKind.TASK, FactKind.SPEND, FactKind.ALERT)
_HIDDEN = frozenset("iks")
_PAGES = 100
"""Number of pages of history read per channel or conversation, at most."""


async def facts_since(transport: IRCTransport, since: datetime, agent: str = "") -> list[LedgerFact]:
    """Return the facts that a digest needs: current states, and events since a time.

    The server is asked for them. ``agent``: nick of the only agent whose events are needed, empty for all. If one
    answer of the server cannot hold the events, they are requested for each agent.
    """
    current = [fact for kind in _CURRENT for fact in await facts(transport, kind, "*", _LIMIT)]
    nicks = {fold(fact.nick): fact.nick for fact in current if fact.kind == FactKind.STATE}
    when = f"since={since.isoformat()}"
    events: list[LedgerFact] = []
    for kind in _EVENTS:
        rows = await facts(transport, kind, agent or "*", when, _LIMIT)
        if len(rows) >= _MOST and not agent:
            rows = [fact for nick in nicks.values() for fact in await facts(transport, kind, nick, when, _LIMIT)]
        events += rows
    return current + events


async def messages_since(
    transport: IRCTransport, since: datetime, until: datetime, *, in_public: bool = False
) -> list[Message]:
    """Return the messages since a time that the user of the connection can read on the server.

    They are those in channels and private conversations; the latter are found if they have a message before ``until``.
    ``in_public``: read only channels that everybody may join.
    """
    places = {fold(name): name for name in await transport.list_channels()}
    if in_public:
        places = {key: name for key, name in places.items() if await _is_public(transport, name)}
    else:
        places |= {fold(name): name for name in await _conversations(transport, since, until)}
    messages: list[Message] = []
    for place in places.values():
        try:
            messages += await _messages_in(transport, place, since)
        except NotSent as refusal:
            if refusal.uncertain:
                raise
    return messages


async def _conversations(transport: IRCTransport, since: datetime, until: datetime) -> list[str]:
    """Return the names of channels and private conversations with messages between two times."""
    lines = await transport.request("CHATHISTORY", "TARGETS", by_time(since), by_time(until), "100")
    rows = [line.params for line in lines if line.verb == "CHATHISTORY" and len(line.params) > 2]
    return [name for word, name, *_ in rows if word == "TARGETS"]


async def _is_public(transport: IRCTransport, channel: str) -> bool:
    """Whether everybody may join a channel: it is not invite-only, keyed or secret."""
    for line in await transport.request("MODE", channel):
        if line.verb == "324" and len(line.params) > 2:
            return not _HIDDEN & set(line.params[2])
    return False


async def _messages_in(transport: IRCTransport, place: str, since: datetime) -> list[Message]:
    if is_channel(place) and fold(place) not in map(fold, transport.channels):
        return await _recent(transport, place)
    messages: list[Message] = []
    page = await transport.read(place, since)
    for _ in range(_PAGES):
        messages += page
        if not page:
            break
        page = await transport.history(place, after=page[-1].msgid, limit=_MOST)
    return messages


async def _recent(transport: IRCTransport, channel: str) -> list[Message]:
    """Return the last messages of a public channel that the user of the connection is not in."""
    messages: list[Message] = []
    for line in await transport.request(ExtensionVerb.HISTORY, "RECENT", channel, str(_MOST)):
        if line.verb != ExtensionVerb.HISTORY or len(line.params) < 4:
            continue
        _, nick, at, text = line.params
        if "msgid" in line.tags:
            messages.append(Message(channel, nick, text, datetime.fromisoformat(at), line.tags["msgid"], missed=True))
        elif messages:
            messages[-1] = replace(messages[-1], text=f"{messages[-1].text}\n{text}")
    return messages
