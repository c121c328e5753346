"""MODE strings to changes, and changes to MODE strings."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import NamedTuple


class ModeKind(Enum):
    """The kinds of modes, by when they have a parameter: the four types of CHANMODES, and ranks."""

    LIST = "A"
    ALWAYS = "B"
    WHEN_SET = "C"
    FLAG = "D"
    PREFIX = "PREFIX"


class ModeChange(NamedTuple):
    """A mode that is set (``add``) or unset; a list mode without a parameter asks for the list."""

    add: bool
    mode: str
    param: str | None = None


def parse_changes(
    params: Sequence[str], kinds: Mapping[str, ModeKind], default_add: bool = True
) -> tuple[list[ModeChange], list[str]]:
    """Return the mode changes in the parameters of a MODE command, and the unknown mode letters.

    ``kinds``: the known modes. ``default_add``: modes without a sign are set. A mode without its parameter is left out
    (RFC 2812 §3.2.3 has no reply for it), except ``-k``, which needs no key. An empty parameter counts as missing,
    except for a key or a limit, where the server should refuse it.
    """
    changes: list[ModeChange] = []
    unknown: dict[str, None] = {}
    rest = iter(params)
    for position, letters in enumerate(rest):
        if position and letters[:1] not in ("+", "-"):
            continue  # one parameter too many
        add = default_add
        for letter in letters:
            if letter in "+-":
                add = letter == "+"
            elif letter not in kinds:
                unknown[letter] = None
            else:
                kind = kinds[letter]
                param = next(rest, None) if _takes_param(kind, add) else None
                if kind is ModeKind.LIST or kind is ModeKind.PREFIX:
                    param = param or None
                if param is not None or kind is ModeKind.LIST or not _needs_param(kind, add):
                    changes.append(ModeChange(add, letter, param))
    return changes, list(unknown)


def _takes_param(kind: ModeKind, add: bool) -> bool:
    return kind is not ModeKind.FLAG and (add or kind is not ModeKind.WHEN_SET)


def _needs_param(kind: ModeKind, add: bool) -> bool:
    return kind is ModeKind.PREFIX or (add and kind in (ModeKind.ALWAYS, ModeKind.WHEN_SET))


def format_changes(changes: Iterable[ModeChange], limit: int = 12, room: int = 300) -> list[tuple[str, ...]]:
    """Return the changes as parameters of MODE lines, one tuple for each line.

    A line has at most ``limit`` mode parameters and ``room`` bytes for all of them.
    """
    return [_format(group) for group in groups(changes, limit, room)]


def groups(changes: Iterable[ModeChange], limit: int = 12, room: int = 300) -> Iterator[list[ModeChange]]:
    """Yield the changes in groups that each fit into one MODE line.

    A line has at most ``limit`` mode parameters and ``room`` bytes; a change that is too long for any line stands
    alone.
    """
    group: list[ModeChange] = []
    count = size = 0
    for change in changes:
        params = change.param is not None
        cost = len(f"+{change.mode} {change.param or ''}".encode())
        if group and (size + cost > room or count + params > limit):
            yield group
            group, count, size = [], 0, 0
        group.append(change)
        count += params
        size += cost
    if group:
        yield group


def _format(group: Sequence[ModeChange]) -> tuple[str, ...]:
    letters, sign = "", ""
    for change in group:
        if sign != (sign := "+" if change.add else "-"):
            letters += sign
        letters += change.mode
    return letters, *(change.param for change in group if change.param is not None)
