"""Mentions: which users a text addresses.

``@nick`` mentions a user, and so does ``nick:`` at the start of a line. ``@name`` mentions the one member whose nick is
``<server>-name``. Text in code and in web addresses mentions nobody.
"""

import re
from collections.abc import Iterable, Iterator

from culture_protocol.names import fold

ALL = "all"
"""``@all``: every agent of the channel; the caller decides who may use it."""

# Letters of scripts without spaces between words may stand next to a nick.
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
    """Return False if the text surely mentions nobody; this is quicker than ``mentions``."""
    return "@" in text or ":" in text


def mentions(text: str, members: Iterable[str]) -> tuple[str, ...]:
    """Return the nicks of ``members`` that a text mentions, each once, in the order of the text.

    ``@nick``, ``@name`` and a leading ``nick:`` are mentions, except in code and web addresses. The nicks are spelled
    as in ``members``.
    """
    if not may_mention(text):
        return ()
    calls = list(_calls(text))
    if not calls:
        return ()
    wanted = {word for words, _ in calls for word in words}
    nicks, parts = _members_by_name(wanted, members)
    mentioned: dict[str, None] = {}
    for words, with_at in calls:
        for word in words:
            nick = nicks.get(word) or (parts.get(word) if with_at else None)
            if nick:
                mentioned[nick] = None
                break
    return tuple(mentioned)


def calls_all(text: str) -> bool:
    """Return whether a text mentions ``@all``."""
    return "@" in text and any(with_at and ALL in words for words, with_at in _calls(text))


def _calls(text: str) -> Iterator[tuple[list[str], bool]]:
    """Yield each mention in the text: the names that it may mean, and whether it has ``@``.

    The names are folded nicks or parts of nicks, the longest first.
    """
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


def _members_by_name(wanted: set[str], members: Iterable[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the members that ``wanted`` names: by folded nick, and by the name in the nick.

    The name is what follows the server's prefix; if two members share a name, it maps to "".
    """
    nicks: dict[str, str] = {}
    parts: dict[str, str] = {}
    members = list(members)
    together = fold("\n".join(members)) + "\n"
    # Most words before a colon are no nick: skip the loop over a thousand members for these.
    if not any(word + "\n" in together for word in wanted):
        return nicks, parts
    for member, folded in zip(members, together.split("\n"), strict=False):
        if folded in wanted:
            nicks[folded] = member
        part = folded.partition("-")[2]
        if part in wanted and part != ALL:
            parts[part] = "" if part in parts else member
    return nicks, parts
