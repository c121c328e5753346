"""Whom a text calls."""

import re
from collections.abc import Iterable, Iterator

from culture_protocol.names import fold

ALL = "all"
"""``@all``: every agent of the channel; who may use it is for others to say."""

# Letters of scripts that put no space between words do not glue to a nick.
_LETTER = r"[^\W_\u2e80-\U0003ffff]"
_CALL = re.compile(
    rf"(?<!{_LETTER})(?<!@)@(?P<at>[A-Za-z0-9\[\]\\`_^{{}}|-]++)(?!{_LETTER})"
    r"|^(?P<start>[A-Za-z0-9\[\]\\`_^{}|-]++):(?=\s|$)",
    re.MULTILINE,
)
_QUIET = re.compile(
    r"(?P<fence>```+).*?(?:(?P=fence)`*|\Z)"  # an open fence reaches to the end
    r"|(?<!`)(?P<span>``?)(?!`)[^\n]*?(?<!`)(?P=span)(?!`)"
    r"|\b[A-Za-z][A-Za-z0-9+.-]*://\S+"
    r"|\x03(?:\d{1,2}(?:,\d{1,2})?)?|\x04(?:[0-9A-Fa-f]{6})?",  # a colour's digits are no word before a nick
    re.DOTALL,
)
_TAIL = "[]\\`_^{}|-"


def may_mention(text: str) -> bool:
    """Whether it is worth looking closer."""
    return "@" in text or ":" in text


def mentions(text: str, members: Iterable[str]) -> tuple[str, ...]:
    """The members a text calls, as they spell themselves, in the order of the text, each once.

    ``@nick`` calls, ``nick:`` at the start of a line calls, and ``@name`` calls the one member with that name
    behind the server's prefix. Code and addresses of web pages call nobody.
    """
    if not may_mention(text):
        return ()
    calls = list(_calls(text))
    if not calls:
        return ()
    wanted = {word for words, _ in calls for word in words}
    nicks, parts = _named(wanted, members)
    called: dict[str, None] = {}
    for words, with_at in calls:
        for word in words:
            nick = nicks.get(word) or (parts.get(word) if with_at else None)
            if nick:
                called[nick] = None
                break
    return tuple(called)


def calls_all(text: str) -> bool:
    """Whether a text calls everybody at once."""
    return "@" in text and any(with_at and ALL in words for words, with_at in _calls(text))


def _calls(text: str) -> Iterator[tuple[list[str], bool]]:
    """Each call as the folded names it may mean, the longest first, and whether it was made with ``@``."""
    if "`" in text or "://" in text or "\x03" in text or "\x04" in text:
        text = _QUIET.sub(" ", text)
    for match in _CALL.finditer(text):
        word = fold(match["at"] or match["start"])
        words = [word]
        # Brackets and underscores may belong to the nick or to the sentence: "[@nick]", "_@nick_".
        while word[-1] in _TAIL and len(word) > 1:
            word = word[:-1]
            words.append(word)
        yield words, match["at"] is not None


def _named(wanted: set[str], members: Iterable[str]) -> tuple[dict[str, str], dict[str, str]]:
    """The members by nick, and those by the name behind the prefix of whom there is only one."""
    nicks: dict[str, str] = {}
    parts: dict[str, str] = {}
    members = list(members)
    together = fold("\n".join(members)) + "\n"
    # Most words before a colon are nobody's name; in a channel of a thousand that must not take a thousand steps.
    if not any(word + "\n" in together for word in wanted):
        return nicks, parts
    for member, folded in zip(members, together.split("\n"), strict=False):
        if folded in wanted:
            nicks[folded] = member
        part = folded.partition("-")[2]
        if part in wanted and part != ALL:
            parts[part] = "" if part in parts else member
    return nicks, parts
