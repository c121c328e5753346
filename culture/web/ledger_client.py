"""What the ledger says, kept up to date for all who look: one connection, of the page's own account, asks it."""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from culture.ledger_views.ledger import MOST, LedgerFact, all_facts, facts
from culture.ledger_views.links import LINKED
from culture.protocol.names import fold
from culture.protocol.vocabulary import FactKind
from culture.transport import Address, ClientIdentity, ConnectionState, Hopeless, IRCTransport, NotSent, Timing

log = logging.getLogger(__name__)

EVERY = 1.0
_OVERLAP, _LATE = timedelta(seconds=30), timedelta(hours=1)
"""Facts of other servers come late, and under the time of their origin."""
_AGAIN, _ANEW = 60.0, 3600.0
"""What may have come late is read again every minute, and everything every hour."""
_KEPT = 100_000
_REFUSED = 60.0
"""Seconds until a login that was refused is tried again."""
_UNREADABLE = "the ledger cannot be read; the log of the page says why"
_KINDS = tuple(kind for kind in FactKind if kind is not FactKind.RECEIPT)

Key = tuple[str, str, str]
OnProblem = Callable[[str], None]
"""Why the page is not connected to its server; empty once it is."""
OnChange = Callable[[frozenset[str]], None]


class LedgerClient:
    """The facts, by who says them, kind and key; ``on_change`` is told the kinds that have news.

    It never gives up: a page may run for months, and whoever refused its account, or was in the server's place, may be
    gone in a minute. ``identity_now`` is asked before each new start, as the token may be another by then.
    """

    def __init__(
        self,
        address: Address,
        identity: ClientIdentity,
        on_change: OnChange | None = None,
        every: float = EVERY,
        *,
        on_problem: OnProblem | None = None,
        identity_now: Callable[[], ClientIdentity] | None = None,
        pause: float = _REFUSED,
    ) -> None:
        self._identity_now = identity_now
        self._on_problem = on_problem
        self._pause = pause
        self._given_up = asyncio.Event()
        self.irc = IRCTransport(address, identity, on_state=self._stands, timing=Timing(longest_pause=5.0))
        self.on_change = on_change
        self.problem = "not connected yet"
        """Why nothing is known at present."""
        self.is_refused = False
        """Whether the page's own account is not let in."""
        self._every = every
        self.news: Counter[str] = Counter()
        """How often something was new of each kind."""
        self._facts: dict[str, dict[Key, LedgerFact]] = {kind: {} for kind in _KINDS}
        self._newest: datetime | None = None
        self._read_at = self._all_read_at = -_ANEW
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to ask; whether the server is there or not."""
        self._task = asyncio.create_task(self._keep())

    async def stop(self) -> None:
        """Ask no more."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        await self.irc.stop("bye")

    def facts(self, kind: str = "*", nick: str = "*") -> Sequence[LedgerFact]:
        """Those of a kind or all, of a nick or all, the oldest first."""
        kinds = self._facts.values() if kind == "*" else [self._facts.get(kind, {})]
        found = [fact for some in kinds for fact in some.values() if nick == "*" or fold(nick) == fold(fact.nick)]
        return sorted(found, key=lambda fact: fact.at)

    async def ask(self, *question: str) -> list[LedgerFact]:
        """What the ledger answers to this."""
        return await facts(self.irc, *question)

    def _stands(self, condition: ConnectionState, reason: str) -> None:
        if condition is ConnectionState.CONNECTING:  # why it is not connected, was said before
            return
        self.is_refused = condition is ConnectionState.HOPELESS
        if self.is_refused:
            self._given_up.set()
        if condition is not ConnectionState.CONNECTED:
            self.problem = reason or "not connected"
        if self._on_problem is not None and condition is not ConnectionState.STOPPED:
            self._on_problem("" if condition is ConnectionState.CONNECTED else self.problem)

    async def _keep(self) -> None:
        await self._come(self.irc.start)
        while True:
            if self._given_up.is_set():
                await self._come(self._restart)
            try:
                if self.irc.connected:
                    await self._read()
                    self.problem = ""
            except NotSent as error:
                self.problem = error.reason
            except Exception:  # what one agent or server says must not end the view of all others
                if self.problem != _UNREADABLE:
                    log.exception("the ledger cannot be read")
                self.problem = _UNREADABLE
            await asyncio.sleep(self._every)

    async def _come(self, start: Callable[[], Awaitable[None]]) -> None:
        """Be connected, however often the page's own account is refused before."""
        while True:
            try:
                self._given_up.clear()
                await start()
                return
            except Hopeless as refused:
                log.error("the page's own account is not let in, next try in %g s: %s", self._pause, refused)
            await asyncio.sleep(self._pause)
            start = self._restart

    async def _restart(self) -> None:
        await self.irc.restart(self._identity_now() if self._identity_now is not None else None)

    async def _read(self) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._all_read_at >= _ANEW:
            found = [fact for kind in _KINDS for fact in await all_facts(self.irc, kind)]
            self._read_at = self._all_read_at = now
            self._forget(found)
        elif now - self._read_at >= _AGAIN:
            found = await self._since(datetime.now(UTC) - _LATE)
            self._read_at = now
        else:
            moment = datetime.now(UTC)
            since = min(self._newest or moment, moment) - _OVERLAP  # a clock elsewhere may be ahead
            found = await self.ask("*", "*", f"since={_written(since)}", f"limit={MOST}")
            if len(found) >= MOST:  # receipts are many, and hide the rest
                found = await self._since(since)
        self._learn(found)

    async def _since(self, since: datetime) -> list[LedgerFact]:
        return [fact for kind in _KINDS for fact in await all_facts(self.irc, kind, since)]

    def _learn(self, found: list[LedgerFact]) -> None:
        changed = set()
        for fact in found:
            key, kept = _key(fact), self._facts.get(fact.kind)
            if kept is None:
                continue
            known = kept.get(key)
            if known is None or (known.at <= fact.at and known != fact):
                kept[key] = fact
                changed.add(fact.kind)
                self._heed(known, fact)
            if self._newest is None or fact.at > self._newest:
                self._newest = fact.at
        self.news.update(changed)
        if changed and self.on_change is not None:
            self.on_change(frozenset(changed))

    def _heed(self, known: LedgerFact | None, fact: LedgerFact) -> None:
        """When a link is back, what was said on its other side meanwhile comes with the time it had there."""
        before, now = (each.value.get("state") if each is not None else LINKED for each in (known, fact))
        if fact.kind == FactKind.LINK and before != LINKED and now == LINKED:
            self._all_read_at = -_ANEW

    def _forget(self, found: list[LedgerFact]) -> None:
        """What the server does not have any more, and what is too much."""
        there = {_key(fact) for fact in sorted(found, key=lambda fact: fact.at)[-_KEPT:]}
        for kind, kept in self._facts.items():
            gone = kept.keys() - there
            for key in gone:
                del kept[key]
            self.news[kind] += bool(gone)


def _key(fact: LedgerFact) -> Key:
    return fold(fact.nick), fact.kind, fact.key


def _written(time: datetime) -> str:
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
