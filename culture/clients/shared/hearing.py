"""What comes from IRC: each message is kept, and given to whom it is for."""

import time
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from typing import Any

from culture.clients.shared import attention
from culture.clients.shared.condition import unavailable
from culture.clients.shared.controls import CONTROLS
from culture.clients.shared.parts import Parts
from culture.clients.shared.service import Service
from culture.clients.shared.work import FAILED
from culture.protocol.names import fold
from culture.protocol.vocabulary import Control
from culture.transport import Message

TELL_AGAIN = 60.0
"""Somebody who calls an agent that cannot answer is told so at most every so many seconds."""


class Hearing:
    """Hears for the agent: a control word, an answer to a question that waits, a message for the agent itself."""

    def __init__(
        self,
        parts: Parts,
        service: Service,
        may_call_all: Callable[[str], bool],
        spawn: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self._parts = parts
        self._service = service
        self._may_call_all = may_call_all
        self._spawn = spawn
        self._told: dict[tuple[str, str], float] = {}

    def on_chat(self, message: Message) -> None:
        """Keep a message, and see to it when it is for the agent."""
        parts = self._parts
        if not (message.own or message.notice):
            parts.buffer.add(message)
            self._service.last_heard = message
        # While its own ghost has the nick, the agent is called by either.
        nicks = (parts.config.nick, parts.transport.nick)
        if attention.is_addressed(message, nicks, self._may_call_all):
            self._called(message)
        else:
            if message.notice and not message.own and message.text.startswith(FAILED):
                parts.questions.given_up(message)
            parts.notes.heard(message.msgid, message.timestamp)

    def _called(self, message: Message) -> None:
        """Give it to whom it is for: a control word, a question that waits, the agent."""
        parts = self._parts
        if parts.inbox.knows(message.msgid):
            return
        word = attention.control(message, parts.config.nick)
        stale = attention.is_stale(message, datetime.now(UTC), parts.config.stale)
        # Where a choice is open, abort is an answer to it.
        is_choice = word is Control.ABORT and parts.questions.is_asked_there(message)
        obeyed = word in CONTROLS and not stale and not is_choice
        taken = None if obeyed else parts.questions.offer(message)
        handled = obeyed or (taken is not None and taken.handled)
        counts = taken is not None and taken.counts
        question, remark = (taken.question, taken.remark) if taken is not None else (0, "")
        why = parts.loops.why_held(message) if not handled and not counts else None
        is_new = parts.inbox.receive(
            message,
            stale=stale and not counts,
            handled=handled,
            held=why is not None,
            question=question,
            remark=remark,
        )
        if not is_new:
            return
        parts.reporting.wake()
        if why is not None:
            parts.loops.held(message, why)
        elif word is not None and obeyed:
            self._spawn(self._obey(word, message.sender))
        elif not handled:
            self._tell_unavailable(message)
            parts.work.wake()

    def _tell_unavailable(self, message: Message) -> None:
        """Somebody calls while the agent cannot answer: tell them at once, but not every time."""
        why = unavailable(self._parts)
        if why is None:
            return
        now, key = time.monotonic(), (fold(message.sender), why)
        self._told = {told: at for told, at in self._told.items() if now - at < TELL_AGAIN}
        if key in self._told:
            return
        self._told[key] = now
        self._parts.outbox.say(message.sender, f"I am {why}; your message is kept and answered later.", notice=True)

    async def _obey(self, word: Control, sender: str) -> None:
        said = await CONTROLS[word](self._service)
        self._parts.outbox.say(sender, said, notice=True)
