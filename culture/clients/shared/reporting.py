"""Tells the server what becomes of messages, and the facts that every view of the mesh reads."""

import asyncio
import json
import logging
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from culture.clients.shared.agentfacts import AgentFacts
from culture.clients.shared.budget import reset
from culture.clients.shared.records import Records
from culture.clients.shared.reports import Report, Reports
from culture.protocol.message import Message as Line
from culture.protocol.vocabulary import ClientTag, ExtensionVerb, FactKind
from culture.runtime import REAL, Runtime
from culture.transport import IRCTransport, NotSent

log = logging.getLogger(__name__)

STATE_KEY = "now"
STOPPED = "stopped"
_UNKNOWN_VERB = "421"
_NO_PRIVILEGES = "481"
_FOR_NOW = frozenset({"UNAVAILABLE", "RATE_LIMITED"})
_NOT_KNOWN = "UNKNOWN_MSGID"
_AGAIN = 5.0
_SOON = 1.0
_TRIES = 60
_GOODBYE = 2.0  # seconds for the last word
COUNTED_EVERY = 5.0
"""That more or fewer messages wait is told at most every so many seconds; whatever else changes, at once."""


class Reporting:
    """One task that sends what waits, while there is a connection to a server of ours.

    ``now`` is what the agent is doing, ``counts`` how many messages it has not read and whose are held; of that only
    the latest is told. On other servers nothing is said.
    """

    def __init__(
        self,
        records: Records,
        transport: IRCTransport,
        facts: AgentFacts,
        now: Callable[[], Mapping[str, str]],
        counts: Callable[[], Mapping[str, Any]],
        *,
        runtime: Runtime = REAL,
    ) -> None:
        self._records = records
        self._transport = transport
        self._facts = facts
        self._now = now
        self._counts = counts
        self._runtime = runtime
        self._reports = Reports(records)
        self._told: Mapping[str, str] | None = None
        self._counted: Mapping[str, Any] | None = None
        self._count_at = 0.0
        self._counting: asyncio.TimerHandle | None = None
        self._is_foreign = False
        self._was_refused = False
        self._unknown: dict[tuple[str, str], tuple[int, float]] = {}
        """Messages that the server did not know when it was told of them: how often, and when it is told again."""
        self._something = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._tomorrow: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Begin to tell."""
        self._task = asyncio.create_task(self._run(), name="reporting")
        self._new_day()

    async def stop(self) -> None:
        """Say that the agent is no more; what else is left is told at the next start."""
        if self._task is None:
            return
        self._task.cancel()
        if self._tomorrow is not None:
            self._tomorrow.cancel()
        with suppress(asyncio.CancelledError):
            await self._task
        # One that never got as far as a state is no more, too, whatever the ledger has of it from before.
        has_told = self._told is not None or not self._now()
        if self._transport.connected and not self._is_foreign and has_told:
            with suppress(NotSent, TimeoutError):
                async with asyncio.timeout(_GOODBYE):
                    await self._put_state({**self._now(), "state": STOPPED}, self._counts())

    def _new_day(self) -> None:
        """What was used today begins anew at midnight."""
        now = self._runtime.local()
        left = (reset(now) - now).total_seconds()
        self._tomorrow = asyncio.get_running_loop().call_later(left + _SOON, self._new_day)
        self.wake()

    def wake(self) -> None:
        """There may be something to tell."""
        self._something.set()

    def alert(self, event: str, text: str, place: str | None) -> None:
        """People are being called, because of something in a place; a full disk does not keep that from happening."""
        with suppress(sqlite3.Error):
            self._reports.alert(event, place or "", text)
        self.wake()

    def again(self) -> None:
        """There is a new connection, perhaps to another server."""
        self._told, self._counted, self._is_foreign, self._was_refused = None, None, False, False
        self.wake()

    async def _run(self) -> None:
        while True:
            await self._something.wait()
            self._something.clear()
            try:
                while self._transport.connected and not await self._tell_some():
                    pass
            except NotSent as refusal:
                # Without a connection it goes on after the next; else in a while.
                log.debug("not reported: %s", refusal)
                if self._transport.connected:
                    asyncio.get_running_loop().call_later(_AGAIN, self.wake)
            except Exception:
                log.exception("not reported")
                asyncio.get_running_loop().call_later(_AGAIN, self.wake)

    async def _tell_some(self) -> bool:
        """Tell what comes next; was that all?"""
        if self._is_foreign:
            self._reports.clear()
            return True
        await self._tell_state()
        report = self._reports.first()
        if report is None:
            return True
        if report.kind is FactKind.RECEIPT:
            return await self._receipt(report)
        if (fact := self._facts.of(report)) is not None:
            verdict = await self._put(report.kind, *fact)
            if report.kind is FactKind.QUESTION and "verified" in verdict:
                self._facts.note_verdict(report, verdict["verified"], verdict.get("verified_why", ""))
        if not self._is_foreign:
            self._reports.done(report)
        return False

    async def _tell_state(self) -> None:
        """Tell what the agent is doing, where that has changed; a flood of messages is counted now and then."""
        loop, state = asyncio.get_running_loop(), dict(self._now())
        if not state:
            return
        if state == self._told and loop.time() < self._count_at:
            if self._counting is None or self._counting.when() < loop.time():
                self._counting = loop.call_at(self._count_at, self.wake)
            return
        counts = self._counts()
        if state != self._told or counts != self._counted:
            await self._put_state(state, counts)
            self._told, self._counted, self._count_at = state, counts, loop.time() + COUNTED_EVERY

    async def _put_state(self, state: Mapping[str, str], counts: Mapping[str, Any]) -> None:
        await self._put(FactKind.STATE, STATE_KEY, {**state, **counts})

    async def _receipt(self, report: Report) -> bool:
        """Tell how far messages have come; what the server does not know yet is told again in a while.

        One that was killed learns the messages it lost from its peers, after its agents are back.
        """
        loop = asyncio.get_running_loop()
        tries, soonest = self._unknown.get((report.keys[0], report.text), (0, 0.0))
        if loop.time() < soonest:
            loop.call_at(soonest, self.wake)
            return True
        unknown = await self._ask(ExtensionVerb.RECEIPT, report.text, report.place, *report.keys)
        if self._is_foreign:
            return False
        again = []
        for key in report.keys:
            tries, _ = self._unknown.pop((key, report.text), (0, 0.0))
            if key in unknown and tries < _TRIES:
                self._unknown[key, report.text] = tries + 1, loop.time() + _SOON
                again.append(key)
        self._reports.later(report, again)
        return False

    async def _put(self, kind: FactKind, key: str, value: Mapping[str, Any]) -> Mapping[str, Any]:
        """Publish a fact; what the server found of an approval in it."""
        said = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        lines = await self._request(ExtensionVerb.LEDGER, "PUT", kind, key, tags={ClientTag.FACT.value: said})
        self._read(ExtensionVerb.LEDGER, lines)
        tags = next((line.tags for line in lines if line.verb == ExtensionVerb.LEDGEREND), {})
        try:
            verdict = json.loads(tags.get(ClientTag.FACT.value, "{}"))
        except ValueError:
            return {}  # the fact is stored all the same, and must not be published for ever
        return verdict if isinstance(verdict, dict) else {}

    async def _ask(self, verb: str, *words: str) -> list[str]:
        """Say it, and return the messages that the server does not know."""
        return self._read(verb, await self._request(verb, *words))

    async def _request(self, verb: str, *words: str, tags: Mapping[str, str] | None = None) -> Sequence[Line]:
        return await self._transport.request(verb, *words, tags=tags or {})

    def _read(self, verb: str, lines: Sequence[Line]) -> list[str]:
        """The messages that the server does not know.

        NotSent where it is to be said again later; whatever else is refused is done with.
        """
        unknown: list[str] = []
        for line in lines:
            if line.verb == _UNKNOWN_VERB:
                self._is_foreign = True
            elif line.verb == _NO_PRIVILEGES and not self._was_refused:
                self._was_refused = True
                log.warning("the server publishes nothing of this agent: %s", line.params[-1])
            elif line.verb == "FAIL" and len(line.params) > 1:
                if line.params[1] in _FOR_NOW:
                    raise NotSent(line.params[-1], line.params[1])
                if line.params[1] == _NOT_KNOWN and len(line.params) > 3:
                    unknown.append(line.params[3])
                if line.params[1] == "SKILL_OFF":
                    self._is_foreign = True
                log.debug("%s was refused: %s", verb, " ".join(line.params))
        return unknown
