"""A copy of the ledger in memory, refreshed every second over one IRC connection.

Every second the client reads the facts since the newest one it has, with 30 s of overlap. That misses facts of other
servers: they arrive late, under the time of their origin. So the last hour is read again every minute, and everything
every hour; the latter also finds what the server has dropped. When a link is up again, everything is read at once,
because the facts of the other side arrive with their old times.
"""

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
"""Seconds between two reads of new facts."""
_OVERLAP, _MAX_DELAY = timedelta(seconds=30), timedelta(hours=1)
"""How old facts may be that a read of new facts, or of late facts, still finds."""
_REREAD_LATE, _REREAD_ALL = 60.0, 3600.0
"""Seconds between two reads of late facts, and of all facts."""
_MAX_FACTS = 100_000
_RETRY_LOGIN = 60.0
"""Seconds until a refused login is tried again."""
_UNREADABLE = "the ledger cannot be read; the log of the page says why"
_KINDS = tuple(kind for kind in FactKind if kind is not FactKind.RECEIPT)

Key = tuple[str, str, str]
OnProblem = Callable[[str], None]
"""Called with the reason why the page is not connected to its server; with an empty text once it is."""
OnChange = Callable[[frozenset[str]], None]


class LedgerClient:
    """A copy of the ledger's facts in memory.

    ``on_change`` is called with the kinds that have new facts. The client never gives up: a refused login is tried
    again every minute, because the page may run for months and the reason may go away. ``current_identity`` returns the
    login for each new try, as the token may have changed.
    """

    def __init__(
        self,
        address: Address,
        identity: ClientIdentity,
        on_change: OnChange | None = None,
        every: float = EVERY,
        *,
        on_problem: OnProblem | None = None,
        current_identity: Callable[[], ClientIdentity] | None = None,
        pause: float = _RETRY_LOGIN,
    ) -> None:
        self._identity_now = current_identity
        self._on_problem = on_problem
        self._pause = pause
        self._login_refused = asyncio.Event()
        self.irc = IRCTransport(address, identity, on_state=self._on_state, timing=Timing(longest_pause=5.0))
        self.on_change = on_change
        self.problem = "not connected yet"
        """Why the facts are not up to date; empty if they are."""
        self.is_refused = False
        """Whether the server refuses the page's own account."""
        self._every = every
        self.changes: Counter[str] = Counter()
        """Number of changes by kind; a cache is valid as long as the number of its kinds stays."""
        self._facts: dict[str, dict[Key, LedgerFact]] = {kind: {} for kind in _KINDS}
        self._newest: datetime | None = None
        self._read_at = self._all_read_at = -_REREAD_ALL
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start the background task that connects and reads the ledger; returns at once."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """End the background task and close the connection."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        await self.irc.stop("bye")

    def facts(self, kind: str = "*", nick: str = "*") -> Sequence[LedgerFact]:
        """Return the facts of a kind and nick (``*``: all) from memory, oldest first."""
        kinds = self._facts.values() if kind == "*" else [self._facts.get(kind, {})]
        matching = [
            fact for of_kind in kinds for fact in of_kind.values() if nick == "*" or fold(nick) == fold(fact.nick)
        ]
        return sorted(matching, key=lambda fact: fact.at)

    async def query(self, *query: str) -> list[LedgerFact]:
        """Send ``LEDGER GET <query>`` and return the facts in the server's answer, oldest first."""
        return await facts(self.irc, *query)

    def _on_state(self, state: ConnectionState, reason: str) -> None:
        if state is ConnectionState.CONNECTING:  # the reason was reported with the state before
            return
        self.is_refused = state is ConnectionState.HOPELESS
        if self.is_refused:
            self._login_refused.set()
        if state is not ConnectionState.CONNECTED:
            self.problem = reason or "not connected"
        if self._on_problem is not None and state is not ConnectionState.STOPPED:
            self._on_problem("" if state is ConnectionState.CONNECTED else self.problem)

    async def _run(self) -> None:
        await self._connect(self.irc.start)
        while True:
            if self._login_refused.is_set():
                await self._connect(self._restart)
            try:
                if self.irc.connected:
                    await self._read()
                    self.problem = ""
            except NotSent as error:
                self.problem = error.reason
            except Exception:  # a malformed fact of one agent or server must not end the updates of all others
                if self.problem != _UNREADABLE:
                    log.exception("the ledger cannot be read")
                self.problem = _UNREADABLE
            await asyncio.sleep(self._every)

    async def _connect(self, start: Callable[[], Awaitable[None]]) -> None:
        """Connect to the server by calling ``start``; return when the connection has begun.

        While the server refuses the page's own account, a new try follows after a pause.
        """
        while True:
            try:
                self._login_refused.clear()
                await start()
                return
            except Hopeless as refused:
                log.error("the server refuses the page's own account, next try in %g s: %s", self._pause, refused)
            await asyncio.sleep(self._pause)
            start = self._restart

    async def _restart(self) -> None:
        await self.irc.restart(self._identity_now() if self._identity_now is not None else None)

    async def _read(self) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._all_read_at >= _REREAD_ALL:
            rows = [fact for kind in _KINDS for fact in await all_facts(self.irc, kind)]
            self._read_at = self._all_read_at = now
            self._remove_missing(rows)
        elif now - self._read_at >= _REREAD_LATE:
            rows = await self._since(datetime.now(UTC) - _MAX_DELAY)
            self._read_at = now
        else:
            moment = datetime.now(UTC)
            since = min(self._newest or moment, moment) - _OVERLAP  # a clock elsewhere may be ahead
            rows = await self.query("*", "*", f"since={_iso(since)}", f"limit={MOST}")
            if len(rows) >= MOST:  # receipts crowd out the other kinds
                rows = await self._since(since)
        self._merge(rows)

    async def _since(self, since: datetime) -> list[LedgerFact]:
        return [fact for kind in _KINDS for fact in await all_facts(self.irc, kind, since)]

    def _merge(self, rows: list[LedgerFact]) -> None:
        changed = set()
        for fact in rows:
            key, of_kind = _key(fact), self._facts.get(fact.kind)
            if of_kind is None:
                continue
            old = of_kind.get(key)
            if old is None or (old.at <= fact.at and old != fact):
                of_kind[key] = fact
                changed.add(fact.kind)
                self._check_relink(old, fact)
            if self._newest is None or fact.at > self._newest:
                self._newest = fact.at
        self.changes.update(changed)
        if changed and self.on_change is not None:
            self.on_change(frozenset(changed))

    def _check_relink(self, old: LedgerFact | None, fact: LedgerFact) -> None:
        """Have all facts read again if ``fact`` says that a link is up which was down before.

        Facts from behind the link arrive late, with their old times. ``old``: the former version of the fact, None for
        a new one.
        """
        before, now = (each.value.get("state") if each is not None else LINKED for each in (old, fact))
        if fact.kind == FactKind.LINK and before != LINKED and now == LINKED:
            self._all_read_at = -_REREAD_ALL

    def _remove_missing(self, rows: list[LedgerFact]) -> None:
        """Remove from memory the facts that the server no longer has.

        ``rows``: all facts that it has now; if they are too many, the oldest are removed as well.
        """
        current = {_key(fact) for fact in sorted(rows, key=lambda fact: fact.at)[-_MAX_FACTS:]}
        for kind, of_kind in self._facts.items():
            gone = of_kind.keys() - current
            for key in gone:
                del of_kind[key]
            self.changes[kind] += bool(gone)


def _key(fact: LedgerFact) -> Key:
    return fold(fact.nick), fact.kind, fact.key


def _iso(time: datetime) -> str:
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
