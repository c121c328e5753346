"""Taking messages as answers: who may, what it means, and what the sender is told."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from culture.clients.shared import answers
from culture.clients.shared.answers import ABORT, DENY, Kind, Reading, Tie
from culture.clients.shared.attention import without_call
from culture.clients.shared.questions import replies
from culture.clients.shared.questions.finding import Found, find
from culture.clients.shared.questions.model import Answer, Outcome, Question, answered_by, outcome_of
from culture.clients.shared.questions.permissions import ALWAYS, is_pattern, read_always
from culture.clients.shared.questions.store import QuestionStore
from culture.clients.shared.trust import Vote, decide, needed, rules, why_not
from culture.config.agents import TrustConfig
from culture.protocol.names import fold
from culture.protocol.vocabulary import UserClass
from culture.transport import Message


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of a message about a question."""

    handled: bool = True
    """Nothing is left to do with it; else the agent gets it as a message."""
    question: int = 0
    remark: str = ""
    """What the agent is told with the message."""
    counts: bool = False
    """The agent must hear of it, whoever said it and when."""


class Board(Protocol):
    """Where the questions hang."""

    def close(self, question: Question, answer: Answer, choice: str = "") -> bool:
        """End a question; whether the agent waits for it and has it now."""

    def abort_task(self, question: Question) -> None:
        """An answer to a question aborts the task that asked it."""

    def is_awaited(self, question: Question) -> bool:
        """Whether a call of the agent waits for its end."""

    def aside(self, question: Question, message: Message, said: str) -> bool:
        """Something about a question that is no answer; whether the agent waits for it and has it now."""


