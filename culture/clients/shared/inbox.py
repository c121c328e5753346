"""What was addressed to the agent, on disk: received, given to it, answered, each with its msgid."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from culture.clients.shared.budget import Spent
from culture.clients.shared.loops import Lately, hops_of
from culture.clients.shared.notes import Notes
from culture.clients.shared.records import Records
from culture.protocol.names import fold, is_channel
from culture.protocol.vocabulary import ClientTag, UserClass
from culture.runtime import REAL, Runtime
from culture.transport import Message

KEPT_SECONDS = 30 * 86400.0
"""Answered messages are remembered so long, to know them should they come again."""
MOST_CRASHES = 2
"""A message in whose turn the agent died so often is not given to it again."""
MOST_GIVEN = 5
"""Nor one that was given so often without an end."""
LATE = "late: it is older than usual"
"""What is remarked of a message that was too old to begin a turn."""
TEAM = "your team"
"""The sender of an errand; with its space it is nobody's nick."""
SELF = "your own program"
"""The sender of what the agent's program and its daemon have to tell it: a command that ended, a question without an
answer. Nobody's nick either."""
BY_ITSELF = "begun by the program itself"
"""The task of a turn that nobody asked for."""

PRIVATE_TASK = "(private)"
"""How everybody knows a task that was given in private."""
ABORTED = "aborted"
"""The outcome of a turn whose task a person has aborted."""
_HOUR = 3600.0


class Handled(StrEnum):
    """How far a message has come."""

    HELD = "held"
    UNVOUCHED = "unvouched"
    UNREAD = "unread"
    GIVEN = "given"
    ANSWERED = "answered"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Mail:
    """One message that was addressed to the agent."""

    number: int
    msgid: str
    place: str
    private: bool
    sender: str
    account: str | None
    kind: UserClass
    text: str
    said: datetime
    stale: bool
    given: int
    """How often it was in a prompt: a turn that was cut off may have begun to answer it."""
    remark: str = ""
    """What the daemon knows of it, such as the question that it answers."""
    hops: int = 0
    """How many automatic replies led to it."""
    question: int = 0
    """The number of the agent's question that it is about; 0 where it is about none."""
    overheard: bool = False
    """Whether it was said in a room of which the agent takes every message, and did not mention it."""

    @property
    def is_errand(self) -> bool:
        """Whether it comes from whoever looks after the agent, and not from IRC."""
        return self.sender == TEAM

    @property
    def is_own(self) -> bool:
        """Whether it is news of something that the agent itself began, and nobody's word."""
        return self.sender == SELF


_COLUMNS = (
    "number, msgid, place, private, sender, account, kind, text, said, stale, given,"
    " coalesce((SELECT text FROM remarks WHERE remarks.msgid = messages.msgid), ''), hops,"
    " coalesce((SELECT question FROM remarks WHERE remarks.msgid = messages.msgid), 0),"
    " EXISTS (SELECT 1 FROM overheard WHERE overheard.msgid = messages.msgid)"
)


