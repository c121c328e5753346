"""The change that a tool would make to a file: a unified diff of its input and the file as it is now.

Nothing is written. A program that has made the diff itself hands it over as ``diff`` or ``changes``.
"""

import difflib
import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from culture.clients.shared.secret_mask import mask_for_approval

TOOLS = frozenset({"Edit", "Write", "MultiEdit", "NotebookEdit"})
_CONTEXT_LINES = 3
_LONGEST_FILE = 1_000_000
_MOST_COMPARED = 4_000_000
"""Lines before times lines after: beyond, all of the old ones are shown as removed, all new ones as added."""
_NO_END = "\\ no newline at the end"
_SUBJECTS = frozenset({"file_path", "notebook_path", "path", "diff", "changes"})
_TEXTS = frozenset({"old_string", "new_string", "replace_all", "edits", "content"})
_CELLS = frozenset({"new_source", "cell_id", "cell_type", "edit_mode"})


def fields_beside(given: Mapping[str, object]) -> dict[str, object]:
    """The fields of the input of a tool for files that its diff does not show."""
    return {name: value for name, value in given.items() if name not in _SUBJECTS | _TEXTS | _CELLS}


def diff_of(tool: str, given: Mapping[str, Any], directory: Path) -> str | None:
    """The change as a unified diff with its secrets masked; None when the input is of no known form."""
    if tool not in TOOLS:
        return None
    match given:
        case {"diff": str(diff)}:
            return mask_for_approval(diff.strip("\n"))
        case {"changes": [*changes]}:
            return mask_for_approval("\n".join(_of_program(each) for each in changes))
        case {"notebook_path": str(path), **rest}:
            return _of_notebook(path, rest, directory)
        case {"file_path": str(path), "content": str(content)}:
            return _compared(path, directory, lambda before: content)
        case {"file_path": str(path), "edits": [*edits]}:
            return _edited(path, [each for each in edits if isinstance(each, dict)], directory)
        case {"file_path": str(path), "new_string": str()}:
            return _edited(path, [given], directory)
    return None


def _paths(given: Mapping[str, Any]) -> list[str]:
    """The paths of the files that the input names."""
    changes = given.get("changes")
    several = [each.get("file") for each in changes if isinstance(each, Mapping)] if isinstance(changes, list) else []
    return [each for each in (given.get("file_path"), given.get("notebook_path"), *several) if isinstance(each, str)]


def names(given: Mapping[str, Any]) -> str | None:
    """The files of a change in one line; None when it names none."""
    return ", ".join(_paths(given)) or None


def digests(given: Mapping[str, Any], directory: Path) -> tuple[str, ...]:
    """What the files are now, by which a change of theirs since people were asked is noticed."""
    contents = (_content(directory / path) for path in _paths(given))
    return tuple(sha256("\0".join(each).encode(errors="replace")).hexdigest() for each in contents)


def _of_program(change: Any) -> str:
    """One of several changes as the program that asks tells them."""
    if not isinstance(change, Mapping):
        return str(change)
    diff, file = str(change.get("diff", "")), str(change.get("file", ""))
    diff = diff.strip("\n")
    return diff if diff.startswith("--- ") else f"--- {file}\n+++ {file}\n{diff}"


def _edited(path: str, edits: Sequence[Mapping[str, Any]], directory: Path) -> str:
    """The file with these texts replaced; of texts that are not in the file the two alone."""

    def after(before: str) -> str | None:
        for edit in edits:
            old, new = str(edit.get("old_string", "")), str(edit.get("new_string", ""))
            if not old:
                before = new + before
            elif old in before:
                before = before.replace(old, new, -1 if edit.get("replace_all") else 1)
            else:
                return None
        return before

    diff = _compared(path, directory, after)
    if diff is not None:
        return diff
    parts = [unified(str(each.get("old_string", "")), str(each.get("new_string", "")), path) for each in edits]
    return "\n".join([f"(the text to be replaced is not in {path} as it is now)", *parts])


def _compared(path: str, directory: Path, after: Callable[[str], str | None]) -> str | None:
    """The file against what it would become; None when that cannot be said."""
    file = directory / path
    before, why = _content(file)
    new = after(before)
    if new is None:
        return None
    name = _name(path, file)
    note = f"({name}: {why})\n" if why else ""
    return note + unified(before, new, name)


