"""The state as it stands in state.json."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from culture.orchestrator.journal import Entry, Phase
from culture.orchestrator.state import Member, Stage, State, Task, key_of


def as_data(state: State) -> dict[str, Any]:
    """The state for state.json; ``from_data`` reads it back."""
    return {
        "number": state.number,
        "members": [asdict(member) for member in state.members.values()],
        "tasks": [asdict(task) for task in state.tasks.values()],
        "names": list(state.names),
        "open": [_entry_data(entry) for entry in state.open.values()],
        "heard": list(state.heard),
        "told": list(state.told),
        "prompts": list(state.prompts),
        "spent_tokens": state.spent_tokens,
        "spent_usd": state.spent_usd,
        "shifts": state.shifts,
        "allowances": {id: list(said) for id, said in state.allowances.items()},
        "parked": sorted(state.parked),
    }


def from_data(data: Mapping[str, Any]) -> State:
    """The state that was written to state.json."""
    members = [Member(**{**each, "channels": tuple(each["channels"])}) for each in data["members"]]
    tasks = [Task(**{**each, "stage": Stage(each["stage"])}) for each in data["tasks"]]
    waiting = [
        Entry(each["number"], each["at"], each["what"], Phase(each["phase"]), each["data"]) for each in data["open"]
    ]
    return State(
        number=data["number"],
        members={member.nick.lower(): member for member in members},
        tasks={task.id: task for task in tasks},
        names=tuple(data["names"]),
        open={key_of(entry): entry for entry in waiting},
        heard=dict.fromkeys(data["heard"]),
        told=dict.fromkeys(data["told"]),
        prompts=dict.fromkeys(data["prompts"]),
        spent_tokens=data["spent_tokens"],
        spent_usd=data["spent_usd"],
        shifts=data["shifts"],
        allowances={id: (said[0], said[1]) for id, said in data["allowances"].items()},
        parked=frozenset(data["parked"]),
    )


def _entry_data(entry: Entry) -> dict[str, Any]:
    return {
        "number": entry.number,
        "at": entry.at,
        "what": entry.what,
        "phase": entry.phase.value,
        "data": dict(entry.data),
    }
