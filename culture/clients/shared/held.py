"""Mail of senders for whom nobody vouches: kept apart, bounded, and released by a person.

Two kinds are kept. What was addressed to the agent is in the inbox in the state ``unvouched``, beside what the loop
guard holds, and becomes a prompt when it is released. What was only said in its channels is in a table of its own,
and can be read when it is released. Until then neither is given to the agent by any way.
"""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from culture.clients.shared.notes import Notes
from culture.clients.shared.records import Records
from culture.protocol.names import is_channel
from culture.protocol.vocabulary import UserClass
from culture.transport import Message

MOST_MAIL = 200
MOST_SAID = 500
"""So many messages to the agent, and so many others in its channels, are kept; the oldest go."""
MOST_BYTES = 1 << 20
"""And no more text than this of either."""
MOST_SENDERS = 8
"""So many senders are named where the held mail is shown."""
MOST_TAKEN_BACK = 1000
"""So many ids of messages that were taken back are known, for those that arrive later than that."""
LOOP, UNVOUCHED = "loop", "unvouched"
_COLUMNS = "msgid, place, private, sender, account, kind, text, said"
_UNVOUCHED = "state = 'unvouched'"
_HIDDEN = "NOT released"
_WHY = "CASE kind WHEN 'agent' THEN 'people' ELSE 'unvouched' END"
_RELEASED, _READ = 1, 2
"""What becomes of the column ``released``."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Which held messages a person releases: those of one sender, of one channel, or all private ones."""

    sender: str = ""
    channel: str = ""

    @property
    def where(self) -> tuple[str, tuple[str, ...]]:
        """A condition on the columns of a message, and its values."""
        if self.sender:
            return "sender = ? COLLATE NOCASE", (self.sender,)
        if self.channel:
            return "NOT private AND place = ? COLLATE NOCASE", (self.channel,)
        return "private", ()


@dataclass(frozen=True, slots=True)
class Holding:
    """What is held of one sender for one reason."""

    nick: str
    count: int
    why: str
    """``loop``, ``unvouched``, or ``people`` for agents where only people wake it."""

    def as_data(self) -> dict[str, str | int]:
        """The same for ``culture status`` and the ledger."""
        return {"nick": self.nick, "count": self.count, "why": self.why}


