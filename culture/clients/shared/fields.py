"""The fields of a request: what each takes, and what it says about anything else."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

MOST_MESSAGES = 500
LONGEST_WAIT = 7 * 24 * 3600.0
LONGEST_NAME = 200
MOST_OPTIONS = 20
LONGEST_OPTION = 40
LONGEST_ID = 10
MOST_BLOCKS = 50
BLOCKS = ("text", "thinking", "tool_use")
"""What an agent does, as the contract has it."""


class WrongField(Exception):
    """A field is missing or is not what it should be; the text names it."""


class _Required:
    """No default: the field must be there."""


REQUIRED = _Required()


@dataclass(frozen=True, slots=True)
class Field:
    """One field; ``check`` returns the value or raises ValueError with what it must be."""

    check: Callable[[object], object]
    default: object = REQUIRED
    also: tuple[str, ...] = ()
    """Other names that are understood."""

    def value(self, name: str, given: Mapping[str, object]) -> object:
        """The field's value in a request."""
        spellings = [alias for alias in (name, *self.also) if given.get(alias) is not None]
        if len(spellings) > 1:
            raise WrongField(f"{' and '.join(spellings)} are the same field")
        if not spellings:
            if self.default is REQUIRED:
                raise WrongField(f"{name} is missing")
            return self.default
        try:
            return self.check(given[spellings[0]])
        except ValueError as wrong:
            raise WrongField(f"{spellings[0]} must be {wrong}") from None


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("a text that is not empty")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError("valid Unicode") from None
    return value


def _target(value: object) -> str:
    name = _text(value)
    if len(name) > LONGEST_NAME or any(letter <= " " or letter in ",\x7f" for letter in name):
        raise ValueError("the name of one channel, or one nick")
    return name


def _channel(value: object) -> str:
    name = _target(value)
    if not name.startswith("#"):
        raise ValueError(f"the name of a channel, which begins with #: perhaps #{name}")
    return name


def _path(value: object) -> str:
    path = _text(value)
    # A daemon and its agent need not stand in the same folder.
    if not path.startswith(("/", "~")) or "\0" in path:
        raise ValueError("a path that begins with / or ~")
    return path


def _limit(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError("a number of messages, 1 or more")
    return min(value, MOST_MESSAGES)


def _timeout(value: object) -> float:
    # No comparison holds for NaN.
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value <= LONGEST_WAIT:
        raise ValueError(f"a number of seconds, above 0 and at most {LONGEST_WAIT:.0f}")
    return float(value)


def _options(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not 2 <= len(value) <= MOST_OPTIONS:
        raise ValueError(f"a list of 2 to {MOST_OPTIONS} words")
    words = tuple(_text(word).strip() for word in value)
    if any(len(word) > LONGEST_OPTION or any(letter <= " " for letter in word) for word in words):
        raise ValueError(f"words of at most {LONGEST_OPTION} letters without spaces")
    if len(set(map(str.casefold, words))) < len(words):
        raise ValueError("words that differ")
    return words


def _id(value: object) -> str:
    text = _text(value)
    if text[0] not in "qQ" or not text[1:].isdecimal() or len(text) > LONGEST_ID:
        raise ValueError("the id of a question, such as q7")
    return text.lower()


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("true or false")
    return value


def _key(value: object) -> str:
    key = _text(value)
    if len(key) > LONGEST_NAME or not key.isprintable() or " " in key:
        raise ValueError(f"a word of at most {LONGEST_NAME} letters")
    return key


def _content(value: object) -> list[dict[str, object]]:
    if not isinstance(value, list) or len(value) > MOST_BLOCKS:
        raise ValueError(f"a list of at most {MOST_BLOCKS} blocks")
    if not all(isinstance(block, dict) and block.get("type") in BLOCKS for block in value):
        raise ValueError(f"blocks of type {', '.join(BLOCKS)}")
    return value


TEXT = Field(_text)
OPTIONAL_TEXT = Field(_text, default=None)
OPTIONS = Field(_options, default=())
QUESTION_ID = Field(_id, default=None)
FLAG = Field(_flag, default=False)
TARGET = Field(_target)
OPTIONAL_TARGET = Field(_target, default=None)
CHANNEL = Field(_channel)
OPTIONAL_CHANNEL = Field(_channel, default=None)
KEY = Field(_key)
WHOSE = Field(_target, also=("target",))
DIRECTORY = Field(_path)
CONTENT = Field(_content)
LIMIT = Field(_limit, default=50)
TIMEOUT = Field(_timeout, default=None)
