"""Permissions for tools: what somebody allows for good."""

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path

from culture.clients.shared.answers import CHOICES, Kind, Reading, without_ids

ALWAYS = "always"
OPTIONS = CHOICES
# What the agent says of a use beside the use itself.
ASIDES = frozenset({"description", "timeout"})
# What a command may have beside itself to be covered by a pattern; not for instance leave to go without a sandbox.
_WITH_COMMAND = ASIDES | {"command", "run_in_background"}
_PATTERN = re.compile(r"(?P<tool>[A-Za-z_][\w-]*)(?:\((?P<what>.+)\))?")
# What a pattern is matched against, the first that a tool has.
_PATHS = ("file_path", "notebook_path", "path")
_SUBJECTS = ("command", *_PATHS, "url", "query", "pattern")


def read_always(said: str, tool: str) -> tuple[Reading, str] | None:
    """A text that says ``always …``: the reading, or what to tell about it; None when it says no such thing."""
    word, _, rest = without_ids(said).partition(" ")
    if word.rstrip(",:.!").casefold() != ALWAYS:
        return None
    why = wrong_pattern(rest.strip().strip("`"), tool)
    return Reading(Kind.ANSWER, ALWAYS), why


def wrong_pattern(pattern: str, tool: str) -> str:
    """Why this is no pattern that may be allowed for good; empty when it is one."""
    example = f'for example "always {tool}(git status:*)"' if tool == "Bash" else f'for example "always {tool}(docs/*)"'
    found = _PATTERN.fullmatch(pattern)
    if not pattern or found is None:
        return f"always needs a pattern that says what, {example}. The question stays open"
    if found["tool"] != tool:
        return f"always is for the tool that is asked for, {tool}, {example}. The question stays open"
    what = (found["what"] or "").strip().removesuffix(":*")
    if not what or not re.search(r"\w{2}", what):
        return f"that would allow {tool} for everything; say what, {example}. The question stays open"
    return ""


def pattern_of(said: str) -> str:
    """The pattern in ``always …``."""
    return without_ids(said).partition(" ")[2].strip().strip("`")


def is_pattern(said: str) -> bool:
    """Whether ``always …`` names a pattern, right or wrong, or nothing at all; else it is a sentence."""
    pattern = pattern_of(said)
    return not pattern or _PATTERN.fullmatch(pattern) is not None


def allows(pattern: str, tool: str, given: Mapping[str, object], directory: Path) -> bool:
    """Whether a pattern allows this use of a tool: ``:*`` at its end is any continuation, else ``*`` any text.

    A path that does not begin with ``/`` is one in the agent's directory.
    """
    found, subject = _PATTERN.fullmatch(pattern), subject_of(given)
    if found is None or found["tool"] != tool or found["what"] is None or subject is None:
        return False
    what = found["what"].strip()
    if "command" in given and given.keys() - _WITH_COMMAND:
        return False
    if "command" in given and _chains(subject):
        return subject == what
    if what.endswith(":*"):
        start = what.removesuffix(":*")
        return subject == start or subject.startswith(f"{start} ")
    if not what.startswith("/") and not given.keys().isdisjoint(_PATHS):
        return fnmatchcase(_within(directory, subject), what)
    return ".." not in subject.split("/") and fnmatchcase(subject, what)


def _within(directory: Path, path: str) -> str:
    """A path in the directory as seen from there, wherever links lead; empty for one outside."""
    try:
        return str((directory / path).resolve().relative_to(directory.resolve()))
    except (OSError, ValueError, RuntimeError):  # outside, a NUL, links in a circle
        return ""


def _chains(command: str) -> bool:
    """Whether a command line is more than one simple command, so that its beginning says little."""
    return re.search(r"[;&|<>`\n\r$()\\]", command) is not None


def subject_of(given: Mapping[str, object]) -> str | None:
    """What a use of a tool is about: its command, path or address; None when it has no such field."""
    for name in _SUBJECTS:
        if isinstance(value := given.get(name), str):
            return value
    return None
