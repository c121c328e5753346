"""Which question a message is about."""

from collections.abc import Sequence
from dataclasses import dataclass

from culture.clients.shared import answers
from culture.clients.shared.answers import Kind, Tie
from culture.clients.shared.questions.model import Question
from culture.clients.shared.questions.store import NAMELESS, QuestionStore
from culture.protocol.names import fold, is_channel
from culture.protocol.vocabulary import ClientTag, UserClass
from culture.transport import Message

RECENT = 3600.0
"""For so long after a question's end a bare yes or no is still taken as meant for it."""
TWICE_WITHIN = 60.0
"""Within so long the same words of the same person are the same answer to an open question."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a message is about: one question, one of several, or one that there is not."""

    question: Question | None = None
    several: Sequence[Question] = ()
    unknown: int | None = None
    named: bool = False
    """By its id, or as a reply to it."""


def find(message: Message, said: str, store: QuestionStore, *, anyone: bool) -> Found | None:
    """The question that this message, ``said`` without the call, is about; None when it is about none."""
    replied = store.posted_as(message.tags.get(ClientTag.REPLY.value, NAMELESS))
    numbers = answers.question_ids(said)
    if len(numbers) == 1:
        return _named(numbers[0], said, store)
    if replied is not None:
        return Found(replied, named=True)
    here = _here(message, store.open)
    if _is_reply_to_other(message, here):
        return None
    if not here:
        return _closed(message, said, store)
    if len(here) == 1:
        return Found(here[0])
    return _of_several(said, here, anyone=anyone)


def _named(number: int, said: str, store: QuestionStore) -> Found | None:
    question = store.get(number)
    if question is not None:
        return Found(question, named=True)
    looks_like_one = answers.is_word(said, *answers.CHOICES, answers.DENY)
    return Found(unknown=number) if looks_like_one else None


def _is_reply_to_other(message: Message, here: Sequence[Question]) -> bool:
    """Whether a person replies to something that is none of these; a daemon's replies are to what called its agent."""
    is_reply = message.kind is UserClass.HUMAN and ClientTag.REPLY.value in message.tags
    return is_reply and all(each.msgids and NAMELESS not in each.msgids for each in here)


def _here(message: Message, questions: Sequence[Question]) -> list[Question]:
    """The open questions of the place; in private else those of any channel."""
    asked_here = [each for each in questions if fold(each.place) == fold(message.channel)]
    return asked_here or [each for each in questions if _may_mean(message, each)]


def _may_mean(message: Message, question: Question) -> bool:
    """Whether a message that names no question may be meant for this one: not what another was asked in private."""
    return fold(question.place) == fold(message.channel) or (message.private and is_channel(question.place))


def _of_several(said: str, here: Sequence[Question], *, anyone: bool) -> Found | None:
    """Choices are asked back; an open question takes what is no choice, if it is the only one."""
    choices = [each for each in here if each.options]
    free = [each for each in here if not each.options]
    if anyone and not choices:
        return Found(here[0])
    if any(answers.read(said, each.options).kind is not Kind.ASIDE for each in choices):
        return Found(several=here)
    if len(free) == 1:
        return Found(free[0])
    is_answer = bool(free) and answers.read(said, ()).kind is Kind.ANSWER
    return Found(several=here) if is_answer else None


def _closed(message: Message, said: str, store: QuestionStore) -> Found | None:
    """Nothing is open here: a bare answer comes late, the same one twice."""
    now = store.clock()
    last = store.last_closed(lambda question: _may_mean(message, question), now - RECENT)
    if last is None or last.answer is None:
        return None
    if last.options:
        return Found(last) if answers.read(said, last.options, Tie.LOOSE).kind is Kind.ANSWER else None
    again = last.answer.by == message.sender and last.answer.text == answers.without_ids(said)
    return Found(last) if again and now - (last.closed or 0) < TWICE_WITHIN else None
