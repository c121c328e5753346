"""Parse ``LEDGER GET``, and format its answer."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from culture.protocol.message import Message
from culture.protocol.vocabulary import ClientTag, ExtensionVerb
from culture.server.core.ids import MICROSECONDS
from culture.server.core.render import iso_time
from culture.server.errors import Failed
from culture.skills.ledger.facts import Fact, FactQuery, with_verdict

MOST_ROWS = 1_000
_USAGE = "LEDGER GET kind [nick] [key=…] [since=…] [before=…] [limit=…]"


def read(words: Sequence[str]) -> FactQuery:
    """Return the query in ``kind|* [nick|*] [key=…] [since=…] [before=…] [limit=…]``.

    ``words``: the parameters of LEDGER GET. Raises ``Failed`` if one is wrong.
    """
    kind, *rest = words
    query = FactQuery(None if kind == "*" else kind)
    if rest and "=" not in rest[0]:
        nick, *rest = rest
        query = query._replace(nick=None if nick == "*" else nick)
    for word in rest:
        query = _with_option(query, word)
    return query


def _with_option(query: FactQuery, word: str) -> FactQuery:
    name, _, value = word.partition("=")
    if name == "key" and value:
        return query._replace(key=value)
    if name == "since" and (since := _time(value)) is not None:
        return query._replace(since=since)
    if name == "before" and (before := _time(value)) is not None:
        return query._replace(before=before)
    if name == "limit" and value.isascii() and value.isdigit() and int(value[:5]) > 0:
        return query._replace(most=min(int(value[:5]), MOST_ROWS))
    raise Failed(ExtensionVerb.LEDGER, "INVALID_PARAMS", word, text=_USAGE)


def _time(text: str) -> int | None:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    try:
        return round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * MICROSECONDS)
    except (OverflowError, OSError):
        return None


def rows(server: str, query: FactQuery, facts: Sequence[Fact]) -> Iterator[Message]:
    """Yield the reply to a query: one line per fact, newest first, then an end line."""
    for fact in facts[: query.most]:
        params = (fact.nick, fact.kind, fact.key, iso_time(fact.at / MICROSECONDS), fact.origin)
        yield Message(ExtensionVerb.LEDGER, params, server, {ClientTag.FACT.value: with_verdict(fact)})
    is_all = len(facts) <= query.most
    end = "End of facts" if is_all else f"The newest {query.most}; there are more"
    yield Message(ExtensionVerb.LEDGEREND, (query.kind or "*", "*", end), server)
