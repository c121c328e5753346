"""What a question looks like on IRC."""

from collections.abc import Sequence

from culture.clients.shared.questions.model import Question
from culture.clients.shared.webhook import texts
from culture.protocol.names import fold, is_channel
from culture.protocol.split import clip

PREFIX = "[QUESTION] "
ANSWER_PREFIX = "[ANSWER] "
_SHORT_BYTES = 300


def lines(nick: str, question: Question, *, others: bool) -> str:
    """The lines that are posted; with ``others`` open in the same place the last one names the question."""
    name = f" ({question.id})" if others else ""
    if not question.options:
        return f"{PREFIX}{question.text}{name}"
    reply = f"Waiting for response. Reply with: @{nick} {'/'.join(question.options)}{name}"
    if not question.tool:
        return f"{PREFIX}{question.text}\n{reply}"
    return f'{PREFIX}Task "{question.task or "without a task"}" needs input:\n{question.text}\n{reply}'


def alert(nick: str, question: Question) -> str:
    """A question as the channel for alerts has it."""
    return texts.question(nick, _told(question))


def discussion(nick: str, question: Question, sender: str) -> str:
    """That people have begun to talk about it."""
    return f'{PREFIX}{sender} asks {nick} back about {question.id}: "{_told(question)}"'


def timeout(nick: str, question: Question) -> str:
    """That nobody answered."""
    then = {"pause": "; it is paused", "deny": "; it counts as no", "abort": "; the task is aborted"}
    return texts.timeout(nick, _told(question)) + then.get(question.action, "")


def _told(question: Question) -> str:
    """The text for all to read; what was asked in private is told to nobody else."""
    return short(question.text).strip('"') if is_channel(question.place) else "(private)"


def short(text: str, most: int = _SHORT_BYTES) -> str:
    """A text in one line, shortened."""
    line = " ".join(text.split())
    cut = clip(line, most)
    return cut if cut == line else f"{cut}…"


def listed(questions: Sequence[Question], place: str | None = None, most: int = 5) -> str:
    """Several questions in a line, by their ids; in its words what was asked in this place, or else in any channel."""
    shown = [
        f'{question.id} "{short(question.text, 60)}"'
        if (is_channel(question.place) if place is None else fold(place) == fold(question.place))
        else question.id
        for question in questions[:most]
    ]
    more = [f"and {len(questions) - most} more"] if len(questions) > most else []
    return ", ".join([*shown, *more])
