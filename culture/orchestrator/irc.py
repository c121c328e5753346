"""The team's own place on IRC: what it hears there, what it says, and what it has said once."""

import asyncio
import json
import logging
import re
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

from culture.clients.shared.vouching import Nicks, Vouching
from culture.lib.files import replace_file
from culture.orchestrator.journal.state import What
from culture.orchestrator.journal.store import TeamStore
from culture.protocol.names import fold
from culture.protocol.vocabulary import ClientTag, ExtensionVerb, FactKind, UserClass
from culture.transport import Address, ClientIdentity, IRCTransport, Message, NotSent, ReceiveMark

log = logging.getLogger(__name__)

MARK = "mark.json"
LATELY = 300.0
"""What was said within so many seconds is remembered, to see who is idle."""
JUST = 10.0
"""What was said so many seconds before somebody ended their turn was said at its end."""
_NO_PRIVILEGES = "481"
_MOST_LINES = 200
_MOST_SPEAKERS = 500
_MOST_WAITING = 1000
_PART = re.compile(r"^[ \t]*TASK:", re.MULTILINE)
_FACT_LIMIT = 400
Kept = TypeVar("Kept")


class ReadCursor:
    """Up to where everything that was said has been acted upon: the cursor of the connection."""

    def __init__(self, file: Path, book: TeamStore) -> None:
        self._file = file
        self._book = book

    def load(self) -> ReceiveMark | None:
        """Where to go on; None at the very first start."""
        try:
            said = json.loads(self._file.read_text(encoding="utf-8"))
            return ReceiveMark(tuple(said["msgids"]), datetime.fromisoformat(said["time"]))
        except (FileNotFoundError, ValueError, KeyError):
            return None

    def knows(self, msgid: str) -> bool:
        """Whether it was acted upon."""
        return msgid in self._book.state.heard

    def save(self, mark: ReceiveMark | None) -> None:
        """Everything up to here was acted upon."""
        if mark is None:
            return
        replace_file(self._file, json.dumps({"msgids": mark.msgids, "time": mark.time.isoformat()}))


