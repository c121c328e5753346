"""What comes from IRC: each message is kept, and given to whom it is for."""

from collections.abc import Callable, Coroutine
from typing import Any

from culture.clients.shared import attention
from culture.clients.shared.attention import Command
from culture.clients.shared.condition import is_stopped, unavailable
from culture.clients.shared.controls import CONTROLS, Order
from culture.clients.shared.held import Scope
from culture.clients.shared.mail_replies import FAILED
from culture.clients.shared.parts import Parts
from culture.clients.shared.service import Service
from culture.clients.shared.throttle import Throttle
from culture.clients.shared.vouching import NOBODY
from culture.protocol.vocabulary import ClientTag, ControlWord
from culture.transport import Message

TELL_AGAIN = 60.0
"""Somebody who calls an agent that cannot answer is told so at most every so many seconds."""
TELL_HELD = 300.0
"""And a sender whose messages are held; all of them together are told MOST_TOLD times in this time."""
MOST_TOLD = 20
LET_GO_ON = "with this message its sender let you go on"


class Hearing:
    """Hears for the agent: a control word, an answer to a question that waits, a message for the agent itself.

    A message of a sender for whom nobody vouches goes none of these ways: it is held until a person releases it.
    """

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
        self._unavailable = Throttle(TELL_AGAIN, runtime=parts.runtime)
        self._held = Throttle(TELL_HELD, MOST_TOLD, runtime=parts.runtime)

    def on_chat(self, message: Message) -> None:
        """Keep a message, and see to it when it is for the agent."""
        parts = self._parts
        is_speech = not (message.own or message.notice)
        why = parts.vouching.why_not(message) if is_speech else None
        # While its own ghost has the nick, the agent is called by either.
        nicks = (parts.config.nick, parts.transport.nick)
        is_called = attention.is_addressed(message, nicks, self._may_call_all)
        here = "mention" if message.private else parts.config.attention(message.channel)
        if is_speech:
            self._service.last_heard = message
        if why is not None:
            overheard = not is_called and attention.is_overheard(message, nicks, here)
            self._hold(message, why, to_agent=overheard or (is_called and here != "none"), overheard=overheard)
            return
        if is_speech:
            parts.buffer.add(message)
        if is_called:
            self._called(message, begins_turns=here != "none")
        elif attention.is_overheard(message, nicks, here):
            self._overheard(message)
        else:
            if message.notice and not message.own and message.text.startswith(FAILED):
                self._given_up(message)
            parts.notes.heard(message.msgid, message.timestamp)

    def _hold(self, message: Message, why: str, *, to_agent: bool, overheard: bool) -> None:
        """Keep a message from the agent until a person releases it; whoever said it to the agent is told."""
        parts = self._parts
        if parts.inbox.knows(message.msgid) or parts.held.knows(message.msgid):
            return
        if not to_agent:
            parts.held.withhold(message)
            parts.reporting.wake()
            return
        refusal = None if overheard else parts.questions.refusal(message, why)
        if refusal is not None and self._is_answer_of_agent(message):
            return
        text, is_over = refusal or (self._held_text(why), False)
        if is_over:
            parts.notes.heard(message.msgid, message.timestamp)
        elif parts.inbox.receive(message, unvouched=True, overheard=overheard):
            parts.held.bound()
            parts.reporting.wake()
        if self._held.allows(message.sender, text):
            parts.outbox.say(message.sender, text, notice=True)

    def _is_answer_of_agent(self, message: Message) -> bool:
        """Take an agent's answer where it wakes nobody: the trust rules say whether it counts, where there are any."""
        parts = self._parts
        if parts.config.trust is None or not parts.vouching.is_known(message):
            return False
        taken = parts.questions.offer(message)
        if taken is None or not (taken.handled or taken.counts):
            return False
        parts.inbox.receive(message, handled=taken.handled, question=taken.question, remark=taken.remark)
        parts.reporting.wake()
        parts.work.wake()
        return True

    def _held_text(self, why: str) -> str:
        text = f"held: {why}; a person can release it with `@{self._parts.config.nick} go on`"
        if why == NOBODY and not self._parts.transport.is_ours:
            # Perhaps it is the owner, who could not tell the agent to go on either.
            text += ". This server does not tell who is a person: my owner lists them (`people` in agents.yaml)"
        return text

    def _called(self, message: Message, *, begins_turns: bool) -> None:
        """Give it to whom it is for: a control word, a question that waits, the agent."""
        parts = self._parts
        if parts.inbox.knows(message.msgid):
            return
        command = attention.command(message, parts.config.nick, parts.held.holds, stopped=is_stopped(parts))
        stale = self._is_stale(message)
        # Where a choice is open, abort is an answer to it.
        is_abort = command is not None and command.word is ControlWord.ABORT
        is_choice = is_abort and parts.questions.is_asked_there(message)
        obeyed = command is not None and command.word in CONTROLS and not stale and not is_choice
        taken = None if obeyed else parts.questions.offer(message)
        handled = obeyed or (taken is not None and taken.handled)
        counts = taken is not None and taken.counts
        if not (begins_turns or handled or counts):
            parts.notes.heard(message.msgid, message.timestamp)
            return
        question, remark = (taken.question, taken.remark) if taken is not None else (0, "")
        if command is not None and obeyed and command.reason:
            # A reason is a word to the agent: it reads it from whoever said it.
            handled, remark = False, LET_GO_ON
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
        elif command is not None and obeyed:
            self._spawn(self._obey(command, message))
        elif not handled:
            self._tell_unavailable(message)
            parts.work.wake()

    def _overheard(self, message: Message) -> None:
        """Give the agent what was said in a room of which it takes every message."""
        parts = self._parts
        why = parts.loops.why_held(message)
        if not parts.inbox.receive(message, stale=self._is_stale(message), held=why is not None, overheard=True):
            return
        parts.reporting.wake()
        if why is not None:
            parts.loops.held(message, why)
        else:
            parts.work.wake()

    def _given_up(self, message: Message) -> None:
        """Another agent never will answer: a notice is as little believed of a stranger as anything else."""
        if self._parts.vouching.is_known(message):
            self._parts.questions.given_up(message)

    def _is_stale(self, message: Message) -> bool:
        return attention.is_stale(message, self._parts.runtime.utc(), self._parts.config.stale)

    def _tell_unavailable(self, message: Message) -> None:
        """Somebody calls while the agent cannot answer: tell them at once, but not every time."""
        why = unavailable(self._parts)
        if why is not None and self._unavailable.allows(message.sender, why):
            self._parts.outbox.say(message.sender, f"I am {why}; your message is kept and answered later.", notice=True)

    async def _obey(self, command: Command, message: Message) -> None:
        place = "" if message.private else message.channel
        order = Order(Scope(command.sender, place), message.sender, command.reason, message.channel)
        said = await CONTROLS[command.word](self._service, order)
        # Whoever waits for an answer, such as `culture ask`, knows by the reply that this is it.
        self._parts.outbox.say(message.sender, said, notice=True, tags={ClientTag.REPLY.value: message.msgid})
