"""What the daemon has to say, on disk until the server has it."""

import asyncio
import json
import logging
import sqlite3
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from culture.clients.shared.once import Once
from culture.clients.shared.records import Records
from culture.protocol.names import fold, owner
from culture.protocol.numerics import Numeric
from culture.protocol.vocabulary import ClientTag
from culture.runtime import REAL, Runtime
from culture.transport import IRCTransport, NotSent

log = logging.getLogger(__name__)

LONGEST = 1000
"""So many letters wait at most; the oldest give way."""
AGAIN = 5.0
"""After an error of our own, such as a full disk, or a server's silence it is tried again after so many seconds."""
LONGEST_AWAY = 3600.0
"""A message to a user of another server waits so many seconds for that server to be linked again."""
LONGEST_GONE = 300.0
"""One to a user of this server waits so many seconds for them: after a restart of the server they come back later."""
NO_TAGS: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Letter:
    """One thing to say, and where."""

    number: int
    place: str
    text: str
    notice: bool
    tags: Mapping[str, str]


class Outbox:
    """Letters in the order in which they were written, sent by one task while there is a connection."""

    def __init__(
        self, records: Records, transport: IRCTransport, once: Once, again: float = AGAIN, *, runtime: Runtime = REAL
    ) -> None:
        self._records = records
        self._transport = transport
        self._once = once
        self._again = again
        self._runtime = runtime
        self._something = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._away: dict[str, float] = {}  # users who could not be reached, and since when
        self._put_off: set[str] = set()  # those of them who are not tried for now

    def say(self, place: str, text: str, *, notice: bool = False, tags: Mapping[str, str] = NO_TAGS) -> None:
        """Say something as soon as it can be said; what has no place is not said."""
        if not place:
            return
        marked = {**tags, ClientTag.ONCE.value: self._runtime.token_hex(8)}
        with self._records.change() as records:
            added = records.execute(
                "INSERT INTO outbox (place, text, notice, tags) VALUES (?, ?, ?, ?)",
                # Half a character, which JSON can spell and a model therefore can say, has no UTF-8.
                (place, text.encode(errors="replace").decode(), notice, json.dumps(marked)),
            ).lastrowid
            records.execute("DELETE FROM outbox WHERE number <= ?", ((added or 0) - LONGEST,))
        self.wake()

    def wake(self) -> None:
        """There may be something to send, or a connection to send it by."""
        self._something.set()

    def start(self) -> None:
        """Begin to send."""
        self._task = asyncio.create_task(self._send_all(), name="outbox")
        self.wake()

    async def stop(self) -> None:
        """Send no more; what is left goes out at the next start."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _send_all(self) -> None:
        while True:
            await self._something.wait()
            self._something.clear()
            try:
                await self._send_those_there()
            except sqlite3.Error:
                log.exception("nothing can be said for now")
                await self._rest()

    async def _rest(self) -> None:
        await asyncio.sleep(self._again)
        self.wake()

    async def _send_those_there(self) -> None:
        # Who has only just come back is in no channel yet, and would be refused.
        while self._transport.settled and (letter := self._first()) is not None:
            if await self._sent(letter):
                self._done(letter)
            elif self._transport.settled and fold(letter.place) not in self._put_off:
                await self._rest()

    def _done(self, letter: Letter) -> None:
        with self._records.change() as records:
            records.execute("DELETE FROM outbox WHERE number = ?", (letter.number,))
            self._once.forget(letter.tags[ClientTag.ONCE.value])

    async def _sent(self, letter: Letter) -> bool:
        """Whether the letter is done with: said, or refused for good."""
        try:
            await self._once.say(letter.place, letter.text, letter.tags, notice=letter.notice)
            self._away.pop(fold(letter.place), None)
        except NotSent as refusal:
            if refusal.uncertain or not self._transport.settled or self._waits_for_user(letter, refusal):
                return False
            log.warning("cannot say something in %s: %s", letter.place, refusal)
        except sqlite3.Error:
            raise
        except Exception:
            # What can never be said must not keep everything behind it from being said.
            log.exception("cannot say something in %s", letter.place)
        return True

    def _waits_for_user(self, letter: Letter, refusal: NotSent) -> bool:
        """Put off an answer to a user who is not there now; what was written to others goes out meanwhile."""
        if letter.notice or refusal.code != Numeric.ERR_NOSUCHNICK.code or not self._transport.is_ours:
            return False
        place, now = fold(letter.place), self._runtime.monotonic()
        is_here = owner(place) in (place, owner(fold(self._transport.nick)))
        if now - self._away.setdefault(place, now) >= (LONGEST_GONE if is_here else LONGEST_AWAY):
            del self._away[place]
            return False
        self._put_off.add(place)
        asyncio.get_running_loop().call_later(self._again, self._try_again, place)
        return True

    def _try_again(self, place: str) -> None:
        self._put_off.discard(place)
        self.wake()

    def _first(self) -> Letter | None:
        rows = self._records.execute("SELECT number, place, text, notice, tags FROM outbox ORDER BY number")
        if self._put_off:
            row = next((row for row in rows.fetchall() if fold(row[1]) not in self._put_off), None)
        else:
            row = rows.fetchone()
        if row is None:
            return None
        # What an older version wrote has no key.
        tags = {ClientTag.ONCE.value: f"letter-{row[0]}", **json.loads(row[4])}
        return Letter(row[0], row[1], row[2], bool(row[3]), tags)
