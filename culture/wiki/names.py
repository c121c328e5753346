"""What pages are called: the rules, and the places of the pages that every team has."""

import unicodedata

from culture.protocol.text import is_invisible
from culture.wiki.errors import WikiRefused

SUFFIX = ".md"
NAME_LIMIT = 200
"""Bytes; every file system takes names of this length."""
DEPTH_LIMIT = 8
_MARKS = frozenset("-_.")

SPRINT_STATE = "sprint-state"


def plan(task: str) -> str:
    """Where the plan of a task is."""
    return f"plans/{task}"


def handoff(nick: str) -> str:
    """Where somebody hands over to whoever comes after."""
    return f"handoffs/{nick}"


def decision(title: str) -> str:
    """Where a decision is kept."""
    return f"decisions/{title}"


def page_name(said: str) -> str:
    """The name in its one form, ``plans/e2-cdn``; Refused says what is wrong with it."""
    name = unicodedata.normalize("NFC", said).removesuffix(SUFFIX)
    parts = name.split("/")
    if len(name.encode("utf-8", "surrogatepass")) > NAME_LIMIT:
        raise WikiRefused(f"the name of a page has at most {NAME_LIMIT} bytes")
    if len(parts) > DEPTH_LIMIT:
        raise WikiRefused(f"{name!r} is more than {DEPTH_LIMIT} folders deep")
    for part in parts:
        wrong = _wrong_with(part)
        if wrong:
            raise WikiRefused(f"{name!r} cannot be the name of a page: {wrong}")
    return name


def key(name: str) -> str:
    """The form in which names compare: no two pages differ by case alone."""
    return unicodedata.normalize("NFC", name.casefold())


def path_of(name: str) -> str:
    """The file of a page."""
    return name + SUFFIX


def page_of(path: str) -> str | None:
    """The page that a file is; None for files that are none, which others may have pushed."""
    if not path.endswith(SUFFIX):
        return None
    try:
        name = page_name(path)
    except WikiRefused:
        return None
    return name if path_of(name) == path else None


def _wrong_with(part: str) -> str:
    if not part:
        return "it begins or ends with a slash, or has two in a row"
    for letter in part:
        is_letter = unicodedata.category(letter)[0] in "LNM" and not is_invisible(letter)
        if not is_letter and letter not in _MARKS:
            return f"it may have letters, digits, - _ . and / between folders, not {letter!r}"
    if part[0] in "-." or part[-1] == "." or unicodedata.category(part[0])[0] == "M":
        return f"{part!r} begins with a dot, a hyphen or a mark, or ends with a dot"
    if part.casefold().endswith(SUFFIX):
        return f"{part!r} ends with {SUFFIX}, as files do"
    return ""
