"""Page names: the rules, and the names of the pages that every team has."""

import unicodedata

from culture.protocol.text import is_invisible
from culture.wiki.errors import WikiRefused

SUFFIX = ".md"
NAME_LIMIT = 200
"""Limit of a name in bytes; every file system allows this length."""
DEPTH_LIMIT = 8
_MARKS = frozenset("-_.")

SPRINT_STATE = "sprint-state"


def plan(task: str) -> str:
    """Return the name of the page with the plan for a task; ``task``: its id."""
    return f"plans/{task}"


def handoff(nick: str) -> str:
    """Return the name of the page with the hand-off by the team member ``nick``."""
    return f"handoffs/{nick}"


def decision(title: str) -> str:
    """Return the name of the page that records the decision with this title."""
    return f"decisions/{title}"


def page_name(text: str) -> str:
    """Return a page name in Unicode form NFC, without ``.md``; ``WikiRefused`` if it is invalid."""
    name = unicodedata.normalize("NFC", text).removesuffix(SUFFIX)
    parts = name.split("/")
    if len(name.encode("utf-8", "surrogatepass")) > NAME_LIMIT:
        raise WikiRefused(f"the name of a page has at most {NAME_LIMIT} bytes")
    if len(parts) > DEPTH_LIMIT:
        raise WikiRefused(f"{name!r} is more than {DEPTH_LIMIT} folders deep")
    for part in parts:
        problem = _problem_of(part)
        if problem:
            raise WikiRefused(f"{name!r} cannot be the name of a page: {problem}")
    return name


def key(name: str) -> str:
    """Return a page name in lower case, by which names are compared.

    No two pages of a wiki have names that differ only by case.
    """
    return unicodedata.normalize("NFC", name.casefold())


def path_of(name: str) -> str:
    """Return the path, within the git repository, of the file of the page ``name``."""
    return name + SUFFIX


def page_of(path: str) -> str | None:
    """Return the name of the page in the file at ``path``; None if the file is not a wiki page."""
    if not path.endswith(SUFFIX):
        return None
    try:
        name = page_name(path)
    except WikiRefused:
        return None
    return name if path_of(name) == path else None


def _problem_of(part: str) -> str:
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
