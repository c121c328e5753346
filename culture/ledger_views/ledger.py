"""Reading the ledger of the mesh."""

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
"""So many facts a server tells at once."""
_WITHOUT_CLIENT = "Not connected"


@dataclass(frozen=True, slots=True)
class LedgerFact:
    """What somebody said of themselves, when and on which server."""

    nick: str
    kind: str
    key: str
    at: datetime
    server: str
    value: dict[str, Any]


async def facts(transport: IRCTransport, *question: str) -> list[LedgerFact]:
    """What the ledger answers, the oldest first; NotSent where there is none, or one may not read it."""
    lines = await transport.request(ExtensionVerb.LEDGER, "GET", *question)
    for line in lines:
        if line.verb == _UNKNOWN_VERB:
            raise NotSent("the server has no ledger", line.verb)
        if line.verb == "FAIL" or (line.verb.isdigit() and line.verb[0] in "45"):
            raise NotSent(line.params[-1], line.verb)
    return [fact for line in lines if (fact := _fact(line)) is not None][::-1]


async def all_facts(
    transport: IRCTransport, kind: str, since: datetime | None = None, nick: str = "*"
) -> list[LedgerFact]:
    """All facts of a kind, the oldest first, in as many answers as it takes; NotSent as with ``facts``."""
    found: dict[tuple[str, str, str], LedgerFact] = {}
    begun = [] if since is None else [f"since={since.isoformat()}"]
    until: list[str] = []
    while True:
        page = await facts(transport, kind, nick, *begun, *until, f"limit={MOST}")
        new = [fact for fact in page if _place(fact) not in found]
        found = {_place(fact): fact for fact in new} | found
        if len(page) < MOST:
            break
        # The times are told in milliseconds: what else there is of the last one is asked for once more.
        until = [f"before={(page[0].at + (_TICK if new else timedelta())).isoformat()}"]
    if until and found:  # what was said anew meanwhile has moved to the front
        newest = max(fact.at for fact in found.values())
        latest = await facts(transport, kind, nick, f"since={newest.isoformat()}", f"limit={MOST}")
        found |= {_place(fact): fact for fact in latest}
    return sorted(found.values(), key=lambda fact: fact.at)


def _place(fact: LedgerFact) -> tuple[str, str, str]:
    return fold(fact.nick), fact.kind, fact.key


def _fact(line: Line) -> LedgerFact | None:
    if line.verb != ExtensionVerb.LEDGER or len(line.params) < 5:
        return None
    nick, kind, key, at, server, *_ = line.params
    value = json.loads(line.tags.get(ClientTag.FACT.value, "{}"))
    return LedgerFact(nick, kind, key, datetime.fromisoformat(at), server, value)


async def online(transport: IRCTransport, nicks: list[str]) -> set[str]:
    """Those of the nicks, folded, who are on the mesh at present with a client: an account stays without one."""
    found: set[str] = set()
    for start in range(0, len(nicks), _PER_LINE):
        for line in await transport.request("ISON", *nicks[start : start + _PER_LINE]):
            if line.verb == "303":
                found |= set(map(fold, line.params[-1].split()))
    return {nick for nick in found if not await _is_without_client(transport, nick)}


async def _is_without_client(transport: IRCTransport, nick: str) -> bool:
    lines = await transport.request("WHOIS", nick)
    return any(line.verb == "301" and line.params[-1] == _WITHOUT_CLIENT for line in lines)
