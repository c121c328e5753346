"""Reading an answer: what people write is taken at its word or not at all, never guessed."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from culture.protocol.text import Profile, clean

YES, NO, ABORT = "yes", "no", "abort"
CHOICES = (YES, NO, ABORT)
DENY = "deny"
"""Closes a question of any kind without an answer."""
_DOUBTS = re.compile(r"\?|\b(?:but|if|unless|except|not|don['’]?t|wait)\b", re.IGNORECASE)
_ID = re.compile(r"(?<!\w)q([1-9][0-9]{0,8})(?!\w)", re.IGNORECASE)
_IDS = r"\(?\bq[1-9][0-9]{0,8}\b\)?"
_BEFORE = re.compile(rf"^\s*(?:{_IDS}[:,]?(?:\s+|$))+", re.IGNORECASE)
# Read backwards, as a search from the front takes a time that grows with the square of what strangers write.
_BEHIND = re.compile(r"[\s.!]*(?:\)?\b[0-9]{0,8}[1-9]q\b\(?[\s,:]+)+", re.IGNORECASE)
_CODE = re.compile(r"`[^`]*`")


class Kind(Enum):
    """What a text is to a question."""

    ANSWER = "an answer"
    UNCLEAR = "an answer that could be read in two ways"
    ASIDE = "something else, such as a question back"


@dataclass(frozen=True, slots=True)
class Reading:
    """What a text says; ``choice`` is the option it names, or for an open question the text itself."""

    kind: Kind
    choice: str = ""


def read(text: str, options: Sequence[str]) -> Reading:
    """A text as an answer to a question with these options; without options any text but a question is one.

    A choice counts where the text says it both as it was sent and as people see it: with a zero-width space behind its
    first letter ``eyes`` has the word ``yes`` in it, which nobody sees.
    """
    sent = _read(text, options)
    seen = _read(clean(text, Profile.TERMINAL), options) if options else sent
    return sent if sent == seen else Reading(Kind.UNCLEAR)


def _read(text: str, options: Sequence[str]) -> Reading:
    said = without_ids(text)
    if not options:
        return Reading(Kind.ASIDE) if said.endswith("?") or not said else Reading(Kind.ANSWER, said)
    plain = _CODE.sub(" ", said)
    named = [option for option in options if _names(plain, option)]
    if not named:
        return Reading(Kind.ASIDE)
    if len(named) > 1 or _DOUBTS.search(plain):
        return Reading(Kind.UNCLEAR)
    return Reading(Kind.ANSWER, named[0])


def _names(text: str, option: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(option)}(?!\w)", text, re.IGNORECASE) is not None


def is_word(text: str, *words: str) -> bool:
    """Whether a text is one of these words and nothing else."""
    return without_ids(text).rstrip(".!").casefold() in words


def question_ids(text: str) -> tuple[int, ...]:
    """The numbers of the questions that a text names at its beginning or its end: ``yes q7``, ``q7: yes``."""
    before = _BEFORE.match(text)
    parts = [before.group() if before is not None else "", _apart(text)[1]]
    return tuple(dict.fromkeys(int(number) for part in parts for number in _ID.findall(part)))


def without_ids(text: str) -> str:
    """The text without the ids of questions at its beginning and its end."""
    return _apart(_BEFORE.sub("", text))[0].strip()


def _apart(text: str) -> tuple[str, str]:
    """The text, and the ids of questions at its end."""
    found = _BEHIND.match(text[::-1])
    start = len(text) - (found.end() if found is not None else 0)
    return text[:start], text[start:]
