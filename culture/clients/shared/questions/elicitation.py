"""What an agent's program asks its user by itself (AskUserQuestion, request_user_input, forms of MCP servers).

Nobody sits at the program, so that each field becomes a question in the room of the task, with its options. Who may
answer, and what counts as an answer, is as for every question of the agent's own.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from culture.clients.shared import answers
from culture.clients.shared.answers import DENY, NO, YES
from culture.clients.shared.questions.board import Questions, TooManyQuestions
from culture.clients.shared.questions.model import Answer, Outcome
from culture.clients.shared.turn import FormField, FormReply
from culture.protocol.vocabulary import ControlWord
from culture.transport import NotSent

MOST_FIELDS = 5
_WORD = re.compile(r"[A-Za-z][\w+-]{0,30}")
_RESERVED = frozenset({DENY, *ControlWord})
"""Words that mean something else when people say them to an agent, whatever it has asked."""
_NUMBERS: Mapping[str, Callable[[str], object]] = {"integer": int, "number": float}


class Elicitation:
    """Puts the questions of an agent's program to people, one after the other."""

    def __init__(self, questions: Questions, place: Callable[[], str]) -> None:
        self._questions = questions
        self._place = place

    async def ask(self, fields: Sequence[FormField]) -> FormReply:
        """One value for each field; when one is not answered, none but the reason, with the answers before it."""
        if not 0 < len(fields) <= MOST_FIELDS:
            return FormReply(why=f"{len(fields)} questions at once cannot be asked in a room, {MOST_FIELDS} can")
        values: list[str] = []
        for field in fields:
            words = option_words(field)
            try:
                answer = await self._questions.ask(self._place(), _worded(field, words), None, words)
            except (NotSent, TooManyQuestions) as refusal:
                return FormReply(why=_before(fields, values) + f"nobody can be asked: {refusal}")
            value = _value(answer, field, words)
            if value is None:
                return FormReply(why=_before(fields, values) + _why_none(answer))
            if words:
                self._questions.pass_on(answer)
            values.append(value)
        return FormReply(tuple(values))


def option_words(field: FormField) -> tuple[str, ...]:
    """The words that answer a field: its labels where each is one word, else their numbers; none where any text may."""
    if not field.options or field.several:
        return ()
    labels = [label for label, _ in field.options]
    if all(map(_is_word, labels)) and len({label.casefold() for label in labels}) == len(labels):
        return tuple(labels)
    return tuple(str(number) for number, _ in enumerate(labels, 1))


def _is_word(label: str) -> bool:
    """Whether people can answer with a label itself; ``pause`` pauses the agent, ``Q1`` names a question."""
    is_free = label.casefold() not in _RESERVED and not answers.question_ids(label)
    return is_free and _WORD.fullmatch(label) is not None


def _before(fields: Sequence[FormField], values: Sequence[str]) -> str:
    """The answers that people gave before there was none."""
    return "".join(f'"{field.text}" was answered: "{value}". ' for field, value in zip(fields, values, strict=False))


def _worded(field: FormField, words: Sequence[str]) -> str:
    """The text of the question, below it what each option means."""
    if not field.options:
        return field.text
    plain = all(word == label and not more for word, (label, more) in zip(words, field.options, strict=False))
    if words and plain:
        return field.text
    numbers = words or tuple(str(number) for number, _ in enumerate(field.options, 1))
    rows = [
        f"{word}: {': '.join(part for part in (label if label != word else '', more) if part)}"
        for word, (label, more) in zip(numbers, field.options, strict=True)
    ]
    several = ["Several may be named, with commas between them."] if field.several else []
    return "\n".join([field.text, *rows, *several])


def _value(answer: Answer, field: FormField, words: Sequence[str]) -> str | None:
    """The label that was chosen, the labels with commas, or the text; None when there is no answer."""
    said = answer.text or ""
    is_plain_no = (
        answer.outcome is Outcome.DENIED and NO in map(str.casefold, words) and not answers.is_word(said, DENY)
    )
    if answer.outcome is not Outcome.ANSWERED and not is_plain_no:
        return None
    labels = [label for label, _ in field.options]
    if words:
        chosen = answers.read(said, words).choice
        return labels[words.index(chosen)] if chosen in words else None
    if not field.several:
        return said
    parts = [part.strip().rstrip(".") for part in re.split(r",|\band\b", said) if part.strip()]
    return ", ".join(_label(part, labels) for part in parts)


def _label(part: str, labels: Sequence[str]) -> str:
    if part.isascii() and part.isdigit() and 0 < int(part) <= len(labels):
        return labels[int(part) - 1]
    return next((label for label in labels if label.casefold() == part.casefold()), part)


def _why_none(answer: Answer) -> str:
    """What the agent is told when there is no answer."""
    match answer.outcome:
        case Outcome.INTERROGATED:
            return (
                f'{answer.by} (class {answer.kind}) asks back: "{answer.text}". Your question {answer.question} stays '
                f"open: irc_client ask --again {answer.question} --reply TEXT waits for its answer"
            )
        case Outcome.TIMED_OUT:
            return "nobody answered in time, which is no yes"
    return f"{answer.outcome.value.lower()} by {answer.by or 'somebody'}: {answer.text or ''}"


def fields_of_schema(message: str, schema: Mapping[str, Any]) -> list[FormField]:
    """The fields of a form of an MCP server: one question per property; without any, whether it may."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or not properties:
        return [FormField(message, ((YES, ""), (NO, "")))]
    return [_field(message, name, each) for name, each in properties.items() if isinstance(each, Mapping)]


def _field(message: str, name: str, schema: Mapping[str, Any]) -> FormField:
    about = ": ".join(str(each) for each in (schema.get("title") or name, schema.get("description")) if each)
    text = f"{message} ({about})"
    if schema.get("type") == "boolean":
        return FormField(text, ((YES, ""), (NO, "")))
    items = schema.get("items") if schema.get("type") == "array" else schema
    labels = [label for label, _ in _choices(items if isinstance(items, Mapping) else {})]
    return FormField(text, tuple((label, "") for label in labels), several=schema.get("type") == "array")


def _choices(schema: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The labels of an enumeration with their values."""
    if isinstance(several := schema.get("oneOf") or schema.get("anyOf"), list):
        return [(str(each.get("title", each.get("const"))), each.get("const")) for each in several]
    values = schema.get("enum") or []
    names = schema.get("enumNames") or values
    return [(str(name), value) for name, value in zip(names, values, strict=False)]


def content_of_schema(schema: Mapping[str, Any], values: Sequence[str]) -> dict[str, Any] | None:
    """The answers as the form wants them; None when one of them is no value of its type, or a no to the whole."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or not properties:
        return {} if list(values) == [YES] else None
    wanted = [(name, each) for name, each in properties.items() if isinstance(each, Mapping)]
    try:
        return {name: _typed(each, value) for (name, each), value in zip(wanted, values, strict=True)}
    except ValueError:
        return None


def _typed(schema: Mapping[str, Any], value: str) -> Any:
    kind = str(schema.get("type"))
    if kind == "boolean":
        return value == YES
    if kind == "array":
        known = dict(_choices(schema.get("items") or {}))
        return [known.get(each, each) for each in value.split(", ")]
    return dict(_choices(schema)).get(value, _NUMBERS.get(kind, str)(value))
