"""Query the ledger of a server over IRC (``LEDGER GET``)."""

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from culture.protocol.message import Message as Line
from culture.protocol.names import fold
from culture.protocol.vocabulary import ClientTag, ExtensionVerb
from culture.transport import IRCTransport, NotSent

_UNKNOWN_VERB = "421"
_PER_LINE = 20
_TICK = timedelta(milliseconds=1)
MOST = 1_000
"""Number of facts in one answer of the server, at most."""
_WITHOUT_CLIENT = "Not connected"


@dataclass(frozen=True, slots=True)
class LedgerFact:
    """A fact that a nick has published about itself in the ledger.

    ``kind`` and ``key`` name the fact, ``value`` has its fields; ``server`` is the server of the nick.
    """

    nick: str
    kind: str
    key: str
    at: datetime
    server: str
    value: dict[str, Any]


async def facts(transport: IRCTransport, *query: str) -> list[LedgerFact]:
    """Send one ``LEDGER GET`` and return the facts in the server's answer, oldest first.

    ``query``: the parameters after GET. ``NotSent`` is raised if the server has no ledger or refuses.
    """
    lines = await transport.request(ExtensionVerb.LEDGER, "GET", *query)
    for line in lines:
        if line.verb == _UNKNOWN_VERB:
            raise NotSent("the server has no ledger", line.verb)
        if line.verb == "FAIL" or (line.verb.isdigit() and line.verb[0] in "45"):
            raise NotSent(line.params[-1], line.verb)
    return [fact for line in lines if (fact := _fact(line)) is not None][::-1]


async def all_facts(
    transport: IRCTransport, kind: str, since: datetime | None = None, nick: str = "*"
) -> list[LedgerFact]:
    """Return all facts of a kind, oldest first, requested from the server page by page.

    ``since``: only facts after this time. ``nick``: only facts of this nick, ``*`` for all. ``NotSent`` is raised if
    the server has no ledger or refuses.
    """
    collected: dict[tuple[str, str, str], LedgerFact] = {}
    after = [] if since is None else [f"since={since.isoformat()}"]
    before: list[str] = []
    while True:
        page = await facts(transport, kind, nick, *after, *before, f"limit={MOST}")
        new = [fact for fact in page if _identity(fact) not in collected]
        collected = {_identity(fact): fact for fact in new} | collected
        if len(page) < MOST:
            break
        # Times are sent in milliseconds: further facts of the same millisecond need one more request.
        before = [f"before={(page[0].at + (_TICK if new else timedelta())).isoformat()}"]
    if before and collected:  # facts updated in the meantime have moved to the front
        newest = max(fact.at for fact in collected.values())
        latest = await facts(transport, kind, nick, f"since={newest.isoformat()}", f"limit={MOST}")
        collected |= {_identity(fact): fact for fact in latest}
    return sorted(collected.values(), key=lambda fact: fact.at)


def _identity(fact: LedgerFact) -> tuple[str, str, str]:
    return fold(fact.nick), fact.kind, fact.key


def _fact(line: Line) -> LedgerFact | None:
    if line.verb != ExtensionVerb.LEDGER or len(line.params) < 5:
        return None
    nick, kind, key, at, server, *_ = line.params
    value = json.loads(line.tags.get(ClientTag.FACT.value, "{}"))
    return LedgerFact(nick, kind, key, datetime.fromisoformat(at), server, value)


async def online(transport: IRCTransport, nicks: list[str]) -> set[str]:
    """Return those of the nicks that have a connected client, in lower case by IRC's rules.

    An always-on account without a client counts as not connected.
    """
    present: set[str] = set()
    for start in range(0, len(nicks), _PER_LINE):
        for line in await transport.request("ISON", *nicks[start : start + _PER_LINE]):
            if line.verb == "303":
                present |= set(map(fold, line.params[-1].split()))
    return {nick for nick in present if not await _is_without_client(transport, nick)}


async def _is_without_client(transport: IRCTransport, nick: str) -> bool:
    lines = await transport.request("WHOIS", nick)
    return any(line.verb == "301" and line.params[-1] == _WITHOUT_CLIENT for line in lines)
