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


_ASSENT = frozenset(
    re.findall(
        r"\S+",
        "please ok okay sure fine good safe right correct agreed agree approve approved proceed go ahead do it that is "
        "it's that's looks sounds use take option i of course by all means for me thanks thank you lgtm 👍",
    )
)
"""What may stand beside a choice and says nothing of its own: ``looks safe, yes``, ``yes, go ahead``."""
_WORDS = re.compile(r"[^\s.,;:!…–—()\"]+")
_REASON = re.compile(r"\s*[.,;:!–—]")


class Tie(Enum):
    """What ties a text to a question, and so how plainly it must speak to be an answer."""

    NAMED = "it names the question, or is a reply to it"
    AWAITED = "the agent waits for the answer, and it was said where the question was asked"
    LOOSE = "the question is open, and that is all"


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


def read(text: str, options: Sequence[str], tie: Tie = Tie.NAMED) -> Reading:
    """A text as an answer to a question with these options; without options any text but a question is one.

    A choice counts where the text says it both as it was sent and as people see it: with a zero-width space behind its
    first letter ``eyes`` has the word ``yes`` in it, which nobody sees. What does not name the question is its answer
    as a choice with words of assent, or a no with its reason, while the agent waits, and else as a bare choice.
    """
    sent = _read(text, options, tie)
    seen = _read(clean(text, Profile.TERMINAL), options, tie) if options else sent
    return sent if sent == seen else Reading(Kind.UNCLEAR)


def _read(text: str, options: Sequence[str], tie: Tie) -> Reading:
    said = without_ids(text)
    if not options:
        is_aside = said.endswith("?") or not said or tie is Tie.LOOSE
        return Reading(Kind.ASIDE) if is_aside else Reading(Kind.ANSWER, said)
    plain = _CODE.sub(" ", said)
    named = [option for option in options if _names(plain, option)]
    if not named:
        return Reading(Kind.ASIDE)
    if len(named) > 1 or _DOUBTS.search(plain) or not _is_meant(said, named[0], tie):
        return Reading(Kind.UNCLEAR)
    return Reading(Kind.ANSWER, named[0])


def _is_meant(said: str, option: str, tie: Tie) -> bool:
    """Whether what stands beside a choice leaves no doubt that the text is about this question."""
    if tie is Tie.NAMED:
        return True
    beside = _beside(said, option)
    if tie is Tie.LOOSE:
        return not beside
    no = _word(option).match(said) if option.casefold() == NO else None
    return beside <= _ASSENT or (no is not None and _REASON.match(said, no.end()) is not None)


def says_more(text: str, options: Sequence[str]) -> bool:
    """Whether a text says something beside one of these options and words of assent."""
    said = without_ids(text)
    option = next((each for each in options if _names(said, each)), None)
    return option is None or not _beside(said, option) <= _ASSENT


def _beside(said: str, option: str) -> set[str]:
    """The words beside the first occurrence of an option."""
    return {word.casefold() for word in _WORDS.findall(_word(option).sub(" ", said, count=1))}


def _names(text: str, option: str) -> bool:
    return _word(option).search(text) is not None


def _word(option: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(option)}(?!\w)", re.IGNORECASE)


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
