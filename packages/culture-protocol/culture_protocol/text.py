"""The one cleaner of foreign text, used where it becomes a prompt, output or a record.

What is stored and relayed stays as it was sent. Where a text is read it goes through ``clean`` with the profile of its
reader, so that a person, a terminal and a model read the same words:

- Line ends of every kind become ``\\n``, spaces of every kind become a space.
- Colours and styles of IRC and terminal sequences are dropped. The words inside of a terminal's title or hyperlink
  stay: text that one reader sees is hidden from no other.
- Everything invisible is dropped: controls, format characters, tag characters, fillers, surrogates, private use and
  unassigned code points. ZWJ and ZWNJ stay where they join emoji, or letters of scripts that are written joined; the
  selectors U+FE0E and U+FE0F stay once behind a symbol. A letter keeps at most ``MOST_MARKS`` combining marks.
- ``MODEL`` in addition breaks what imitates the frame of a prompt, by a similar sign: ``‹system-reminder›``,
  ``⟦IRC DM⟧``, ``⦅class: human``, ``Human：``.

The result is never longer than the text, in characters, and cleaning it again changes nothing.
"""

import json
import re
import unicodedata
from enum import Enum
from functools import lru_cache

MOST_MARKS = 5
"""Combining marks of one letter; pointed Hebrew has this many."""
LONGEST_NAME = 200
"""Characters of a name in a prompt."""


class Profile(Enum):
    """Where a cleaned text is read: each place has rules of its own."""

    MODEL = "model"
    """A prompt or a tool result: line breaks stay, imitations of the prompt's frame are broken."""
    TERMINAL = "terminal"
    """The command line's output: line breaks stay."""
    WEB = "web"
    """A web page, notification or webhook: line breaks stay."""
    LOG = "log"
    """One line of a file: controls become pictures (``␛``), other invisible text ``\ufffd``."""
    INDEX = "index"
    """Words for a search index: one line, controls become spaces."""


# Printable text of these scripts has no marks, joiners or empty letters: most texts need no further look.
_PLAIN = re.compile(
    "[ -~\u00a1-\u00ac\u00ae-\u02ff\u0370-\u0482\u048a-\u0588\u1e00-\u1fff\u2010-\u2027\u2030-\u205e\u20a0-\u20bf"
    "\u2100-\u27ff\u3001-\u3029\u3030-\u3098\u309b-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uff01-\uff9f\U0001f300-\U0001faff]*"
)
_MARK = "\N{REPLACEMENT CHARACTER}"
_ZWNJ, _ZWJ = "\u200c", "\u200d"
_TEXT_STYLE, _EMOJI_STYLE, _KEYCAP = "\ufe0e", "\ufe0f", "\u20e3"
_CONTEXTUAL = frozenset({_ZWNJ, _ZWJ, _TEXT_STYLE, _EMOJI_STYLE})
"""Invisible, but part of the visible characters around them."""
_HEX = "[0-9A-Fa-f]{6}"
_STYLES = rf"\x03(?:[0-9]{{1,2}}(?:,[0-9]{{1,2}})?)?|\x04(?:{_HEX}(?:,{_HEX})?)?|[\x02\x0f\x11\x16\x1d-\x1f]"
# A CSI sequence as a whole; of OSC, DCS, SOS, PM and APC the opening and closing; the choice of a character set.
_SEQUENCES = r"(?:\x1b\[|\x9b)[0-?]{0,64}[ -/]{0,8}[@-~]|\x1b(?:[\\\]PX^_]|[()][0-9A-Za-z])"
_DROPPED_FIRST = {
    profile: re.compile(_STYLES if profile is Profile.LOG else f"{_STYLES}|{_SEQUENCES}") for profile in Profile
}
_LINE_ENDS = re.compile("\r\n|[\r\v\f\x85\u2028\u2029]")
_BLANK = re.compile(r"\s+")

# Printable by category but empty; U+2800 is a space in all but its category.
_EMPTY = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2d7f\u3164\ufe00-\ufe0d\uffa0\ufffc"
    "\U0001107f\U00016fe4\U0001d159\U000e0100-\U000e01ef]"
)
_EMPTY_SPACE = "\u2800"
_VISIBLE_FORMATS = re.compile("[\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd]")  # signs of numbers
_INVISIBLE = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})
# Emoji of a later Unicode version are unassigned for Python but visible.
_PICTURES = range(0x1F000, 0x1FB00)
_STYLED = frozenset("‼⁉ℹ〰〽")  # emoji that are no symbols by their category
_JOINED_SCRIPTS = re.compile("[\u0600-\u0dff\u1000-\u109f\u1780-\u18af\ufb50-\ufdff\ufe70-\ufefc]")
_JOINERS = re.compile(f"[{_ZWNJ}{_ZWJ}]+")
_SELECTORS = re.compile(f"[{_TEXT_STYLE}{_EMOJI_STYLE}]+")