class TeamRooms:
    """One connection. What was said is worked off in order by ``next``; what is said here is said as a notice."""

    def __init__(
        self,
        address: Address,
        identity: ClientIdentity,
        folder: Path,
        book: TeamStore,
        channels: Iterable[str] = (),
        pm: Collection[str] = (),
        em: str = "",
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._book = book
        team = Nicks(lambda: [em, *(member.nick for member in book.state.members.values())])
        self._clock = clock
        self._waiting: asyncio.Queue[Message] = asyncio.Queue(_MOST_WAITING)
        self._heard = ReadCursor(folder / MARK, book)
        self._published: dict[str, str] = {}
        """What the ledger was last told of each task."""
        self._lately: dict[str, deque[tuple[float, str]]] = {}
        self.irc = IRCTransport(
            address, identity, channels, cursor=self._heard, on_message=self._hear, agents=team, people=pm
        )
        self._vouching = Vouching("accounts", self.irc, team)
        self._called: dict[str, tuple[float, frozenset[str]]] = {}
        """Of each who has spoken: when it was that they spoke last, and whom they mentioned then."""
        self._unsaid: deque[tuple[str, str, str]] = deque(maxlen=_MOST_LINES)
        self.on_said: Callable[[str], None] = lambda nick: None
        """Somebody has said something."""

    @property
    def has_been_here(self) -> bool:
        """Whether something may have been missed: at the very first start nothing is."""
        return self._heard.load() is not None

    async def start(self) -> None:
        """Be there; what was said meanwhile comes first."""
        await self.irc.start()
        self._heard.save(self._heard.load() or self.irc.mark)

    async def stop(self, reason: str) -> None:
        """Leave."""
        await self.irc.stop(reason)

    async def next(self) -> Message:
        """What was said next."""
        return await self._waiting.get()

    def acted(self) -> None:
        """Everything that ``next`` gave was acted upon."""
        # What the server cannot tell yet is older: behind a mark that went on it would never be asked for again.
        if self._waiting.empty() and not self.irc.is_behind:
            self._heard.save(self.irc.mark)

    def lately(self, nick: str) -> str:
        """What somebody said within the last minutes, a line each."""
        since = self._clock() - LATELY
        return "\n".join(line for at, line in self._lately.get(fold(nick), ()) if at >= since)

    def has_just_called(self, nick: str, other: str) -> bool:
        """Whether somebody's last words, said in this moment, mention somebody else."""
        at, mentioned = self._called.get(fold(nick), (0.0, frozenset[str]()))
        return abs(self._clock() - at) <= JUST and fold(other) in mentioned

    def spoke_at(self, nick: str) -> float:
        """When somebody spoke last; 0 when that is not known."""
        lines = self._lately.get(fold(nick))
        return lines[-1][0] if lines else 0.0

    def is_in(self, channel: str) -> bool:
        """Whether we are in a channel."""
        return fold(channel) in map(fold, self.irc.channels)

    async def enter(self, channel: str) -> bool:
        """Be in a channel from now on; False when that has to be tried again, as there is no connection."""
        if not self.is_in(channel):
            try:
                await self.irc.join_channel(channel)
            except NotSent as refused:
                log.warning("not in %s: %s", channel, refused)
                return self.irc.connected and not refused.uncertain
        return True

    async def leave(self, channel: str) -> None:
        """Be there no more."""
        try:
            await self.irc.part_channel(channel, "the task is over")
        except NotSent as refused:
            log.info("%s was not left: %s", channel, refused)

    async def say(self, channel: str, text: str, reply_to: str = "") -> bool:
        """Say something that nobody answers by itself; whether it was said."""
        tags = {ClientTag.REPLY.value: reply_to} if reply_to else {}
        try:
            await self.irc.send_notice(channel, text, tags)
        except NotSent as refused:
            log.warning("not said in %s: %s (%s)", channel, text, refused)
            if not refused.code:
                self._unsaid.append((channel, text, reply_to))
            return False
        return True

    async def catch_up(self) -> None:
        """Say what could not be said while there was no connection."""
        while self._unsaid and self.irc.connected:
            if not await self.say(*self._unsaid.popleft()):
                return

    async def say_once(self, key: str, text: str, *channels: str, reply_to: str = "") -> None:
        """Say it, unless it was said; who restarts does not repeat itself."""
        if key in self._book.state.told:
            return
        self._book.done(What.TOLD, key=key)
        for channel in dict.fromkeys(channels):
            await self.say(channel, text, reply_to)

    async def publish(self, key: str, fact: Mapping[str, Any]) -> None:
        """Put a task into the ledger of the server, where it has one and does not know that already."""
        said = json.dumps({name: _short(value) for name, value in fact.items()}, ensure_ascii=False)
        if self._published.get(key) == said:
            return
        self._published[key] = said
        try:
            tags = {ClientTag.FACT.value: said}
            for line in await self.irc.request(ExtensionVerb.LEDGER, "PUT", FactKind.TASK, key, tags=tags):
                if line.verb in ("FAIL", _NO_PRIVILEGES):
                    log.warning("%s was not published: %s", key, line.params[-1])
        except NotSent as refused:
            self._published.pop(key, None)
            log.info("%s was not published: %s", key, refused)

    def _hear(self, message: Message) -> None:
        if message.kind is UserClass.BOT and self._vouching.why_not(message) is None:
            # A member, where neither it nor the team has an account.
            message = replace(message, kind=UserClass.AGENT)
        if message.own or self._vouching.is_known(message):
            self._note(message)
        if not message.own and not message.notice and not message.private:
            try:
                self._waiting.put_nowait(message)
            except asyncio.QueueFull:
                # It passes, as a full disk does: the connection ends, and what did not fit comes from the history.
                raise OSError(f"{_MOST_WAITING} messages wait to be acted upon") from None

    def _note(self, message: Message) -> None:
        """Remember what a member said, for hand-offs and judgements; under its nick a stranger may have spoken."""
        if not message.private:
            line = f"[{message.timestamp:%H:%M:%S}] {message.channel} <{message.sender}> {message.text}"
            lines = _renewed(self._lately, fold(message.sender), deque[tuple[float, str]](maxlen=_MOST_LINES))
            lines.append((message.timestamp.timestamp(), line))
        _renewed(self._called, fold(message.sender), (0.0, frozenset[str]()))
        self._called[fold(message.sender)] = (message.timestamp.timestamp(), frozenset(map(fold, message.mentions)))
        self.on_said(message.sender)


def _renewed(known: dict[str, Kept], who: str, new: Kept) -> Kept:
    """What is kept of somebody, as of who spoke last; whoever has not spoken for longest is forgotten."""
    found = known[who] = known.pop(who, new)
    if len(known) > _MOST_SPEAKERS:
        del known[next(iter(known))]
    return found


def parts(text: str) -> Iterator[str]:
    """The ``TASK:`` requests of a message, each from the beginning of its line to the next one."""
    begins = [found.start() for found in _PART.finditer(text)]
    for begin, end in pairwise([*begins, len(text)]):
        yield text[begin:end].strip()


def _short(value: Any) -> Any:
    return value[:_FACT_LIMIT] if isinstance(value, str) else value
