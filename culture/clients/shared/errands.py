"""What whoever looks after the agent gives it to do: each errand has a turn of its own, whose end can be waited for."""

import asyncio

from culture.clients.shared.desk import Errand
from culture.clients.shared.inbox import TEAM, Handled, Inbox
from culture.clients.shared.notes import Notes
from culture.clients.shared.prompts import Prompt
from culture.clients.shared.records import Records
from culture.clients.shared.turn import Turn
from culture.protocol.vocabulary import ClientTag, UserClass
from culture.runtime import REAL, Runtime
from culture.transport import Message

WAITING, WORKING = "waiting", "working"
_ABORTED, _FAILED = "aborted", "failed"


def is_over(errand: Errand) -> bool:
    """Whether nothing more becomes of it."""
    return errand["outcome"] not in (WAITING, WORKING)


class Errands:
    """The errands of one agent. They lie in its inbox, so that they survive what messages survive."""

    def __init__(self, records: Records, inbox: Inbox, notes: Notes, *, runtime: Runtime = REAL) -> None:
        self._records = records
        self._inbox = inbox
        self._notes = notes
        self._runtime = runtime
        self._changed = asyncio.Event()
        inbox.on_over = self._wake

    def take(self, key: str, text: str, place: str | None) -> bool:
        """Keep it for the agent; False when there was one with this key, which stays as it is."""
        said = Message(
            place or "",
            TEAM,
            text,
            self._runtime.utc(),
            _msgid(key),
            None,
            UserClass.BOT,
            private=not place,
            tags={ClientTag.HOPS.value: "0"},
        )
        return self._inbox.receive(said)

    def get(self, key: str) -> Errand | None:
        """How far it has come; None when there is none with this key."""
        row = self._records.execute(
            "SELECT state, outcome, coalesce(tokens, 0), coalesce(cost_usd, 0), coalesce(answers.text, ''),"
            " context_pct, session FROM messages LEFT JOIN turns ON turns.number = messages.turn"
            " LEFT JOIN answers ON answers.msgid = messages.msgid WHERE messages.msgid = ? AND sender = ?",
            (_msgid(key), TEAM),
        ).fetchone()
        if row is None:
            return None
        state, ended, tokens, cost_usd, text, context_pct, session = row
        outcome = _outcome(Handled(state), ended)
        return {
            "key": key,
            "outcome": outcome,
            "text": ended or "" if outcome == _FAILED else text,
            "tokens": tokens,
            "cost_usd": cost_usd,
            "context_pct": context_pct,
            "session": session,
        }

    async def ended(self, key: str) -> Errand | None:
        """Wait until its turn is over."""
        while (found := self.get(key)) is not None and not is_over(found):
            await self._changed.wait()
        return found

    def answered(self, prompt: Prompt, turn: Turn) -> None:
        """A turn is about to be noted as over; part of the same change."""
        for mail in prompt.mails:
            if mail.is_errand:
                # Half a character, which a model can say, has no UTF-8.
                text = turn.text.encode(errors="replace").decode()
                self._records.execute(
                    "INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?)",
                    (mail.msgid, text, turn.context_pct, self._notes.session),
                )

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


def _msgid(key: str) -> str:
    return f"local.{key}"


def _outcome(state: Handled, ended: str | None) -> str:
    match state:
        case Handled.ANSWERED:
            # Without a turn it was taken back before it had one.
            return ended or _ABORTED
        case Handled.FAILED:
            return _FAILED
        case Handled.GIVEN:
            return WORKING
    return WAITING