def clean(text: str, profile: Profile) -> str:
    """Return untrusted text without what could harm its reader.

    Invisible and control characters are removed or replaced; ``profile`` says where the text is read.
    """
    if not (text.isprintable() and (text.isascii() or _PLAIN.fullmatch(text))):
        text = _visible(text, profile)
    return _broken_frame(text) if profile is Profile.MODEL else text


def one_line(text: str, profile: Profile) -> str:
    """Return untrusted text cleaned as by ``clean``, on one line with single spaces."""
    line = _BLANK.sub(" ", clean(text, profile)).strip()
    return _broken_frame(line) if profile is Profile.MODEL else line


def is_invisible(letter: str) -> bool:
    """Return whether a character on its own is invisible; a line end is, a space is not."""
    if letter in _CONTEXTUAL or letter == _EMPTY_SPACE or _EMPTY.match(letter):
        return True
    category = unicodedata.category(letter)
    if category not in _INVISIBLE or _VISIBLE_FORMATS.match(letter):
        return False
    return category != "Cn" or ord(letter) not in _PICTURES


def as_json(data: object, indent: int | None = 2) -> str:
    """Return data as JSON, with invisible characters escaped so that a terminal can show it.

    ``indent``: spaces per level; None puts all on one line.
    """
    text = json.dumps(data, ensure_ascii=False, indent=indent)
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() or letter == "\n" else json.dumps(letter)[1:-1] for letter in text)


def _visible(text: str, profile: Profile) -> str:
    text = _DROPPED_FIRST[profile].sub("", text)
    if profile is not Profile.LOG:
        text = _LINE_ENDS.sub("\n", text)
    text = text.translate(_TABLES[profile])
    if text.isascii():
        return text
    mark = _MARK if profile is Profile.LOG else ""
    text = _with_few_marks(text, mark)
    text = _SELECTORS.sub(lambda run: run[0][0] if _is_styled(run) else mark, text)
    return _JOINERS.sub(lambda run: run[0][0] if _is_joined(run) else mark, text)


class _Letters(dict[int, str | None]):
    """A bounded cache, for ``str.translate``, of what each character is replaced by."""

    _REMEMBERED = 20_000

    def __init__(self, profile: Profile) -> None:
        super().__init__()
        self._profile = profile

    def __missing__(self, code: int) -> str | None:
        found = _replacement(chr(code), self._profile)
        if len(self) < self._REMEMBERED:
            self[code] = found
        return found


def _replacement(letter: str, profile: Profile) -> str | None:
    """Return the character that replaces ``letter`` for a profile: mostly itself.

    None to drop it.
    """
    if letter in "\n\t":
        return _control(letter, profile) if letter == "\n" or profile is Profile.INDEX else letter
    if letter == _EMPTY_SPACE or unicodedata.category(letter) == "Zs":
        return " "
    if letter in _CONTEXTUAL or not is_invisible(letter):
        return letter
    if unicodedata.category(letter) == "Cc":
        return _control(letter, profile)
    return _MARK if profile is Profile.LOG else None


def _control(letter: str, profile: Profile) -> str | None:
    if profile is Profile.INDEX:
        return " "
    if profile is not Profile.LOG:
        return letter if letter == "\n" else None
    if letter == "\x7f":
        return "\N{SYMBOL FOR DELETE}"
    return chr(0x2400 + ord(letter)) if letter < " " else _MARK


_TABLES = {profile: _Letters(profile) for profile in Profile}


def _with_few_marks(text: str, mark: str) -> str:
    """Return the text with at most ``MOST_MARKS`` combining marks on each letter.

    ``mark``: stands in place of the marks that are too many.
    """
    letters, room = [], 0
    for letter in text:
        if letter not in _CONTEXTUAL:
            if not _combines(letter):
                room = 0 if letter.isspace() or letter == _MARK else MOST_MARKS
            elif room:
                room -= 1
            else:
                letter = mark
        letters.append(letter)
    return "".join(letters)


@lru_cache(maxsize=4096)
def _combines(letter: str) -> bool:
    return unicodedata.category(letter) in ("Mn", "Me")


def _around(run: re.Match[str]) -> tuple[str, str]:
    """Return the characters before and after a pattern's match; "" at the ends of the text."""
    return run.string[run.start() - 1 : run.start()], run.string[run.end() : run.end() + 1]


def _is_styled(run: re.Match[str]) -> bool:
    before, behind = _around(run)
    return _is_symbol(before) or before in _STYLED or (bool(before) and before in "0123456789#*" and behind == _KEYCAP)