class HeldMail:
    """The messages of one agent that wait for a person's word."""

    def __init__(self, records: Records, notes: Notes) -> None:
        self._records = records
        self._notes = notes
        self.show: Callable[[Message], None] = lambda message: None
        """Called with each message that the agent may read from now on."""
        self._taken_back: deque[str] = deque(maxlen=MOST_TAKEN_BACK)

    def withhold(self, message: Message) -> None:
        """Keep something that was said in a channel, and to nobody in particular, from the agent."""
        with self._records.change() as records:
            records.execute(
                f"INSERT OR IGNORE INTO withheld ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    message.msgid,
                    message.channel,
                    message.private,
                    message.sender,
                    message.account,
                    message.kind.value,
                    message.text,
                    message.timestamp.timestamp(),
                ),
            )
            self._notes.heard(message.msgid, message.timestamp)
            self._trim("withheld", _HIDDEN, MOST_SAID)
            self._trim("withheld", "released", MOST_SAID, counted=False)

    def bound(self) -> None:
        """Let the oldest held mail go where there is too much of it."""
        self._trim("messages", _UNVOUCHED, MOST_MAIL)

    def knows(self, msgid: str) -> bool:
        """Whether this was withheld, released or not, or taken back."""
        found = self._records.execute("SELECT 1 FROM withheld WHERE msgid = ?", (msgid,)).fetchone()
        return found is not None or msgid in self._taken_back

    def take_back(self, msgid: str) -> bool:
        """Who said it, or who runs the channel, takes a message back: it is not held any more, if it was.

        A person would release what they cannot see.
        """
        self._taken_back.append(msgid)
        with self._records.change() as records:
            return any(
                records.execute(f"DELETE FROM {table} WHERE msgid = ? AND {where}", (msgid,)).rowcount
                for table, where in (("messages", _UNVOUCHED), ("withheld", _HIDDEN))
            )

    def is_released(self, msgid: str) -> bool:
        """Whether the agent may have this message of a sender for whom nobody vouches."""
        found = self._records.execute(
            "SELECT 1 FROM messages WHERE msgid = ? AND state NOT IN ('unvouched', 'held')"
            " UNION ALL SELECT 1 FROM withheld WHERE msgid = ? AND released",
            (msgid, msgid),
        ).fetchone()
        return found is not None

    def release(self, scope: Scope) -> tuple[int, int]:
        """Give the agent what a person releases: how many messages to it, and how many others it may read."""
        where, values = scope.where
        with self._records.change() as records:
            rows = records.execute(
                f"SELECT {_COLUMNS} FROM messages WHERE {_UNVOUCHED} AND {where}"
                f" UNION ALL SELECT {_COLUMNS} FROM withheld WHERE {_HIDDEN} AND {where} ORDER BY said",
                (*values, *values),
            ).fetchall()
            mail = records.execute(
                f"UPDATE messages SET state = 'unread', stale = 0, hops = 0 WHERE {_UNVOUCHED} AND {where}", values
            ).rowcount
            records.execute(f"UPDATE withheld SET released = {_RELEASED} WHERE {_HIDDEN} AND {where}", values)
            self._notes.held_dropped = 0
        for row in rows:
            self.show(_message(row))
        return mail, len(rows) - mail

    def show_unread(self) -> None:
        """Show once more what was released, and not read before the daemon ended."""
        rows = self._records.execute(
            f"SELECT {_COLUMNS} FROM withheld WHERE released = {_RELEASED} ORDER BY said"
        ).fetchall()
        for row in rows:
            self.show(_message(row))

    def read(self, msgids: Iterable[str]) -> None:
        """The agent has read these."""
        with self._records.change() as records:
            for msgid in msgids:
                records.execute(f"UPDATE withheld SET released = {_READ} WHERE msgid = ? AND released", (msgid,))

    def holds(self, sender: str) -> bool:
        """Whether something of this sender is held."""
        found = self._records.execute(
            "SELECT 1 FROM messages WHERE state IN ('unvouched', 'held') AND sender = ? COLLATE NOCASE"
            f" UNION ALL SELECT 1 FROM withheld WHERE {_HIDDEN} AND sender = ? COLLATE NOCASE",
            (sender, sender),
        ).fetchone()
        return bool(sender) and found is not None

    def count(self, place: str) -> int:
        """How many messages of senders for whom nobody vouches are withheld from the agent in a place."""
        (count,) = self._records.execute(
            f"SELECT (SELECT count(*) FROM messages WHERE {_UNVOUCHED} AND place = ? COLLATE NOCASE)"
            f" + (SELECT count(*) FROM withheld WHERE {_HIDDEN} AND place = ? COLLATE NOCASE)",
            (place, place),
        ).fetchone()
        return int(count)

    @property
    def total(self) -> int:
        """How many messages are held, of whatever sender and for whatever reason."""
        (count,) = self._records.execute(
            "SELECT (SELECT count(*) FROM messages WHERE state IN ('unvouched', 'held'))"
            f" + (SELECT count(*) FROM withheld WHERE {_HIDDEN})"
        ).fetchone()
        return int(count)

    @property
    def holdings(self) -> list[Holding]:
        """The senders with the most held messages."""
        rows = self._records.execute(
            "SELECT min(sender), count(*), why FROM ("
            f"SELECT sender, CASE state WHEN 'held' THEN 'loop' ELSE {_WHY} END AS why FROM messages"
            " WHERE state IN ('unvouched', 'held')"
            f" UNION ALL SELECT sender, {_WHY} FROM withheld WHERE {_HIDDEN})"
            " GROUP BY sender COLLATE NOCASE, why ORDER BY 2 DESC, 1 LIMIT ?",
            (MOST_SENDERS,),
        )
        return [Holding(*row) for row in rows]

    def _trim(self, table: str, where: str, most: int, *, counted: bool = True) -> None:
        size = 0
        rows = self._records.execute(
            f"SELECT number, length(CAST(text AS BLOB)) FROM {table} WHERE {where} ORDER BY number DESC LIMIT ?",
            (most + 1,),
        ).fetchall()
        for position, (number, length) in enumerate(rows):
            size += length
            if position and (position >= most or size > MOST_BYTES):
                gone = self._records.execute(f"DELETE FROM {table} WHERE {where} AND number <= ?", (number,)).rowcount
                self._notes.held_dropped += gone if counted else 0
                return


def _message(row: tuple[str, str, int, str, str | None, str, str, float]) -> Message:
    msgid, place, private, sender, account, kind, text, said = row
    at = datetime.fromtimestamp(said, UTC)
    return Message(
        place, sender, text, at, msgid, account, UserClass(kind), private=bool(private) or not is_channel(place)
    )
