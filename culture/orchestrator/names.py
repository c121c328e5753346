"""Names for members: each is given once, and rests when its bearer is gone."""

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import count
from pathlib import Path

from culture.orchestrator.prompts import own
from culture.protocol.names import fold

FILE = "names.txt"
SHIPPED = Path(__file__).with_name(FILE)


class NoNames(Exception):
    """There is no name to give; the text says what to do."""


def load(project: Path) -> tuple[str, ...]:
    """The project's own list at its root, else ours."""
    return listed(own(project, FILE, SHIPPED))


def listed(file: Path) -> tuple[str, ...]:
    """The names of a list, one in a line."""
    lines = (line.partition("#")[0].strip() for line in file.read_text(encoding="utf-8").splitlines())
    return tuple(dict.fromkeys(name for name in lines if name))


def next_name(
    names: Sequence[str], taken: Collection[str], is_known: Callable[[str], bool] = lambda name: False
) -> str:
    """The first name that nobody has or had."""
    for fresh in next_names(names, taken):
        if not is_known(fresh):
            return fresh
    raise NoNames(f"{FILE} in the project's folder is empty: put names into it, one in a line, or remove it")


def next_names(names: Sequence[str], taken: Collection[str]) -> Iterator[str]:
    """The names that nobody has or had, in their order; when all were given the list begins anew, with Ramona2."""
    known = {fold(name) for name in taken}
    for round in count(1) if names else ():
        for name in names:
            fresh = name if round == 1 else f"{name}{round}"
            if fold(fresh) not in known:
                yield fresh