def _is_joined(run: re.Match[str]) -> bool:
    before, behind = _around(run)
    if _is_joined_letter(before) and _is_joined_letter(behind):
        return True
    is_emoji = _is_symbol(before) or before == _EMOJI_STYLE
    return run[0][0] == _ZWJ and is_emoji and _is_symbol(behind)


def _is_symbol(letter: str) -> bool:
    if not letter or letter == _MARK or letter.isascii():
        return False
    return ord(letter) in _PICTURES or unicodedata.category(letter) in ("So", "Sm")


def _is_joined_letter(letter: str) -> bool:
    return bool(_JOINED_SCRIPTS.match(letter)) and unicodedata.category(letter)[0] in "LM"


# The frame: the parts of a prompt, and what models take for the structure of a conversation.

_SIMILAR = {"<": "‹", ">": "›", "[": "⟦", "]": "⟧", "(": "⦅", ")": "⦆", ":": "：", ";": "；"}
"""The signs that the frame consists of, and their replacements in foreign text."""
_IN_NAMES = str.maketrans({sign: _SIMILAR[sign] for sign in "<>[]();"})
_IN_FACTS = str.maketrans({sign: _SIMILAR[sign] for sign in "();"})
_TAG_NAMES = (
    "system", "user", "human", "assistant", "developer", "tool", "function", "invoke", "parameter", "parameters",
    "antml", "command", "bash", "local-command", "task-notification", "environment_context", "instruction",
    "instructions", "information", "important", "reminder", "thinking", "supervisor", "culture", "irc", "external_irc",
    "start_of_turn", "end_of_turn", "results?", "tools", "functions", "tool_calls?", "tool_results?",
)  # fmt: skip
_NAMES = "|".join(sorted(_TAG_NAMES, key=len, reverse=True))
# ``List<User>`` is code: a capital after a word.
_TAG = re.compile(
    rf"(?!(?-i:(?<=\w)<[A-Z]))<(?=[\s/!?]*(?:{_NAMES})(?![A-Za-z0-9.@]))([^<>\n]{{0,200}}>)?"
    r"|<(?=[|｜][^<>\n]{1,60}[|｜]>)([^<>\n]{0,80}>)?|<<(?=\s*/?SYS>>)([^<>\n]{0,80}>>)?",
    re.IGNORECASE,
)
_LABEL = re.compile(
    r"\[(?=\s*/?(?:IRC|TEAM|SELF|SUPERVISOR|ANSWER|SYSTEM|INST|CULTURE)(?![A-Za-z0-9]))([^\[\]\n]{0,200}\])?",
    re.IGNORECASE,
)
_FACTS = re.compile(r"\((?=\s*(?:class\s*:|from\s+several\s+places\s*:))", re.IGNORECASE)
_FURTHER = re.compile(r"^([^\w\n]*and\s+\d+\s+more)\s*:", re.IGNORECASE | re.MULTILINE)
_ROLE = re.compile(r"^([^\w\n]*(?:Human|Assistant|System|User|HUMAN|ASSISTANT|SYSTEM|USER)[*_ \t]*):", re.MULTILINE)


def name_in_prompt(name: str) -> str:
    """Return a nick, channel, account or id as one word that is harmless in a prompt.

    Characters that structure prompts, such as brackets, are replaced, and a long name is cut.
    """
    word = "_".join(clean(name, Profile.MODEL).split()).translate(_IN_NAMES)
    return word if len(word) <= LONGEST_NAME else f"{word[: LONGEST_NAME - 1]}…"


def fact_in_prompt(text: str) -> str:
    """Return untrusted text for use as one item of a ``(item; item)`` list in a prompt.

    Parentheses and semicolons in the text are replaced, so that it cannot end the item or add another.
    """
    return one_line(text, Profile.MODEL).translate(_IN_FACTS)


def _broken_frame(text: str) -> str:
    """Return the text with imitations of a prompt's parts (tags, labels, roles) made harmless.

    The brackets or the colon of each imitation are replaced by similar characters.
    """
    if "<" in text:
        text = _TAG.sub(lambda found: _with_similar(found[0]), text)
    if "[" in text:
        text = _LABEL.sub(lambda found: _with_similar(found[0]), text)
    if "(" in text:
        text = _FACTS.sub(_SIMILAR["("], text)
    if ":" in text:
        text = _ROLE.sub(_with_wide_colon, _FURTHER.sub(_with_wide_colon, text))
    return text


def _with_similar(tag: str) -> str:
    """Return a tag or label with its brackets replaced by similar characters."""
    opening, closing = tag[0], {"<": ">", "[": "]"}[tag[0]]
    inner = tag.lstrip(opening)
    bare = inner.rstrip(closing)
    return _SIMILAR[opening] * (len(tag) - len(inner)) + bare + _SIMILAR[closing] * (len(inner) - len(bare))


def _with_wide_colon(found: re.Match[str]) -> str:
    return found[1] + _SIMILAR[":"]
