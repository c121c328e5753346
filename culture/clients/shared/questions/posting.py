"""What a question looks like on IRC."""

from collections.abc import Iterator, Sequence

from culture.clients.shared.questions.model import Question
from culture.clients.shared.webhook import texts
from culture.protocol.names import fold, is_channel
from culture.protocol.split import clip, cut_line, split_text

PREFIX = "[QUESTION] "
ANSWER_PREFIX = "[ANSWER] "
_SHORT_BYTES = 300
_INDENT = "  "
_GOES_ON = "↳ "
_LINE_BYTES = 280
"""Fits into one line of IRC, whoever sends it wherever; a longer one would be broken without indentation."""
ROOM_LINES, ROOM_BYTES = 40, 3400
"""So much of a detail is posted: with the lines around it one message of several lines."""
TAIL_LINES, TAIL_BYTES = 8, 700
"""So much of its end, where not all of it is posted: what is dangerous may stand there."""


def lines(nick: str, question: Question, detail: str = "", *, others: bool) -> str:
    """The lines that are posted; with ``others`` open in the same place the last one names the question.

    All but the first and the last are indented, so that no text can imitate the lines of another question.
    """
    name = f" ({question.id})" if others else ""
    if not question.options:
        return _indented(f"{PREFIX}{question.text}{name}")
    reply = f"Waiting for response. Reply with: @{nick} {'/'.join(_one_line(each) for each in question.options)}{name}"
    if not question.tool:
        return f"{_indented(f'{PREFIX}{question.text}')}\n{reply}"
    task = f'{PREFIX}Task "{_one_line(question.task) or "without a task"}" needs input:'
    more = [*_excerpt(detail, f"culture questions {nick} {question.id}")] if detail else []
    return "\n".join([_indented(task), _indented(question.text), *more, reply])


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _indented(text: str) -> str:
    """The text in lines that fit into one of IRC each, all but the first one indented."""
    pieces = [piece for line in text.splitlines() or [""] for piece in split_text(line, _LINE_BYTES)]
    return f"\n{_INDENT}".join(pieces)


def _excerpt(detail: str, command: str) -> Iterator[str]:
    """The first lines of a detail as far as there is room for them, the last ones where some are left out, indented."""
    pieces = [
        f"{_INDENT}{_GOES_ON if number else ''}{piece}"
        for line in detail.split("\n")
        for number, piece in enumerate(cut_line(line, _LINE_BYTES - len(_GOES_ON.encode())))
    ]
    first = _fitting(pieces, ROOM_LINES, ROOM_BYTES)
    if first == len(pieces):
        yield from pieces
        return
    last = _fitting(pieces[::-1], TAIL_LINES, TAIL_BYTES)
    first = _fitting(pieces, ROOM_LINES - last, ROOM_BYTES - TAIL_BYTES)
    yield from pieces[:first]
    yield f"{_INDENT}… {len(pieces) - first - last} more lines are not shown here, all are shown by: {command}"
    yield from pieces[len(pieces) - last :]


def _fitting(pieces: Sequence[str], most_lines: int, most_bytes: int) -> int:
    """How many of the lines fit."""
    size = 0
    for number, piece in enumerate(pieces[:most_lines]):
        size += len(piece.encode()) + 1
        if size > most_bytes:
            return number
    return min(len(pieces), most_lines)


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
