"""Members' names: each is given once on a machine, also after its member is gone."""

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from culture.lib.files import FileLock
from culture.orchestrator.journal.state import Act
from culture.orchestrator.journal.store import JOURNAL, read_state
from culture.orchestrator.prompts import project_file
from culture.protocol.names import fold

log = logging.getLogger(__name__)

FILE = "names.txt"
SHIPPED = Path(__file__).with_name(FILE)
_LOCK = "names.lock"


class NoNames(Exception):
    """No name for a member is left; the text says what to do."""


def load(project: Path) -> tuple[str, ...]:
    """Return the members' names: of the project's own list if there is one, else of culture's."""
    return read_list(project_file(project, FILE, SHIPPED))


def read_list(file: Path) -> tuple[str, ...]:
    """Return the names in a list file, one per line, without comments and duplicates."""
    lines = (line.partition("#")[0].strip() for line in file.read_text(encoding="utf-8").splitlines())
    return tuple(dict.fromkeys(name for name in lines if name))


def next_name(
    names: Sequence[str], used: Collection[str], has_traces: Callable[[str], bool] = lambda name: False
) -> str:
    """Return the first name that is not in ``used`` and for which ``has_traces`` is False.

    Without such a name, names with a number follow: ``Ramona2``. ``has_traces``: whether files of a former member
    with that name exist. Raises ``NoNames`` if ``names`` is empty.
    """
    for name in next_names(names, used):
        if not has_traces(name):
            return name
    raise NoNames(f"{FILE} in the project's folder is empty: put names into it, one in a line, or remove it")


def next_names(names: Sequence[str], used: Collection[str]) -> Iterator[str]:
    """Yield the names not in ``used``, then without end those with a number: ``Ramona2``."""
    folded = {fold(name) for name in used}
    for round in count(1) if names else ():
        for name in names:
            numbered = name if round == 1 else f"{name}{round}"
            if fold(numbered) not in folded:
                yield numbered


@contextmanager
def one_at_a_time(folder: Path) -> Iterator[None]:
    """Hold the lock under which teams choose and record names, one team at a time.

    ``folder`` is the team's folder.
    """
    with FileLock(folder.parent / _LOCK).held(timeout=None):
        yield


def names_of_other_teams(folder: Path, server: str, past: bool = False) -> Iterator[str]:
    """Yield the names that members of other teams on a server have.

    ``folder``: this team's folder, beside the others; ``server``: the server's short name; ``past`` adds former
    members.
    """
    prefix = fold(f"{server}-")
    for journal in folder.parent.glob(f"*/{JOURNAL}"):
        if journal.parent != folder:
            try:
                state = read_state(journal.parent)
            except (OSError, ValueError, LookupError, TypeError) as error:
                log.warning("cannot read %s, so its names may be given again: %s", journal.parent, error)
                continue
            yield from (member.name for member in state.members.values() if fold(member.nick).startswith(prefix))
            yield from (entry.data["successor"] for entry in state.pending(Act.SHIFT))
            yield from state.names if past else ()
