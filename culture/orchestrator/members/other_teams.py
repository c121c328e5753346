"""The other teams of this machine: no two members share a nick, and so no name is given to two."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from culture.lib.files import FileLock
from culture.orchestrator.journal.state import What
from culture.orchestrator.journal.store import JOURNAL, look
from culture.protocol.names import fold

log = logging.getLogger(__name__)

_LOCK = "names.lock"


@contextmanager
def one_at_a_time(folder: Path) -> Iterator[None]:
    """While a name is chosen and written down no other team chooses one; ``folder`` is that of this team."""
    with FileLock(folder.parent / _LOCK).held(timeout=None):
        yield


def names_of_others(folder: Path, server: str, past: bool = False) -> Iterator[str]:
    """The names of those who are in the other teams on a server, or are about to come; with ``past`` those who were."""
    prefix = fold(f"{server}-")
    for journal in folder.parent.glob(f"*/{JOURNAL}"):
        if journal.parent != folder:
            try:
                state = look(journal.parent)
            except (OSError, ValueError, LookupError, TypeError) as wrong:
                log.warning("%s cannot be read, and its names are not known: %s", journal.parent, wrong)
                continue
            yield from (member.name for member in state.members.values() if fold(member.nick).startswith(prefix))
            yield from (entry.data["successor"] for entry in state.pending(What.SHIFT))
            yield from state.names if past else ()