@dataclass(frozen=True, slots=True)
class Hearing:
    """Hears what is said to the agent while questions are open, and a while after."""

    nick: str
    store: QuestionStore
    board: Board
    trust: TrustConfig | None
    notify: Callable[[str, str], None]
    is_operator: Callable[[str, str], bool]
    whisper: Callable[[str], None]

    def hear(self, message: Message) -> Taken | None:
        """Take a message to the agent; None when it is about no question."""
        said = without_call(message.text, self.nick)
        said = message.text.strip() if said is None else said
        # What was counted when the daemon ended, and closed nothing yet, is taken as if it came for the first time.
        if len(numbers := answers.question_ids(said)) > 1:
            return self._many(numbers, said, message)
        if (question := self.store.counted(message.msgid)) is not None and not question.is_open:
            return self._known(question, message)
        found = find(message, said, self.store, anyone=self.trust is None)
        if found is None:
            return None
        if found.unknown is not None:
            return self._tell(message, replies.unknown(found.unknown, self.store.open, message.channel))
        if found.question is None:
            self.notify(message.sender, replies.which_one(self.nick, found.several, message.channel))
            return Taken(False, remark=replies.names_none(found.several))
        return self._about(found.question, found, message, said)

    def refusal(self, message: Message, why: str) -> tuple[str, bool] | None:
        """What to tell a sender who must not wake the agent and answers a question; None when they answer none.

        Whether the message is nothing but that answer: then there is nothing to keep of it.
        """
        said = without_call(message.text, self.nick)
        said = message.text.strip() if said is None else said
        found = find(message, said, self.store, anyone=self.trust is None)
        question = found.question if found is not None else None
        if found is None or question is None or not question.is_open:
            return None
        kind = self._read(question, said, self._tie(found, question, message)).kind
        if kind is Kind.ASIDE:
            return None
        trust = rules(self.trust, question.tool)
        known = why_not(trust, message.kind, message.sender, question.electorate)
        return replies.not_allowed(question, known or why), bool(question.options) and kind is Kind.ANSWER

    def _about(self, question: Question, found: Found, message: Message, said: str) -> Taken | None:
        tie = self._tie(found, question, message)
        if question.tool and (why := read_always(said, question.tool)) is not None:
            reading, refusal = why
            if refusal and question.is_open:
                self.notify(message.sender, f"{question.id}: {refusal}")
                return Taken() if is_pattern(said) else Taken(False, question.number, replies.no_answer(question))
        else:
            reading = self._read(question, said, tie)
        if not question.is_open:
            return self._too_late(question, found, message, reading)
        if message.missed and message.timestamp.timestamp() > question.deadline:
            return self._past(question, found, message, replies.late(question)) if reading.kind is Kind.ANSWER else None
        if reading.kind is Kind.ASIDE:
            return self._aside(question, message, said, tie)
        trust = rules(self.trust, question.tool)
        why_not_they = why_not(trust, message.kind, message.sender, question.electorate, message.account)
        if why_not_they is None and reading.choice == ALWAYS and message.kind is not UserClass.HUMAN:
            why_not_they = "only a person can allow something for good"
        if why_not_they is not None:
            return self._refuse(question, message, why_not_they, is_answer=reading.kind is Kind.ANSWER)
        if reading.kind is Kind.UNCLEAR:
            self.notify(message.sender, replies.unclear(self.nick, question))
            return Taken(False, question.number, replies.no_answer(question))
        acknowledged = found.named or bool(question.options) or self.trust is not None
        return self._count(question, message, said, reading.choice, acknowledged=acknowledged)

    def _tie(self, found: Found, question: Question, message: Message) -> Tie:
        if found.named:
            return Tie.NAMED
        if not question.is_open and not question.options:
            return Tie.AWAITED  # the same words once more
        is_there = fold(question.place) == fold(message.channel)
        return Tie.AWAITED if is_there and self.board.is_awaited(question) else Tie.LOOSE

    def _read(self, question: Question, said: str, tie: Tie) -> Reading:
        if question.options or self.trust is not None or tie is Tie.LOOSE:
            if answers.is_word(said, DENY, ABORT) and (question.options or tie is not Tie.LOOSE):
                return Reading(Kind.ANSWER, answers.without_ids(said).rstrip(".!").casefold())
            return answers.read(said, question.options, tie)
        # The contract's present rule: the first mention answers, whatever it says.
        return Reading(Kind.ANSWER, answers.without_ids(said))

    def _count(
        self, question: Question, message: Message, said: str, choice: str, *, acknowledged: bool = False
    ) -> Taken:
        vote = self._vote(question, message, said, choice)
        votes = self.store.vote(question, vote)
        trust = rules(self.trust, question.tool)
        verdict = decide(trust, votes, question.electorate)
        if verdict is None:
            latest = {fold(each.nick): each.choice for each in votes}
            alike = list(latest.values()).count(choice)
            wanted = needed(trust, question.electorate)
            return self._tell(message, replies.counted(question, choice, alike, wanted))
        answer = answered_by(question, verdict.choice, verdict.by)
        has_it = self.board.close(question, answer, verdict.choice if question.options else "")
        if answer.outcome is Outcome.ABORTED:
            self.board.abort_task(question)
        if acknowledged:
            self.notify(message.sender, replies.decided(question, verdict.choice))
        if has_it:
            return Taken()
        return Taken(False, question.number, replies.remark(question, answer), counts=True)

    def _vote(self, question: Question, message: Message, said: str, choice: str) -> Vote:
        operator = self.is_operator(question.place, message.sender)
        text = answers.without_ids(said)
        return Vote(message.sender, message.kind, choice, message.account, operator, message.msgid, text)

    def _known(self, question: Question, message: Message) -> Taken:
        """A message that was counted before the daemon ended, and comes again: the agent may not have had it."""
        answer = question.answer
        if answer is None or answer.msgid != message.msgid or question.told:
            return Taken()
        return Taken(False, question.number, replies.remark(question, answer), counts=True)

    def _refuse(self, question: Question, message: Message, why: str, *, is_answer: bool) -> Taken:
        self.notify(message.sender, replies.not_allowed(question, why))
        if question.options and is_answer:
            return Taken()
        # It may be about something else, which the agent shall read, but not as an answer.
        return Taken(False, question.number, replies.refused(question, why))

    def _aside(self, question: Question, message: Message, said: str, tie: Tie) -> Taken | None:
        if tie is not Tie.NAMED and fold(question.place) != fold(message.channel):
            return None
        if tie is Tie.LOOSE and not question.options:
            return self._perhaps(question, message)
        if self.trust is None:
            return None
        if self.board.aside(question, message, said):
            return Taken()
        if question.tool:
            self.notify(message.sender, replies.waits(question))
        return Taken(False, question.number, replies.about(question))

    def _perhaps(self, question: Question, message: Message) -> Taken:
        """Somebody speaks where an open question is for which nobody waits: the agent judges what it is."""
        trust = rules(self.trust, question.tool)
        why = why_not(trust, message.kind, message.sender, question.electorate, message.account)
        return Taken(False, question.number, replies.refused(question, why) if why else replies.perhaps(question))

    def _too_late(self, question: Question, found: Found, message: Message, reading: Reading) -> Taken | None:
        answer = question.answer
        if answer is None or reading.kind is not Kind.ANSWER:
            return None
        if self._overrules(question, found, message, reading.choice):
            self.store.overrule(question)
            self.notify(message.sender, replies.overrules(question, reading.choice))
            remark = replies.overruled(question, message.sender, reading.choice)
            self.whisper(f"{message.sender} {remark}.")
            return Taken(False, question.number, remark, counts=True)
        if not question.options and not found.named and answer.by != message.sender:
            return None
        same = answer.by == message.sender and reading.choice in (question.choice, answer.text)
        if same and (found.named or not question.options):
            self.notify(message.sender, replies.twice(question))
            return Taken()
        told = replies.twice(question) if same else replies.answered_before(question, message.sender)
        return self._past(question, found, message, told)

    def _past(self, question: Question, found: Found, message: Message, told: str) -> Taken:
        """The sender is told that it changes nothing; whatever is more than a choice for it the agent reads."""
        self.notify(message.sender, told)
        said = without_call(message.text, self.nick) or message.text
        is_bare = bool(question.options) and answers.read(said, question.options, Tie.LOOSE).kind is Kind.ANSWER
        if found.named and is_bare:
            return Taken()
        return Taken(False, question.number, replies.past(question))

    def _overrules(self, question: Question, found: Found, message: Message, choice: str) -> bool:
        """A person goes above agents, and an operator above a person who is none; once. A yes names its question."""
        answer = question.answer
        if not found.named and outcome_of(choice) is Outcome.ANSWERED:
            return False
        if self.trust is None or answer is None or answer.by is None or question.overruled:
            return False
        if message.kind is not UserClass.HUMAN or choice in (question.choice, answer.text):
            return False
        if why_not(self.trust, message.kind, message.sender, question.electorate, message.account) is not None:
            return False
        if answer.outcome is Outcome.TIMED_OUT:
            return False
        if answer.kind != UserClass.HUMAN.value:
            return True
        before = [vote for vote in self.store.votes(question) if vote.msgid == answer.msgid]
        was_operator = bool(before) and before[0].operator
        return self.is_operator(question.place, message.sender) and not was_operator

    def _many(self, numbers: tuple[int, ...], said: str, message: Message) -> Taken | None:
        if not answers.is_word(said, DENY):
            looks_like_one = answers.is_word(said, *answers.CHOICES)
            return self._tell(message, replies.one_at_a_time()) if looks_like_one else None
        denied = []
        for question in filter(None, map(self.store.get, numbers)):
            trust = rules(self.trust, question.tool)
            refusal = why_not(trust, message.kind, message.sender, question.electorate, message.account)
            if question.is_open and refusal is None:
                self._count(question, message, said, DENY)
                denied.append(question)
        return self._tell(message, replies.denied([each for each in denied if self._is_closed(each)]))

    def _is_closed(self, question: Question) -> bool:
        now = self.store.get(question.number)
        return now is None or not now.is_open

    def _tell(self, message: Message, text: str) -> Taken:
        self.notify(message.sender, text)
        return Taken()