def _name(path: str, file: Path) -> str:
    """The path as given, and where it leads when a link leads elsewhere."""
    try:
        real = file.resolve()
        usual = Path(os.path.normpath(file.absolute()))
    except (OSError, ValueError, RuntimeError):  # a NUL, links in a circle
        return path
    return path if real == usual else f"{path} (a link to {real})"


def _content(file: Path) -> tuple[str, str]:
    """The text of a file, and what people must know of it; a pipe or a device is not opened for reading."""
    try:
        handle = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return "", "a new file"
    except (OSError, ValueError) as error:
        return "", f"it cannot be read: {error}"
    with open(handle, "rb") as opened:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            return "", "it is no regular file"
        if status.st_size > _LONGEST_FILE:
            return "", f"it has {status.st_size} bytes, too many to compare"
        return opened.read(_LONGEST_FILE + 1).decode(errors="replace"), ""


def _of_notebook(path: str, given: Mapping[str, Any], directory: Path) -> str:
    """The change of one cell of a notebook."""
    text, why = _content(directory / path)
    cell, mode = str(given.get("cell_id") or ""), str(given.get("edit_mode") or "replace")
    new = "" if mode == "delete" else str(given.get("new_source", ""))
    old = "" if mode == "insert" else _cell(text, cell)
    kind = f", {given['cell_type']}" if given.get("cell_type") else ""
    where = f"{_name(path, directory / path)} cell {cell or 'at the beginning'} ({mode}{kind})"
    if old is None:
        why, old = why or "there is no such cell", ""
    return (f"({why})\n" if why else "") + unified(old, new, where)


def _cell(notebook: str, id: str) -> str | None:
    """The source of a cell by its id, or by its number as in ``cell-3``; None when there is none."""
    try:
        cells = json.loads(notebook)["cells"]
        for number, cell in enumerate(cells):
            if id in (cell.get("id"), f"cell-{number}"):
                source = cell["source"]
                return source if isinstance(source, str) else "".join(source)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return None


def unified(before: str, after: str, name: str) -> str:
    """A unified diff of two texts, secrets masked in both; says so when only masked parts differ."""
    if before == after:
        return f"({name}: nothing changes)"
    old, new = _lines(mask_for_approval(before)), _lines(mask_for_approval(after))
    if old == new:
        return f"({name}: only what is masked here as a secret changes)"
    return "\n".join([f"--- {name}", f"+++ {name}", *_hunks(old, new)])


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    if lines[-1] == "":
        return lines[:-1]
    return [*lines[:-1], f"{lines[-1]}\n{_NO_END}"]


def _hunks(old: Sequence[str], new: Sequence[str]) -> list[str]:
    """The hunks; equal lines at both ends are not compared, since that takes a time that grows with the square."""
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    middle = old[head : len(old) - tail], new[head : len(new) - tail]
    # The context of the first and the last hunk comes from the lines that were not compared.
    start = max(head - _CONTEXT_LINES, 0)
    lead, rest = list(old[start:head]), list(old[len(old) - tail :][:_CONTEXT_LINES])
    if len(middle[0]) * len(middle[1]) > _MOST_COMPARED:
        changes = [*(f"-{line}" for line in middle[0]), *(f"+{line}" for line in middle[1])]
        counts = len(lead) + len(middle[0]) + len(rest), len(lead) + len(middle[1]) + len(rest)
        context = [f" {line}" for line in lead], [f" {line}" for line in rest]
        return [f"@@ -{start + 1},{counts[0]} +{start + 1},{counts[1]} @@", *context[0], *changes, *context[1]]
    before, after = [[*lead, *part, *rest] for part in middle]
    return list(_shifted(difflib.unified_diff(before, after, lineterm="", n=_CONTEXT_LINES), start))


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """How many lines at the beginning are the same."""
    number = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        number += 1
    return number


def _shifted(diff: Iterator[str], start: int) -> Iterator[str]:
    """The hunks of a diff without its two headings, the line numbers moved by what was left out before."""
    for number, line in enumerate(diff):
        if number < 2:
            continue
        if line.startswith("@@ "):
            _, old, new, _ = line.split(" ", 3)
            yield f"@@ {_moved(old, start)} {_moved(new, start)} @@"
        else:
            yield line


def _moved(span: str, start: int) -> str:
    sign, first, comma, count = span[0], *span[1:].partition(",")
    return f"{sign}{int(first) + start}{comma}{count}"