class Inbox:
    """The messages of one agent, in the order in which they arrived."""

    def __init__(self, records: Records, notes: Notes, *, runtime: Runtime = REAL) -> None:
        self._records = records
        self._notes = notes
        self._clock = runtime.now
        self.on_over: Callable[[], None] = lambda: None
        """Called when something that was given may be answered, or given up."""
        self._open = 0  # unread and not stale, so that an idle daemon need not ask the file

    def restore(self) -> list[Mail]:
        """Make unread again what was being worked on when the daemon last ended; those given up are returned."""
        before = self._clock() - KEPT_SECONDS
        with self._records.change() as records:
            records.execute("DELETE FROM messages WHERE received < ? AND state IN ('answered', 'failed')", (before,))
            records.execute("DELETE FROM remarks WHERE msgid NOT IN (SELECT msgid FROM messages)")
            records.execute("DELETE FROM overheard WHERE msgid NOT IN (SELECT msgid FROM messages)")
            records.execute("DELETE FROM answers WHERE msgid NOT IN (SELECT msgid FROM messages)")
            self._notes.add_spent_before(*self._sum("began < ?", before))
            records.execute("DELETE FROM turns WHERE began < ?", (before,))
            records.execute("UPDATE turns SET ended = began, outcome = 'cut off' WHERE ended IS NULL")
        lost = self._reopen()
        self._count()
        return lost

    def knows(self, msgid: str) -> bool:
        """Whether this message was received before."""
        return self._records.execute("SELECT 1 FROM messages WHERE msgid = ?", (msgid,)).fetchone() is not None

    def receive(
        self,
        message: Message,
        *,
        stale: bool = False,
        handled: bool = False,
        held: bool = False,
        unvouched: bool = False,
        overheard: bool = False,
        question: int = 0,
        remark: str = "",
    ) -> bool:
        """Keep a message, and that it was heard, in one; False when it was there already.

        ``remark`` is what the agent is told with it: it is about this ``question`` of the agent's.
        """
        apart = Handled.UNVOUCHED if unvouched else Handled.HELD if held else Handled.UNREAD
        state = Handled.ANSWERED if handled else apart
        with self._records.change() as records:
            new = records.execute(
                "INSERT OR IGNORE INTO messages (msgid, place, private, sender, account, kind, text, said, received,"
                " stale, state, hops) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    message.msgid,
                    message.channel,
                    message.private,
                    message.sender,
                    message.account,
                    message.kind.value,
                    message.text,
                    message.timestamp.timestamp(),
                    self._clock(),
                    stale,
                    state.value,
                    hops_of(message.kind, message.tags),
                ),
            ).rowcount
            if new and remark:
                records.execute("INSERT OR IGNORE INTO remarks VALUES (?, ?, ?)", (message.msgid, question, remark))
            if new and overheard:
                records.execute("INSERT OR IGNORE INTO overheard VALUES (?)", (message.msgid,))
            if message.sender not in (TEAM, SELF):
                self._notes.heard(message.msgid, message.timestamp)
        if new and state is Handled.UNREAD and not stale:
            self._open += 1
        return bool(new)

    def news(self, key: str, place: str, text: str, *, question: int = 0, hops: int = 0, held: bool = False) -> bool:
        """Keep news of something that the agent itself began in a place; False when it was there already.

        The same words that nobody has given to the agent yet count as the same news: a wake-up may come every minute.
        """
        if not question and self._is_waiting(place, text):
            return False
        told = Message(
            place,
            SELF,
            text,
            datetime.fromtimestamp(self._clock(), UTC),
            own_msgid(key),
            None,
            UserClass.BOT,
            private=not is_channel(place),
            tags={ClientTag.HOPS.value: str(hops)},
        )
        return self.receive(told, question=question, remark="news" if question else "", held=held)

    def _is_waiting(self, place: str, text: str) -> bool:
        row = self._records.execute(
            "SELECT 1 FROM messages WHERE state IN ('unread', 'held') AND sender = ? AND place = ? COLLATE NOCASE"
            " AND text = ?",
            (SELF, place, text),
        ).fetchone()
        return row is not None

    @property
    def waiting(self) -> bool:
        """Whether something is there that starts a turn."""
        return self._open > 0

    @property
    def is_called_by_people(self) -> bool:
        """Whether some of what starts a turn is from a person, or from whoever looks after the agent."""
        row = self._records.execute(
            "SELECT 1 FROM messages WHERE state = 'unread' AND NOT stale AND (kind = ? OR sender IN (?, ?)) LIMIT 1",
            (UserClass.HUMAN.value, TEAM, SELF),
        ).fetchone()
        return row is not None

    def unread(self) -> list[Mail]:
        """All that was not given to the agent yet, stale ones among them."""
        rows = self._records.execute(f"SELECT {_COLUMNS} FROM messages WHERE state = 'unread' ORDER BY number")
        return [_mail(row) for row in rows]

    def next(self, *, people_first: bool = False) -> list[Mail]:
        """What the next turn is about: an errand alone, or all messages that wait in one place.

        That is the place of the oldest that starts a turn; with ``people_first`` of the oldest of a person.
        """
        unread = self.unread()
        fresh = [mail for mail in unread if not mail.stale]
        called = (
            [mail for mail in fresh if mail.kind is UserClass.HUMAN or mail.is_errand or mail.is_own]
            if people_first
            else []
        )
        first = next(iter([*called, *fresh, *unread]), None)
        if first is None or first.is_errand:
            return [first] if first is not None else []
        place = fold(first.place)
        return [mail for mail in unread if not mail.is_errand and fold(mail.place) == place]

    def take_about(self, question: int, place: str) -> Mail | None:
        """The oldest unread message about a question from where it was asked, which is read then."""
        row = self._records.execute(
            f"SELECT {_COLUMNS} FROM messages WHERE state = 'unread'"
            " AND place = ? COLLATE NOCASE AND msgid IN (SELECT msgid FROM remarks WHERE question = ?)"
            " ORDER BY number LIMIT 1",
            (place, question),
        ).fetchone()
        if row is None:
            return None
        mail = _mail(row)
        self.read(mail.msgid)
        return mail

    def read(self, msgid: str) -> None:
        """The agent has been told of an unread message by other means than a turn."""
        self._records.execute("UPDATE messages SET state = 'answered' WHERE msgid = ? AND state = 'unread'", (msgid,))
        self._count()

    def reopen(self, msgid: str, question: int, remark: str) -> None:
        """The agent has not been told after all of a message about a question: it reads it, however old it is."""
        with self._records.change() as records:
            reopened = records.execute(
                "UPDATE messages SET state = 'unread', stale = 0 WHERE msgid = ? AND state = 'answered' AND given = 0",
                (msgid,),
            ).rowcount
            if reopened:
                records.execute("INSERT OR IGNORE INTO remarks VALUES (?, ?, ?)", (msgid, question, remark))
        self._count()

    def counts(self) -> tuple[int, int]:
        """How many messages are unread, and how many of these start no turn by themselves."""
        row = self._records.execute(
            "SELECT count(*), coalesce(sum(stale), 0) FROM messages WHERE state = 'unread'"
        ).fetchone()
        return row[0], row[1]

    def unread_in(self, place: str) -> int:
        """Number of unread messages in a place."""
        (count,) = self._records.execute(
            "SELECT count(*) FROM messages WHERE state = 'unread' AND place = ? COLLATE NOCASE", (place,)
        ).fetchone()
        return int(count)

    def in_turn(self) -> list[Mail]:
        """What was given to the agent in a turn that has no end yet."""
        rows = self._records.execute(f"SELECT {_COLUMNS} FROM messages WHERE state = 'given' ORDER BY number")
        return [_mail(row) for row in rows]

    def held(self) -> int:
        """How many messages of agents the loop guard holds."""
        (count,) = self._records.execute("SELECT count(*) FROM messages WHERE state = 'held'").fetchone()
        return int(count)

    def release(self) -> int:
        """What the loop guard held may wake the agent, and a new chain begins; turns are counted anew."""
        with self._records.change() as records:
            released = records.execute("UPDATE messages SET state = 'unread', hops = 0 WHERE state = 'held'").rowcount
            records.execute(
                "UPDATE messages SET turn = NULL WHERE kind <> 'human' AND state = 'answered' AND received > ?",
                (self._clock() - _HOUR,),
            )
        self._count()
        return released

    def release_sender(self, sender: str) -> int:
        """The same for the held messages of one agent alone; its turns still count."""
        released = self._records.execute(
            "UPDATE messages SET state = 'unread', hops = 0 WHERE state = 'held' AND sender = ? COLLATE NOCASE",
            (sender,),
        ).rowcount
        self._count()
        return released

    def recount(self) -> None:
        """Messages have become unread by other means."""
        self._count()

    def lately(self, sender: str, place: str, worked_at: float | None = None) -> Lately:
        """How many turns an agent, and all agents of a channel or in private, have caused within the last hour.

        Those of the agent count since this one ``worked_at``, or it has worked itself: its words have no hops then.
        """
        since = 0.0
        if worked_at is not None:
            (theirs,) = self._records.execute(
                "SELECT coalesce(max(received), 0) FROM messages"
                " WHERE sender = ? COLLATE NOCASE AND kind <> 'human' AND hops = 0",
                (sender,),
            ).fetchone()
            since = max(worked_at, theirs)
        by_sender, in_channel = self._records.execute(
            "SELECT count(DISTINCT CASE WHEN sender = ? COLLATE NOCASE AND received > ? THEN turn END),"
            " count(DISTINCT CASE WHEN place = ? COLLATE NOCASE OR (private AND ?) THEN turn END)"
            " FROM messages WHERE kind <> 'human' AND sender NOT IN (?, ?) AND received > ?",
            (sender, since, place, not is_channel(place), TEAM, SELF, self._clock() - _HOUR),
        ).fetchone()
        return Lately(by_sender, in_channel)

    def begin(self, mails: Sequence[Mail], task: str) -> int:
        """These are given to the agent in a turn that begins now: written before the agent sees them."""
        with self._records.change() as records:
            place = mails[0].place if mails else ""
            turn = records.execute(
                "INSERT INTO turns (place, task, began) VALUES (?, ?, ?)", (place, task, self._clock())
            ).lastrowid
            # All that is unread of one kind in one place at this moment: a range, however many there are.
            if mails:
                records.execute(
                    "UPDATE messages SET state = 'given', turn = ?, given = given + 1 WHERE state = 'unread'"
                    " AND number BETWEEN ? AND ? AND (sender = ?) = ? AND place = ? COLLATE NOCASE",
                    (turn, mails[0].number, mails[-1].number, TEAM, mails[0].is_errand, place),
                )
                if not mails[0].is_errand:
                    self._freshen()
        self._count()
        assert turn is not None
        return turn

    def _freshen(self) -> None:
        """The agent is at work: what was too old to begin a turn in other places follows, each place by itself."""
        stale = f"state = 'unread' AND stale AND sender <> '{TEAM}'"
        self._records.execute(f"INSERT OR IGNORE INTO remarks SELECT msgid, 0, ? FROM messages WHERE {stale}", (LATE,))
        self._records.execute(f"UPDATE messages SET stale = 0 WHERE {stale}")

    def at_once(self) -> AbstractContextManager[Records]:
        """What is noted, here and in the same file, within this happens whole or not at all."""
        return self._records.change()

    def end(self, turn: int, outcome: str, tokens: int = 0, cost_usd: float = 0.0) -> None:
        """The turn is over, and what was given in it is answered."""
        with self._records.change() as records:
            records.execute("UPDATE messages SET state = 'answered' WHERE turn = ? AND state = 'given'", (turn,))
            records.execute(
                "UPDATE turns SET ended = ?, outcome = ?, tokens = tokens + ?, cost_usd = cost_usd + ?"
                " WHERE number = ?",
                (self._clock(), outcome, tokens, cost_usd, turn),
            )
        self.on_over()

    def broken(self, turn: int, outcome: str, *, blamed: bool | None = True) -> list[Mail]:
        """The agent died in this turn: what was given comes again, but for what is given up, which is returned.

        Where the messages are not to be ``blamed`` they come again as often as it takes; None is for a turn that cost
        something all the same, and counts as one of those after which they are given up.
        """
        change = {True: "crashes = crashes + 1", False: "given = given - 1", None: "given = given"}[blamed]
        with self._records.change() as records:
            records.execute(f"UPDATE messages SET {change} WHERE turn = ? AND state = 'given'", (turn,))
            records.execute("UPDATE turns SET ended = ?, outcome = ? WHERE number = ?", (self._clock(), outcome, turn))
        lost = self._reopen()
        self._count()
        self.on_over()
        return lost

    def mark_aborted(self, task: str) -> None:
        """The task of a turn that is over was aborted afterwards: that was its end."""
        where = "task = :task" if task != PRIVATE_TASK else "place NOT LIKE '#%'"
        self._records.execute(
            "UPDATE turns SET outcome = :outcome WHERE number ="
            f" (SELECT max(number) FROM turns WHERE ended IS NOT NULL AND {where})",
            {"outcome": ABORTED, "task": task},
        )

    def discard(self) -> int:
        """Nobody wants any more what was given to the agent and cut off; how many messages that were."""
        discarded = self._records.execute(
            "UPDATE messages SET state = 'answered' WHERE state = 'unread' AND given > 0"
        ).rowcount
        self._count()
        self.on_over()
        return discarded

    def begun_itself(self, outcome: str, tokens: int, cost_usd: float) -> None:
        """Note a turn that the program began by itself, and that is over."""
        now = self._clock()
        self._records.execute(
            "INSERT INTO turns (place, task, began, ended, outcome, tokens, cost_usd) VALUES ('', ?, ?, ?, ?, ?, ?)",
            (BY_ITSELF, now, now, outcome, tokens, cost_usd),
        )

    def spend(self, tokens: int, cost_usd: float) -> None:
        """What somebody else used for the present turn, or the last."""
        self._records.execute(
            "UPDATE turns SET tokens = tokens + ?, cost_usd = cost_usd + ?"
            " WHERE number = (SELECT max(number) FROM turns)",
            (tokens, cost_usd),
        )

    def journal(self, limit: int) -> list[tuple[datetime, str, str, str]]:
        """The last turns that are over, the oldest first: when, where, what for and how they ended."""
        rows = self._records.execute(
            "SELECT began, place, task, outcome FROM turns WHERE ended IS NOT NULL ORDER BY number DESC LIMIT ?",
            (limit,),
        ).fetchall()
        return [
            (datetime.fromtimestamp(began, UTC), place, task, outcome) for began, place, task, outcome in rows[::-1]
        ]

    def spent(self, since: float) -> Spent:
        """What was spent since a moment."""
        return Spent(*self._sum("began >= ?", since))

    def spent_ever(self) -> Spent:
        """What was spent in all, also in turns that are forgotten."""
        tokens, cost, turns = self._sum("began >= ?", 0.0)
        earlier = self._notes.spent_before
        return Spent(tokens + int(earlier[0]), cost + earlier[1], turns + int(earlier[2]))

    def _sum(self, where: str, moment: float) -> tuple[int, float, int]:
        tokens, cost, turns = self._records.execute(
            f"SELECT coalesce(sum(tokens), 0), coalesce(sum(cost_usd), 0), count(*) FROM turns WHERE {where}", (moment,)
        ).fetchone()
        return tokens, cost, turns

    def _reopen(self) -> list[Mail]:
        worn_out = f"state = 'given' AND (crashes >= {MOST_CRASHES} OR given >= {MOST_GIVEN})"
        with self._records.change() as records:
            lost = [_mail(row) for row in records.execute(f"SELECT {_COLUMNS} FROM messages WHERE {worn_out}")]
            records.execute(f"UPDATE messages SET state = 'failed' WHERE {worn_out}")
            # What waited for an agent that was away has not grown old by it.
            records.execute("UPDATE messages SET state = 'unread', turn = NULL WHERE state = 'given'")
        return lost

    def _count(self) -> None:
        unread, stale = self.counts()
        self._open = unread - stale


def own_msgid(key: str) -> str:
    """By which news is known that the agent has of itself."""
    return f"local.own.{key}"


def _mail(row: tuple[int, str, str, int, str, str | None, str, str, float, int, int, str, int, int, int]) -> Mail:
    number, msgid, place, private, sender, account, kind, text, said, stale, given, remark, hops, question, over = row
    at, known = datetime.fromtimestamp(said, UTC), UserClass(kind)
    facts = (number, msgid, place, bool(private), sender, account, known, text, at, bool(stale))
    return Mail(*facts, given, remark, hops, question, overheard=bool(over))
