"""The questions that wait: posted, kept, closed by an answer or by their deadline, and told to the agent once."""

import asyncio
import logging
import sqlite3
from collections.abc import Sequence
from typing import Any

from culture.clients.shared import answers
from culture.clients.shared.answers import ABORT
from culture.clients.shared.inbox import own_msgid
from culture.clients.shared.questions import posting, replies
from culture.clients.shared.questions.around import Around
from culture.clients.shared.questions.deadlines import Deadlines
from culture.clients.shared.questions.hearing import Hearing, Taken
from culture.clients.shared.questions.model import Answer, Outcome, Question, interrogated, still_asked
from culture.clients.shared.questions.store import NAMELESS, QuestionStore
from culture.clients.shared.questions.waiting import Waiting
from culture.clients.shared.trust import is_confirmed, why_not
from culture.config.agents import AlertEvent, TrustConfig
from culture.protocol.names import fold, is_channel
from culture.protocol.text import fact_in_prompt
from culture.protocol.vocabulary import ClientTag
from culture.transport import Message, NotSent

log = logging.getLogger(__name__)

MOST_OPEN = 200
MOST_ASIDES = 20
"""So many questions back are put to a waiting agent; further ones it reads after its question."""
ASK_TIMEOUT = 300.0
"""How long a question waits where nobody has said."""
OUTAGE = 5.0
"""So long a question that has ended waits for the connection, as it may have been answered in time."""
_LOOK_AGAIN = 0.5
LOOK_AFTER_TROUBLE = 5.0


class TooManyQuestions(Exception):
    """The agent asks faster than anybody answers."""


class NoSuchQuestion(Exception):
    """The agent names a question that it did not ask."""


