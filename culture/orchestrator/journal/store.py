"""The store of one team: journal, snapshot, and the state, which changes after the write."""

import json
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from culture.lib.files import private_directory, replace_file
from culture.orchestrator.journal.journal import JournalEntry, Phase, TeamJournal, peek
from culture.orchestrator.journal.replay import apply_entry, replay
from culture.orchestrator.journal.state import Act, TaskStage, TeamMember, TeamState, TeamTask, key_of
from culture.protocol.names import fold

log = logging.getLogger(__name__)

JOURNAL, STATE = "journal.jsonl", "state.json"
LONGEST = 2000
"""Number of entries after which the journal starts empty behind the snapshot."""


def as_data(state: TeamState) -> dict[str, Any]:
    """Return the team's state as JSON data for state.json; ``from_data`` reads the data back."""
    return {
        "number": state.number,
        "members": [asdict(member) for member in state.members.values()],
        "tasks": [asdict(task) for task in state.tasks.values()],
        "names": list(state.names),
        "open": [_entry_data(entry) for entry in state.open.values()],
        "heard": list(state.handled),
        "told": list(state.announced),
        "prompts": list(state.prompts),
        "spent_tokens": state.spent_tokens,
        "spent_usd": state.spent_usd,
        "shifts": state.shifts,
        "allowances": {id: list(limits) for id, limits in state.allowances.items()},
        "parked": sorted(state.parked),
    }


def from_data(data: Mapping[str, Any]) -> TeamState:
    """Return the state that the JSON data of state.json describes."""
    members = [TeamMember(**{**each, "channels": tuple(each["channels"])}) for each in data["members"]]
    tasks = [TeamTask(**{**each, "stage": TaskStage(each["stage"])}) for each in data["tasks"]]
    waiting = [
        JournalEntry(each["number"], each["at"], each["what"], Phase(each["phase"]), each["data"])
        for each in data["open"]
    ]
    return TeamState(
        number=data["number"],
        members={fold(member.nick): member for member in members},
        tasks={task.id: task for task in tasks},
        names=tuple(data["names"]),
        open={key_of(entry): entry for entry in waiting},
        handled=dict.fromkeys(data["heard"]),
        announced=dict.fromkeys(data["told"]),
        prompts=dict.fromkeys(data["prompts"]),
        spent_tokens=data["spent_tokens"],
        spent_usd=data["spent_usd"],
        shifts=data["shifts"],
        allowances={id: (limits[0], limits[1]) for id, limits in data["allowances"].items()},
        parked=frozenset(data["parked"]),
    )


def _entry_data(entry: JournalEntry) -> dict[str, Any]:
    return {
        "number": entry.number,
        "at": entry.at,
        "what": entry.what,
        "phase": entry.phase.value,
        "data": dict(entry.data),
    }


class TeamStore:
    """The journal of one team's folder and the state computed from it."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time.time) -> None:
        self._folder = folder
        self._clock = clock
        self._journal = TeamJournal(folder / JOURNAL)
        self._entries = 0
        self.state = TeamState()
        self.on_change: Callable[[JournalEntry], None] = lambda entry: None

    def open(self) -> None:
        """Read the snapshot and the journal of the team's folder, and compute the state from them."""
        private_directory(self._folder)
        entries = self._journal.read()
        self.state = replay(entries, _snapshot(self._folder / STATE))
        self._entries = len(entries)
        self._journal.continue_after(self.state.number)

    def intend(self, what: Act, **data: Any) -> None:
        """Write to the journal that an act is about to be performed, with its data."""
        self._write(what, Phase.INTEND, data)

    def done(self, what: Act, **data: Any) -> None:
        """Write to the journal that an act was performed, with its data."""
        self._write(what, Phase.DONE, data)

    def failed(self, what: Act, **data: Any) -> None:
        """Write to the journal that an act cannot be performed, with its data."""
        self._write(what, Phase.FAILED, data)

    def close(self) -> None:
        """Close the journal's file."""
        self._journal.close()

    def _write(self, what: Act, phase: Phase, data: dict[str, Any]) -> None:
        entry = self._journal.write(self._clock(), what.value, phase, data)
        self.state = apply_entry(self.state, entry)
        self._entries += 1
        self._write_snapshot()
        self.on_change(entry)

    def _write_snapshot(self) -> None:
        """Write the state to state.json, and empty a journal that has become long."""
        try:
            _put(self._folder / STATE, as_data(self.state))
            if self._entries >= LONGEST:
                self._journal.restart(self.state.number)
                self._entries = 0
        except OSError as error:
            # The entry itself is on disk.
            log.warning("%s was not written: %s", STATE, error.strerror)


def read_state(folder: Path) -> TeamState:
    """Read the state of a team from disk, without changing anything; the team may be running."""
    return replay(peek(folder / JOURNAL), _snapshot(folder / STATE))


def _snapshot(file: Path) -> TeamState:
    try:
        return from_data(json.loads(file.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return TeamState()


def _put(file: Path, data: dict[str, Any]) -> None:
    replace_file(file, json.dumps(data, ensure_ascii=False, indent=1))
