"""The skill object: stores facts of this server and of the mesh, and answers LEDGER."""

import asyncio
import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from operator import methodcaller
from typing import Any

from culture.config.skills import LedgerConfig as Wanted
from culture.lib.ratelimit import FixedRate, KeyedTokenBuckets
from culture.protocol.message import Message
from culture.protocol.names import fold
from culture.protocol.numerics import Numeric
from culture.protocol.vocabulary import ClientTag, ExtensionVerb, FactKind, UserClass
from culture.server.commands import Later, command
from culture.server.context import Context
from culture.server.core.encode import wire
from culture.server.core.ids import MICROSECONDS
from culture.server.core.render import iso_time
from culture.server.errors import Failed, Refused
from culture.server.events import Noted
from culture.server.skill import Host, Skill, hook, repeatable
from culture.skills.keeping import Keeping
from culture.skills.ledger.approvals import ApprovalVerdict, corrected, verdict_on
from culture.skills.ledger.facts import (
    LONGEST,
    Fact,
    FactQuery,
    dumped,
    fact_of,
    is_approval,
    is_key,
    is_value,
    verdict_fields,
    with_verdict,
    without_verdict,
)
from culture.skills.ledger.initial_sync import InitialSync
from culture.skills.ledger.receipts import ReceiptRelay
from culture.skills.ledger.store import LedgerStore

_FILE = "ledger.db"
_MAX_WAITING = 20_000  # facts that may wait for the disk
_LINK_PATIENCE = 2.0  # seconds for federation to store the same facts, before operators are warned
_PATIENCE = 5.0  # seconds for the disk, before a client is told that it is busy
_HOURLY = 3600.0
_PUT_RATE = FixedRate(burst=600, rate=10)
_MAX_BUCKETS = 10_000
_READERS = (UserClass.HUMAN, UserClass.AGENT, UserClass.BOT)
_NO_AGENT = "Only agents publish facts, about themselves: log in with an account of class agent"
_NO_READER = "Only people and agents of the mesh may read the ledger: log in"
_PUBLISHED = frozenset(FactKind) - {FactKind.RECEIPT, FactKind.LINK}
MOST_ROWS = 1_000
_USAGE = "LEDGER GET kind [nick] [key=…] [since=…] [before=…] [limit=…]"