class Questions:
    """The questions of one agent."""

    def __init__(self, nick: str, store: QuestionStore, around: Around, trust: TrustConfig | None) -> None:
        self._nick = nick
        self._store = store
        self._around = around
        self._trust = trust
        self._waiting = Waiting(around.changed, self.unheard)
        self._posting: set[int] = set()
        self._asked_back: dict[int, str] = {}  # the message of whoever asked back last
        self._deadlines = Deadlines(store.clock, self._expire)
        self._hearing = Hearing(nick, store, self, trust, around.notify, around.is_operator, around.whisper)
        store.forget_old()

    @property
    def waiting(self) -> int:
        """For how many the agent holds its breath."""
        return len(self._waiting)

    @property
    def open(self) -> list[Question]:
        """Those that wait for an answer, the oldest first."""
        return self._store.open

    @property
    def recent(self) -> list[Question]:
        """Those that were closed last, the newest first."""
        return self._store.recent(MOST_OPEN)

    def as_data(self, questions: Sequence[Question]) -> list[dict[str, Any]]:
        """These as JSON has them, answers with what the server found of them."""
        return self._store.as_data(questions)

    def begin(self) -> None:
        """What was missed is here: from now on deadlines count."""
        for question in self.open:
            self._deadlines.arm(question.number, question.deadline)

    async def post_unposted(self) -> None:
        """Post what a daemon that was killed had only noted: nobody could answer it."""
        for question in self.open:
            try:
                await self._publish(question)
            except NotSent as refusal:
                log.warning("%s: %s could not be posted: %s", self._nick, question.id, refusal)

    def stop(self) -> None:
        """Let the deadlines pass; the next start sees to them."""
        self._deadlines.stop()

    async def ask(
        self,
        place: str,
        text: str,
        timeout: float | None = None,
        options: Sequence[str] = (),
        tool: str = "",
        *,
        detail: str = "",
        bound: float | None = None,
        in_turn: bool = False,
    ) -> Answer:
        """Post the question and wait, for at most ``bound`` seconds; one that was posted before is taken up again.

        A call of the agent's own, ``in_turn``, waits no longer than its turn.
        """
        question = self._store.same(place, text, options, tool, detail)
        if question is None:
            question = await self._new(place, text, timeout, tuple(options), tool, detail)
        elif (kept := self._kept(question)) is not None:
            return kept
        elif timeout is not None and self._store.clock() + timeout < question.deadline:
            question = self._store.shorten(question, self._store.clock() + timeout)
        self._deadlines.arm(question.number, question.deadline)
        with self._waiting.one(question.number, in_turn=in_turn) as answer:
            await self._publish(question)
            return await _within(bound, question, answer)

    async def again(
        self, id: str, reply: str | None = None, *, bound: float | None = None, in_turn: bool = False
    ) -> Answer:
        """Take the wait for a question up again, after a reply to whoever asked back; bounded as in ``ask``."""
        question = self._store.get(int(id[1:])) if id[:1] in "qQ" and id[1:].isdecimal() and len(id) < 12 else None
        if question is None:
            known = posting.listed(self.open) or "none"
            raise NoSuchQuestion(f"you have asked no question {id}; open: {known}")
        # It waits already while it replies: who reads that may answer before the server has called it stored.
        with self._waiting.one(question.number, in_turn=in_turn) as answer:
            if reply:
                await self._reply(question, reply, answer)
            if answer.done():
                return answer.result()
            question = self._store.get(question.number) or question
            if (kept := self._kept(question)) is not None:
                return kept
            mail = self._around.next_aside(question.number, question.place)
            if mail is not None:
                self._asked_back[question.number] = mail.msgid
                return interrogated(question, mail.sender, mail.account, mail.kind, mail.text, mail.msgid)
            await self._publish(question)
            return await _within(bound, question, answer)

    def offer(self, message: Message) -> Taken | None:
        """Take a message to the agent as being about a question; None when it is about none."""
        return self._hearing.hear(message)

    def refusal(self, message: Message, why: str) -> tuple[str, bool] | None:
        """What to tell a sender who must not wake the agent and answers a question; None when they answer none.

        Whether the message is nothing but that answer.
        """
        return self._hearing.refusal(message, why)

    def given_up(self, message: Message) -> None:
        """Somebody's daemon tells that they never will answer: who was asked alone ends the question by that.

        Nobody does whose answer would not count either, and nobody leave to use a tool.
        """
        question = self._store.posted_as(message.tags.get(ClientTag.REPLY.value, NAMELESS))
        if question is None or not question.is_open or question.tool:
            return
        if why_not(self._trust, message.kind, message.sender, question.electorate, message.account) is not None:
            return
        if self._around.called(question.place, question.text) == {fold(message.sender)}:
            confirmed = is_confirmed(message.kind, message.account)
            who = (message.sender, message.account, message.kind.value, confirmed, message.msgid, question.id)
            self._end(question, Answer(Outcome.ABORTED, message.text, *who), ABORT)

    def is_asked_there(self, message: Message) -> bool:
        """Whether a choice is open where this was said."""
        return any(
            question.options and (message.private or fold(question.place) == fold(message.channel))
            for question in self.open
        )

    def note(self) -> str:
        """What an agent must know that has forgotten what it asked; empty when nothing is open."""
        if not self.open:
            return ""
        return f"(you have asked and wait for an answer: {fact_in_prompt(posting.listed(self.open))})"

    def turn_over(self) -> None:
        """The agent's turn is over, and so is what it had to be told in it."""
        self.release_calls()
        self._store.settle()

    def release_calls(self) -> None:
        """The agent's calls wait no longer, and the answer comes as a prompt.

        They may run in the background of its program, where what they are told counts as nobody's word.
        """
        self._waiting.leave_turn(lambda number: Answer(Outcome.ASKED, question=f"q{number}"))

    def abandon(self, task: str) -> None:
        """The task that asked is aborted."""
        for question in self.open:
            if question.task == task or question.number in self._waiting:
                self.close(question, Answer(Outcome.ABORTED, question=question.id), ABORT)

    def abort_task(self, question: Question) -> None:
        """An answer to a question aborts the task that asked it."""
        self._around.aborted(question.task)

    def close(self, question: Question, answer: Answer, choice: str = "") -> bool:
        """End a question; whether the agent waits for it and has it now."""
        # What cannot be noted is not told either: the message comes again.
        told = self._waiting.is_open(question.number)
        self._store.close(question, answer, choice, told=told)
        self._waiting.tell(question.number, answer)
        self._deadlines.disarm(question.number)
        self._asked_back.pop(question.number, None)
        self._around.changed()
        return told

    def is_awaited(self, question: Question) -> bool:
        """Whether a call of the agent waits for its end."""
        return self._waiting.is_open(question.number)

    def _end(self, question: Question, answer: Answer, choice: str = "") -> None:
        """End a question by no message to the agent: one that does not wait for it is told by a prompt."""
        with self._store.at_once():
            if not self.close(question, answer, choice):
                self._tell(question, answer)

    def _tell(self, question: Question, answer: Answer) -> None:
        """Leave the agent news of how a question ended; who waits for leave to use a tool has gone with its turn."""
        if not question.tool:
            self._around.news(question.key, question.place, replies.news(question, answer), question.number)

    def aside(self, question: Question, message: Message, said: str) -> bool:
        """Something about a question that is no answer; whether the agent waits for it and has it now."""
        if not question.discussed:
            text = posting.discussion(self._nick, question, message.sender)
            self._fire("agent_question", text, question)
        question = self._store.discuss(question)
        if question.tool or question.asides > MOST_ASIDES:
            return False
        back = interrogated(question, message.sender, message.account, message.kind, said, message.msgid)
        told = self._waiting.tell(question.number, back)
        if told:
            self._asked_back[question.number] = message.msgid
        return told

    def unheard(self, answer: Answer) -> None:
        """The call was cut off at the moment in which it was told this: it is as if none had waited."""
        question = self._store.get(int((answer.question or "q0")[1:]))
        if question is None:
            return
        if question.answer is not None and answer == question.answer:
            self._store.tell(question, told=False)
            remark = replies.remark(question, answer)
        else:
            remark = replies.about(question)
        if answer.outcome is Outcome.TIMED_OUT:
            self._tell(question, answer)
        elif answer.msgid is not None:
            self._around.reopen(answer.msgid, question.number, remark)

    def pass_on(self, answer: Answer) -> None:
        """Only the choice of an answer was used: the agent reads the words beside it as a message."""
        question = self._store.get(int((answer.question or "q0")[1:]))
        if question is None or answer.msgid is None:
            return
        if answers.says_more(answer.text or "", question.options):
            self._around.reopen(answer.msgid, question.number, replies.remark(question, answer))

    async def _new(
        self, place: str, text: str, timeout: float | None, options: tuple[str, ...], tool: str, detail: str
    ) -> Question:
        if len(self.open) >= MOST_OPEN:
            raise TooManyQuestions(f"{MOST_OPEN} questions are open: wait for an answer to one of them")
        trust, now = self._trust, self._store.clock()
        votes = trust is not None and trust.agents != "never"
        electorate = await self._around.agents(place, self._nick) if votes else ()
        if timeout is None:
            timeout = trust.timeout if trust is not None else ASK_TIMEOUT
        # A permission is never given by silence, whatever the rules.
        action = trust.timeout_action if trust is not None else "deny" if tool else ""
        # Looking around takes a moment, in which the same may have been asked by another call of the agent's.
        if (same := self._store.same(place, text, options, tool, detail)) is not None and same.is_open:
            return same
        task = self._around.task()
        question = Question(0, place, text, options, tool, electorate, task, now, now + timeout, action)
        return self._store.add(question, detail)

    async def _publish(self, question: Question) -> None:
        # Who posts several has looked at them before the first: each may be posted, closed or taken back since.
        current = self._store.get(question.number)
        if current is None or not current.is_open or current.msgids or current.number in self._posting:
            return
        self._posting.add(current.number)
        try:
            await self._post(current)
        finally:
            self._posting.discard(current.number)

    async def _post(self, question: Question) -> None:
        others = any(fold(each.place) == fold(question.place) and each.number != question.number for each in self.open)
        try:
            lines = posting.lines(self._nick, question, self._store.detail(question.number), others=others)
            said = await self._around.post_once(question.key, question.place, lines)
        except NotSent as refusal:
            if refusal.uncertain:
                # People may have it: it stays, and is posted when the connection is back if they have not.
                log.warning("%s: %s may not be posted yet: %s", self._nick, question.id, refusal)
                return
            self._around.once.forget(question.key)
            self._store.remove(question.number)
            self._waiting.refuse(question.number, refusal)
            raise
        # Meanwhile it may have been closed, talked about, or given less time.
        current = self._store.get(question.number)
        if current is not None and current.is_open:
            self._store.posted(current, said or (NAMELESS,))
        self._around.once.forget(question.key)
        self._fire("agent_question", posting.alert(self._nick, question), question)

    async def _reply(self, question: Question, text: str, answer: "asyncio.Future[Answer]") -> None:
        try:
            asked_back = self._asked_back.get(question.number, "")
            said = await self._around.post(question.place, posting.ANSWER_PREFIX + text, asked_back)
        except NotSent:
            # What came meanwhile the agent is told by this call, and by nothing else.
            if not answer.done():
                raise
            return
        # Who replies to that answers the question.
        current = self._store.get(question.number)
        if current is not None and current.is_open and current.msgids and said:
            self._store.posted(current, (*current.msgids, *said))

    def _kept(self, question: Question) -> Answer | None:
        """The answer that came while no call waited, which the agent has now, and not in its mail as well."""
        if question.answer is not None:
            self._store.tell(question)
            for msgid in (question.answer.msgid, own_msgid(question.key)):
                if msgid is not None:
                    self._around.read(msgid)
        return question.answer

    def _expire(self, number: int) -> None:
        try:
            self._end_in_time(number)
        except sqlite3.Error:
            # An agent that waits for this question would wait for ever.
            log.exception("%s: q%d could not be ended", self._nick, number)
            self._deadlines.after(number, LOOK_AFTER_TROUBLE)

    def _end_in_time(self, number: int) -> None:
        question = self._store.get(number)
        if question is None or not question.is_open:
            return
        if question.deadline > self._store.clock():
            self._deadlines.arm(number, question.deadline)
            return
        if not self._around.transport.settled and not self._is_over(question):
            self._deadlines.after(number, _LOOK_AGAIN)
            return
        if self._was_spoken_of(question):
            self.close(question, Answer(Outcome.TIMED_OUT, question=question.id))
            return
        self._fire("agent_timeout", posting.timeout(self._nick, question), question)
        answer = Answer(Outcome.TIMED_OUT, question=question.id, action=question.action or None)
        awaited = self.is_awaited(question)
        self._end(question, answer)
        if question.action:
            self._around.notify(question.place, replies.silence(self._nick, question))
            self._around.silence(question.action, question, awaited)

    def _fire(self, event: AlertEvent, text: str, question: Question) -> None:
        """Call people because of a question; what is asked in private is told without what it lets one choose."""
        options = question.options if is_channel(question.place) else ()
        self._around.fire(event, text, place=question.place, question=question.id, options=options)

    def _was_spoken_of(self, question: Question) -> bool:
        """Whether the agent, which waits no longer, was given what may be the answer: then there was no silence."""
        return not (question.options or self.is_awaited(question)) and self._store.has_mail(question)

    def _is_over(self, question: Question) -> bool:
        """Whether it is of no use to wait for what may have been said in time while there is no connection."""
        return question.number in self._waiting and self._store.clock() - question.deadline >= OUTAGE


async def _within(bound: float | None, question: Question, answer: "asyncio.Future[Answer]") -> Answer:
    """The answer, or that there is none yet: a program moves a command that takes longer to its background."""
    await asyncio.wait([answer], timeout=bound)
    return answer.result() if answer.done() else still_asked(question)
