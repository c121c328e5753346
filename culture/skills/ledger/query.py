"""What a client asks of the ledger, and the lines that answer it."""

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
    """``kind|* [nick|*] [key=…] [since=…] [before=…] [limit=…]``."""
    kind, *rest = words
    asked = FactQuery(None if kind == "*" else kind)
    if rest and "=" not in rest[0]:
        nick, *rest = rest
        asked = asked._replace(nick=None if nick == "*" else nick)
    for word in rest:
        asked = _narrowed(asked, word)
    return asked


def _narrowed(asked: FactQuery, word: str) -> FactQuery:
    name, _, value = word.partition("=")
    if name == "key" and value:
        return asked._replace(key=value)
    if name == "since" and (since := _time(value)) is not None:
        return asked._replace(since=since)
    if name == "before" and (before := _time(value)) is not None:
        return asked._replace(before=before)
    if name == "limit" and value.isascii() and value.isdigit() and int(value[:5]) > 0:
        return asked._replace(most=min(int(value[:5]), MOST_ROWS))
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


def rows(server: str, asked: FactQuery, found: Sequence[Fact]) -> Iterator[Message]:
    """A line for each fact, the newest first, and the one that ends them."""
    for fact in found[: asked.most]:
        words = (fact.nick, fact.kind, fact.key, iso_time(fact.at / MICROSECONDS), fact.origin)
        yield Message(ExtensionVerb.LEDGER, words, server, {ClientTag.FACT.value: with_verdict(fact)})
    is_all = len(found) <= asked.most
    end = "End of facts" if is_all else f"The newest {asked.most}; there are more"
    yield Message(ExtensionVerb.LEDGEREND, (asked.kind or "*", "*", end), server)
