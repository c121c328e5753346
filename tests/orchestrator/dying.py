"""``python -m tests.orchestrator.dying N``: `culture team up` that kills itself at the N-th entry about the next task.

An intention is written, and the process dies before it acts; an act is done, and the process dies before it says so.
"""

import os
import signal
import sys
from collections.abc import Mapping
from typing import Any

from culture.cli.app import app
from culture.orchestrator.journal.journal import JournalEntry, Phase, TeamJournal
from culture.orchestrator.journal.state import Act

_write = TeamJournal.write
_begin = os.environ.get("DIE_FROM", Act.TASK.value)
_left = int(sys.argv[1])
_about: set[str] = set()
"""The task, and who works on it."""


def _concerns(what: str, phase: Phase, data: Mapping[str, Any]) -> bool:
    if what == _begin and phase is Phase.INTEND and not _about:
        _about.update(str(data[name]) for name in ("id", "nick", "page") if data.get(name))
        _about.update(f"spark-{data[name]}" for name in ("successor",) if data.get(name))
    if str(data.get("task")) in _about and "nick" in data:
        _about.add(str(data["nick"]))
    words = {str(data.get("id")), str(data.get("nick")), *str(data.get("key", "")).split()}
    return what != Act.SPENT and bool(_about & words)


def write(self: TeamJournal, at: float, what: str, phase: Phase, data: Mapping[str, Any]) -> JournalEntry:
    """What ``TeamJournal.write`` does, and now and then the end."""
    global _left
    is_ours = _concerns(what, phase, data)
    _left -= is_ours
    if is_ours and not _left and phase is not Phase.INTEND:
        os.kill(os.getpid(), signal.SIGKILL)
    entry = _write(self, at, what, phase, data)
    if is_ours and not _left:
        os.kill(os.getpid(), signal.SIGKILL)
    return entry


if __name__ == "__main__":
    TeamJournal.write = write  # type: ignore[method-assign]
    app(["team", "up"], standalone_mode=True)