class Ledger(Skill):
    """Stores the facts of all agents: state, questions, spend, alerts, tasks, receipts."""

    name = "ledger"
    Settings = Wanted
    settings: Wanted

    def __init__(self, host: Host, settings: Wanted) -> None:
        super().__init__(host, settings)
        open_store = partial(LedgerStore, host.folder / _FILE, runtime=host.runtime)
        self._keeping = Keeping[Fact, LedgerStore](
            "facts",
            _MAX_WAITING,
            open_store,
            host.tell_operators,
            host.failed,
            before=partial(_await_links, host),
            runtime=host.runtime,
        )
        host.keeps(self._keeping.mark)
        self._initial_sync = InitialSync(host, self._keeping)
        self._receipts = ReceiptRelay(host, self._confirm_receipts)
        self._buckets = KeyedTokenBuckets(_PUT_RATE, _MAX_BUCKETS)

    def places(self) -> Iterable[object]:
        """Return the objects whose methods are hooks and commands: skill, receipts, initial sync."""
        return (self, self._receipts, self._initial_sync)

    async def start(self) -> None:
        """Open the ledger's file within five seconds, else keep trying in the background."""
        self._keeping.start()
        with suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE):
                await self._keeping.opened.wait()
        self.host.start(self._initial_sync.begin())
        self.host.start(self._prune())

    async def stop(self) -> None:
        """Write the waiting facts to the ledger's file and close it."""
        await self._keeping.stop()

    @hook(Noted)
    @repeatable
    def noted(self, event: Noted) -> None:
        """Store a fact of this or another server; a repeated fact changes nothing."""
        fact = fact_of(event)
        if fact is not None:
            self._keeping.add(fact)

    @command(ExtensionVerb.LEDGER, params=2)
    def ledger(self, ctx: Context, message: Message) -> Later:
        """``LEDGER GET kind [nick] [key=…] [since=…] [before=…] [limit=…]``: facts of the mesh, the newest first.

        LEDGER PUT kind key, with the fact in its tag, is for agents: a fact about themselves.
        """
        what, *words = message.params
        match what.upper():
            case "PUT" if len(words) == 2:
                return self._put(ctx, words[0], words[1], message.tags.get(ClientTag.FACT.value, ""))
            case "GET":
                return self._get(ctx, parse_query(words))
        raise Failed(ExtensionVerb.LEDGER, "INVALID_PARAMS", what, text="LEDGER PUT kind key, or LEDGER GET kind")

    def _put(self, ctx: Context, kind: str, key: str, value: str) -> Later:
        if not _may_publish(ctx):
            raise Refused(Numeric.ERR_NOPRIVILEGES, text=_NO_AGENT)
        if kind not in _PUBLISHED:
            text = f"A fact is one of {', '.join(sorted(_PUBLISHED))}"
            raise Failed(ExtensionVerb.LEDGER, "INVALID_KIND", kind, text=text)
        if not is_key(key):
            raise Failed(ExtensionVerb.LEDGER, "INVALID_KEY", key, text="A key is a word of up to 120 characters")
        if not is_value(value):
            text = f"A fact is an object in JSON of at most {LONGEST} bytes, in the tag {ClientTag.FACT.value}"
            raise Failed(ExtensionVerb.LEDGER, "INVALID_FACT", kind, key, text=text)
        self._check_rate(ctx)
        value = without_verdict(kind, value)  # only the server sets the verdict of an approval
        fields = json.loads(value)
        if kind == FactKind.QUESTION and is_approval(fields):
            look_up = verdict_on(self.host, ctx.user, fields)
            return Later(look_up, lambda verdict: self._publish_approval(ctx, key, fields, verdict))
        ctx.publish(Noted(ctx.stamp(), ctx.user.source, kind, key, value))
        return self._confirm(ctx, kind, key)

    def _publish_approval(self, ctx: Context, key: str, fields: Mapping[str, Any], verdict: ApprovalVerdict) -> Later:
        """Publish a closed question with the server's verdict, and send the verdict to the agent.

        ``key`` and ``fields``: those of the question's fact. ``Failed`` if the fact is not valid.
        """
        verified, why, _ = verdict
        value = dumped(corrected(fields, verdict))
        if not is_value(value):
            text = f"A fact is an object in JSON of at most {LONGEST} bytes"
            raise Failed(ExtensionVerb.LEDGER, "INVALID_FACT", FactKind.QUESTION, key, text=text)
        ctx.publish(Noted(ctx.stamp(), ctx.user.source, FactKind.QUESTION, key, value, verified, why))
        return self._confirm(ctx, FactKind.QUESTION, key, verdict_fields(verified, why))

    def _confirm(self, ctx: Context, kind: str, key: str, verdict: Mapping[str, Any] | None = None) -> Later:
        """Send the client LEDGEREND with the verdict, once the published fact is on disk.

        ``kind`` and ``key``: those of the fact.
        """
        with_tags = bool(verdict) and "message-tags" in ctx.session.caps.enabled
        tags = {ClientTag.FACT.value: dumped(verdict or {})} if with_tags else {}
        line = Message(ExtensionVerb.LEDGEREND, (kind, key, "Kept"), self.host.name, tags)
        return Later(self._settled(ExtensionVerb.LEDGER), lambda _: ctx.session.send(wire(line)))

    def _check_rate(self, ctx: Context) -> None:
        now, nick = self.host.monotonic(), fold(ctx.nick)
        if not self._buckets.take(nick, now):
            raise Failed(
                ExtensionVerb.LEDGER, "RATE_LIMITED", text="So many facts at once are not taken: wait a little"
            )

    def _get(self, ctx: Context, asked: FactQuery) -> Later:
        if ctx.user.kind not in _READERS or (ctx.network.knows_people and ctx.user.account is None):
            raise Refused(Numeric.ERR_NOPRIVILEGES, text=_NO_READER)
        if "message-tags" not in ctx.session.caps.enabled:
            raise Failed(
                ExtensionVerb.LEDGER, "NEED_TAGS", text="What facts say is in a tag: ask for message-tags first"
            )
        return Later(self._find(asked), lambda found: ctx.pull(reply_lines(self.host.name, asked, found)))

    async def _find(self, asked: FactQuery) -> list[Fact]:
        """Return the facts that match a query, after waiting until all earlier ones are on disk.

        ``Failed`` if the ledger cannot be read.
        """
        await self._settled(ExtensionVerb.LEDGER)
        try:
            return await self._keeping.use(lambda store: store.find(asked))
        except (sqlite3.Error, OSError) as error:
            raise _unavailable(ExtensionVerb.LEDGER, str(error)) from error

    async def _settled(self, verb: str) -> None:
        if not await self._keeping.settled(_PATIENCE):
            raise _unavailable(verb, "the disk is busy or full")

    def _confirm_receipts(self, forget: Callable[[], None]) -> Later:
        """Finish a RECEIPT line once its receipts are on disk.

        ``forget`` is called if they cannot be stored; then the client gets an error.
        """
        return Later(self._settled_or(forget), lambda _: None)

    async def _settled_or(self, forget: Callable[[], None]) -> None:
        try:
            await self._settled(ExtensionVerb.RECEIPT)
        except Failed:
            forget()
            raise

    async def _prune(self) -> None:
        while True:
            await asyncio.sleep(_HOURLY)
            before = round((self.host.now() - self.settings.age) * MICROSECONDS)
            limits = {"before": before, "most": self.settings.keep, "most_each": self.settings.keep_each}
            try:
                await self._keeping.use(methodcaller("prune", **limits))
            except (sqlite3.Error, OSError) as error:
                self.host.tell_operators(f"old facts stay for another hour: {error}")


