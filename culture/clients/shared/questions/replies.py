"""What those who answer a question are told, and what the agent is told of an answer that it did not wait for."""

from collections.abc import Sequence
from datetime import UTC, datetime

from culture.clients.shared.questions.model import Answer, Outcome, Question
from culture.clients.shared.questions.posting import listed, short
from culture.protocol.names import fold, is_channel


def late(question: Question) -> str:
    """Nobody answered in time."""
    became = {"pause": "I am paused since then", "deny": "it counted as no", "abort": "the task was aborted"}
    then = became.get(question.action, "I went on without an answer")
    return f"too late for {question.id}: its time was over at {_clock(question.deadline)}, and {then}. {_now(question)}"


def silence(nick: str, question: Question) -> str:
    """What everybody there is told when nobody answered."""
    then = {
        "pause": f"I am paused. Reply @{nick} resume",
        "deny": "that counts as no",
        "abort": "the task is aborted",
    }
    return f"nobody answered {question.id} in time: {then[question.action]}."


def answered_before(question: Question, asks: str) -> str:
    """Somebody else was first; what was said in private is told to nobody else."""
    answer = question.answer
    assert answer is not None
    if answer.outcome is Outcome.TIMED_OUT:
        return late(question)
    who = f" by {answer.by}" if answer.by else ""
    is_private = not is_channel(question.place) and fold(question.place) != fold(asks)
    what = answer.outcome.value if is_private else short(question.choice or answer.text or answer.outcome.value, 80)
    when = _clock(question.closed or question.deadline)
    return f'{question.id} was already answered{who} at {when}: "{what}". {_now(question)}'


def _now(question: Question) -> str:
    """What becomes of a message after the end of a question: an open one has no words that could decide anything."""
    return "Nothing changes." if question.options else "I read your message as one of its own."


def twice(question: Question) -> str:
    """They have said so before."""
    return f"I have your answer to {question.id} already; it counts once."


def not_allowed(question: Question, why: str) -> str:
    """They are not among those who decide this."""
    return f"your answer to {question.id} does not count: {why}. The question stays open."


def unclear(nick: str, question: Question) -> str:
    """It could mean this or that."""
    options = " or ".join(f'"@{nick} {option}"' for option in question.options)
    return f"I cannot tell what that means for {question.id}. Say {options}, alone or with words that leave no doubt."


def which_one(nick: str, questions: Sequence[Question], place: str) -> str:
    """It could be about this or that."""
    first = questions[0]
    example = f'"@{nick} {first.options[0] if first.options else "your answer"} {first.id}"'
    return f"which question do you mean? Open: {listed(questions, place)}. Say for example {example}."


def one_at_a_time() -> str:
    """Several at once can only be denied."""
    return 'several questions at once can only be denied ("deny q1 q2"); answer them one by one.'


def unknown(number: int, questions: Sequence[Question], place: str) -> str:
    """There is no such question."""
    rest = f"Open: {listed(questions, place)}." if questions else "None is open."
    return f"I have asked no question q{number}. {rest}"


def counted(question: Question, choice: str, votes: int, needed: str) -> str:
    """A vote that does not decide it yet."""
    return f'noted for {question.id}: "{short(choice, 80)}". {votes} of {needed} so far; your last word counts.'


def decided(question: Question, choice: str) -> str:
    """Their answer is the one."""
    return f'{question.id} is answered: "{short(choice, 80)}".'


def overrules(question: Question, choice: str) -> str:
    """An operator, or a person where agents had decided, says otherwise."""
    answer = question.answer
    assert answer is not None
    before = short(question.choice or answer.text or "", 80)
    return (
        f'{question.id} was answered by {answer.by} with "{before}", and the agent has acted on it. '
        f'Your word goes above it: the agent is told that the answer to {question.id} is "{short(choice, 80)}" now.'
    )


def overruled(question: Question, by: str, choice: str) -> str:
    """What the agent is told of it: both answers, and whose they are."""
    answer = question.answer
    assert answer is not None
    before = short(question.choice or answer.text or "", 80)
    return (
        f'overrules the answer to your question {question.id}, "{short(question.text, 120)}": '
        f'it was "{before}" by {answer.by}, and is "{short(choice, 80)}" by {by} now'
    )


def denied(questions: Sequence[Question]) -> str:
    """Several are closed."""
    return f"denied: {', '.join(question.id for question in questions)}." if questions else "none of these is open."


def waits(question: Question) -> str:
    """A question back to an agent that cannot speak before its question is answered."""
    options = "/".join(question.options)
    return f"I can say nothing before {question.id} is answered ({options}); I read your message afterwards."


def remark(question: Question, answer: Answer) -> str:
    """What a message is that answers a question, for the agent that did not wait for it."""
    confirmed = f", and {answer.by} was logged in" if answer.human_confirmed else ""
    return f'answers your question {question.id}, "{short(question.text, 120)}": {answer.outcome.value}{confirmed}'


def no_answer(question: Question) -> str:
    """What a message is that could be taken for an answer to a question, and is none."""
    return f'no answer to your question {question.id}, "{short(question.text, 80)}", which stays open'


def refused(question: Question, why: str) -> str:
    """What a message is of somebody who may not answer."""
    return f"no answer to your question {question.id}: {why}"


def perhaps(question: Question) -> str:
    """What a message is that may be meant for an open question, and does not say so."""
    return f'it names no question; your question {question.id} is open: "{short(question.text, 120)}"'


def past(question: Question) -> str:
    """What a message is that came after the end of a question, or may be meant for something else."""
    if not question.options:
        return f'it came after the end of your question {question.id}, "{short(question.text, 120)}"'
    return f"your question {question.id} had an end before, and this changes nothing of it"


def names_none(questions: Sequence[Question]) -> str:
    """What a message is that could be meant for several questions."""
    return f"no answer to {', '.join(each.id for each in questions[:5])}, which stay open: it names none of them"


def news(question: Question, answer: Answer) -> str:
    """What the agent is told of a question for which it did not wait, and which no answer has ended."""
    asked = f'your question {question.id} in {question.place}, "{short(question.text, 300)}"'
    if answer.outcome is not Outcome.TIMED_OUT:
        return f'{asked}: {answer.outcome.value}. {answer.by or "somebody"} says: "{short(answer.text or "", 300)}"'
    then = {"pause": "You were paused then.", "deny": "It counts as no.", "abort": "The task is aborted."}
    return f"{asked}: nobody answered in time. {then.get(question.action, 'That is no yes.')}"


def about(question: Question) -> str:
    """What a message is that is about a question and no answer to it."""
    return f'about your question {question.id}: "{short(question.text, 80)}"'


def _clock(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%H:%M} UTC"
