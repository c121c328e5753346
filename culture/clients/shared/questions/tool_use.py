"""What an agent wants to do with a tool, in the words in which people are asked: one line, and all of it.

The line is part of the question. The detail (a diff, the whole command, the whole input) follows it in the room as far
as there is space, and is kept whole for ``culture questions``. Nothing is expanded or hidden by its letters.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from culture.clients.shared.questions import file_changes
from culture.clients.shared.questions.permissions import ASIDES, subject_of
from culture.clients.shared.secret_mask import mask_for_approval
from culture.protocol.split import clip
from culture.protocol.text import is_invisible

_LINE_BYTES = 170
LONGEST_DETAIL = 200_000
_CUT = "… [{} more bytes, which nobody can be shown: say no]"


@dataclass(frozen=True, slots=True)
class ToolUse:
    """One use of a tool that needs permission."""

    text: str
    """The use in one line. What it does not show as it is has a mark, so that two uses never look alike."""
    detail: str = ""
    """All that the line leaves out, in lines; empty when it leaves out nothing."""
    files: tuple[str, ...] = ()
    """Digests of the files that it would change, as they are: the same use of changed files is another one."""


def describe(tool: str, given: Mapping[str, object], directory: Path) -> ToolUse:
    """The use of a tool as people are shown it; a change of a file against the file as it is now."""
    told = {key: value for key, value in given.items() if key not in ASIDES}
    diff = file_changes.diff_of(tool, given, directory)
    subject = subject_of(given) or (file_changes.names(given) if diff is not None else None)
    what = subject if subject is not None else json.dumps(dict(given), ensure_ascii=False, default=str)
    line = _in_one_line(mask_for_approval(what))
    shown = clip(line, _LINE_BYTES)
    mark = sha256(json.dumps(told, sort_keys=True, default=str).encode()).hexdigest()[:8]
    cut = "…" if shown != line else ""
    if diff is not None:
        beside = file_changes.fields_beside(told)
        detail = _limited("\n".join([_visible(diff), *([_as_json(beside)] if beside else [])]))
        text = f'"{tool}: {shown}{cut} [{_counts(diff)}, {mark}] Proceed? [y/N]"'
        return ToolUse(text, detail, file_changes.digests(given, directory))
    if shown == what and len(told) <= 1:
        return ToolUse(f'"{tool}: {shown} Proceed? [y/N]"')
    text = f'"{tool}: {shown}{cut} [{len(what)} characters, {mark}] Proceed? [y/N]"'
    return ToolUse(text, _limited(_detail(what, told, is_subject=subject is not None)))


def _detail(what: str, told: Mapping[str, object], *, is_subject: bool) -> str:
    """The subject line by line, and every other field of the input."""
    if not is_subject:
        return _as_json(told)
    beside = {key: value for key, value in told.items() if value != what}
    return "\n".join([_visible(mask_for_approval(what)), *([_as_json(beside)] if beside else [])])


def _as_json(fields: Mapping[str, object]) -> str:
    return _visible(mask_for_approval(json.dumps(dict(fields), ensure_ascii=False, default=str, indent=2)))


def _limited(text: str) -> str:
    octets = len(text.encode(errors="replace"))
    return text if octets <= LONGEST_DETAIL else clip(text, LONGEST_DETAIL) + _CUT.format(octets - LONGEST_DETAIL)


def _counts(diff: str) -> str:
    """``+3 -1``: lines added and removed."""
    lines = [line for line in diff.split("\n") if not line.startswith(("+++ ", "--- "))]
    return f"+{sum(line.startswith('+') for line in lines)} -{sum(line.startswith('-') for line in lines)}"


def _in_one_line(text: str) -> str:
    """The text in one line, with whatever nobody sees spelled out."""
    return "".join(" ⏎ " if letter == "\n" else _seen(letter) for letter in text)


def _visible(text: str) -> str:
    """The text in its lines, with whatever else nobody sees spelled out."""
    return "".join(letter if letter in "\n\t" else _seen(letter) for letter in text)


def _seen(letter: str) -> str:
    is_odd_space = letter != " " and letter.isspace()
    return f"\\u{ord(letter):04x}" if is_odd_space or is_invisible(letter) else letter