def _await_links(host: Host) -> None:
    """Wait until federation has stored the facts, too; ``OSError`` if that takes too long.

    A fact that is confirmed to its agent must reach linked servers.
    """
    if not host.await_first(_LINK_PATIENCE):
        raise OSError("the log of the links is not on disk yet")


def _may_publish(ctx: Context) -> bool:
    """Return whether the client is an agent, which alone may publish facts.

    If accounts exist, its account decides, not its user mode +B.
    """
    return ctx.network.is_agent(ctx.user)


def _unavailable(verb: str, why: str) -> Failed:
    return Failed(verb, "UNAVAILABLE", text=f"The ledger is not available: {why}")


def parse_query(words: Sequence[str]) -> FactQuery:
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
    if name == "since" and (since := _moment(value)) is not None:
        return query._replace(since=since)
    if name == "before" and (before := _moment(value)) is not None:
        return query._replace(before=before)
    if name == "limit" and value.isascii() and value.isdigit() and int(value[:5]) > 0:
        return query._replace(most=min(int(value[:5]), MOST_ROWS))
    raise Failed(ExtensionVerb.LEDGER, "INVALID_PARAMS", word, text=_USAGE)


def _moment(text: str) -> int | None:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    try:
        return round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * MICROSECONDS)
    except (OverflowError, OSError):
        return None


def reply_lines(server: str, query: FactQuery, facts: Sequence[Fact]) -> Iterator[Message]:
    """Yield the reply to a query: one line per fact, newest first, then an end line."""
    for fact in facts[: query.most]:
        params = (fact.nick, fact.kind, fact.key, iso_time(fact.at / MICROSECONDS), fact.origin)
        yield Message(ExtensionVerb.LEDGER, params, server, {ClientTag.FACT.value: with_verdict(fact)})
    is_all = len(facts) <= query.most
    end = "End of facts" if is_all else f"The newest {query.most}; there are more"
    yield Message(ExtensionVerb.LEDGEREND, (query.kind or "*", "*", end), server)
