"""Computes the state from the journal: one function per kind of entry."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from culture.orchestrator.journal.journal import JournalEntry, Phase
from culture.orchestrator.journal.state import Act, TaskStage, TeamMember, TeamState, TeamTask, key_of
from culture.protocol.names import fold

MOST = 4000
"""Number of keys of a kind to remember; above it the older half is forgotten."""


def replay(entries: Iterable[JournalEntry], state: TeamState | None = None) -> TeamState:
    """Return the state after these entries, starting with ``state`` or an empty one.

    Entries that ``state`` already contains are skipped.
    """
    now = state or TeamState()
    for entry in entries:
        if entry.number > now.number:
            now = apply_entry(now, entry)
    return now


def apply_entry(state: TeamState, entry: JournalEntry) -> TeamState:
    """Return the state after one more journal entry.

    An entry of an unknown kind changes only its number, the open acts and the handled messages.
    """
    open_now = dict(state.open)
    if entry.phase is Phase.INTEND:
        open_now[key_of(entry)] = entry
    else:
        open_now.pop(key_of(entry), None)
    msgid = entry.data.get("msgid")
    handled = _latest(state.handled, msgid) if msgid else state.handled
    state = replace(state, number=entry.number, open=open_now, handled=handled)
    change = _CHANGES.get((entry.what, entry.phase))
    return change(state, entry.data) if change is not None else state


def _on_task(state: TeamState, data: Mapping[str, Any]) -> TeamState:
    task = TeamTask(data["id"], data["text"], data["by"], data.get("msgid", ""))
    return replace(state, tasks={**state.tasks, task.id: task})


def _on_queued(state: TeamState, data: Mapping[str, Any]) -> TeamState:
    return _change_task(state, data["id"], stage=TaskStage.QUEUED)


def _on_worktree(state: TeamState, data: Mapping[str, Any]) -> TeamState:
    fields = {"branch": data["branch"], "worktree": data["path"], "base": data.get("base", "")}
    return _change_task(state, data["id"], stage=TaskStage.WORKING, **fields)


def _on_hire_intended(state: TeamState, data: Mapping[str, Any]) -> TeamState:
    member = TeamMember(
        data["name"],
        data["nick"],
        data["role"],
        data.get("task"),
        tuple(data.get("channels", ())),
        worktree_path=data.get("worktree", ""),
        order=data.get("order", ""),
        order_key=data.get("order_key", ""),
        wanted=data.get("msgid", ""),
    )
    state = _close(state, f"{Act.WANTED.value} {fold(member.wanted)}")
    names = state.names if data["name"] in state.names else (*state.names, data["name"])
    state = replace(state, names=names, members={**state.members, fold(member.nick): member})
    if member.role == "manager" and member.task_id is not None:
        state = _change_task(state, member.task_id, manager=member.nick)
    return state


def _on_hired(state: TeamState, data: Mapping[str, Any]) -> TeamState:
    session = data.get("session")
    return _change_member(state, data["nick"], hired=True, **({"session_id": session} if session else {}))


def _on_hire_failed(state: TeamState, data: Mapping[str, Any]) -> TeamState:
    return _remove_member(state, data["nick"])


def _on_shift_intended(state: TeamState, data: Mapping[str, Any]) -> TeamState:
    name = data.get("successor")
    names = (*state.names, name) if name and name not in state.names else state.names
    task = state.tasks.get(data.get("task") or "")
    state = replace(state, names=names)
    return _change_task(state, task.id, shifts=task.shifts + 1) if task else replace(state, shifts=state.shifts + 1)


def _on_shifted(state: TeamState, data: Mapping[str, Any]) -> TeamState:
    """Return the state with context and session of the EM reset, after its shift change.

    Other members change their name in a shift change; the EM keeps it.
    """
    return _change_member(state, data["nick"], wrapping_up=False, context_pct=None, session_id=None)


def _on_retire_intended(state: TeamState, data: Mapping[str, Any]) -> TeamState:
    return _change_member(state, data["nick"], leaving=True)


def _on_retired(state: TeamState, data: Mapping[str, Any]) -> TeamState:
    return _remove_member(state, data["nick"])


def _on_prompted(state: TeamState, data: Mapping[str, Any]) -> TeamState:
    state = replace(state, prompts=_latest(state.prompts, data["key"]))
    return _change_member(state, data["nick"], wrapping_up=True) if data.get("wrap_up") else state


def _on_report(state: TeamState, data: Mapping[str, Any]) -> TeamState:
    stage = TaskStage(data["how"])
    if stage.is_over:
        state = replace(state, parked=state.parked - {data["id"]})
    return _change_task(state, data["id"], stage=stage, said=data.get("text", ""))


def _on_cleanup(state: TeamState, data: Mapping[str, Any]) -> TeamState:
    fields = {"rescue": data.get("ref", ""), "stays": data.get("stays", "")}
    return _change_task(state, data["id"], cleaned=True, worktree="", **fields)


def _on_spent(state: TeamState, data: Mapping[str, Any]) -> TeamState:
    return _change_member(
        state,
        data["nick"],
        tokens=data["tokens"],
        cost=data["cost_usd"],
        context_pct=data.get("context_pct"),
        session_id=data.get("session"),
    )


def _on_announced(state: TeamState, data: Mapping[str, Any]) -> TeamState:
    return replace(
        state,
        announced=_latest(
            state.announced, data["key"], *data.get("also", ()), spared=lambda key: _is_permanent(state, key)
        ),
    )


def _is_permanent(state: TeamState, key: str) -> bool:
    """Return whether the key of a sent notice stays in the state as long as the notice's task."""
    word, _, rest = key.partition(" ")
    if word == "overlap":
        return all(id in state.tasks and not state.tasks[id].stage.is_over for id in rest.split(" ")[:2])
    return word in ("begun", "over")


def _latest(keys: Mapping[str, None], *new: str, spared: Callable[[str], bool] = lambda key: False) -> dict[str, None]:
    """Return ``keys`` plus the keys ``new``, as a dictionary (an ordered set).

    If there are too many, the oldest half is dropped, except keys for which ``spared`` returns True.
    """
    keys = {**keys, **dict.fromkeys(new)}
    if len(keys) <= MOST:
        return keys
    late = set(list(keys)[-MOST // 2 :])
    return {key: None for key in keys if key in late or spared(key)}


def _on_allowance(state: TeamState, data: Mapping[str, Any]) -> TeamState:
    return replace(state, allowances={**state.allowances, data["id"]: (data.get("usd"), data.get("tokens"))})


def _on_park(state: TeamState, data: Mapping[str, Any]) -> TeamState:
    return replace(state, parked=state.parked | {data["id"]})


def _on_release(state: TeamState, data: Mapping[str, Any]) -> TeamState:
    return replace(state, parked=state.parked - {data["id"]})


def _close(state: TeamState, *keys: str) -> TeamState:
    return replace(state, open={key: entry for key, entry in state.open.items() if key not in keys})


def _change_task(state: TeamState, id: str, **changes: Any) -> TeamState:
    task = state.tasks.get(id)
    if task is None:
        return state
    return replace(state, tasks={**state.tasks, id: replace(task, **changes)})


def _change_member(state: TeamState, nick: str, **changes: Any) -> TeamState:
    member = state.member(nick)
    if member is None:
        return state
    return replace(state, members={**state.members, fold(nick): replace(member, **changes)})


def _remove_member(state: TeamState, nick: str) -> TeamState:
    member = state.member(nick)
    if member is None:
        return state
    remaining = {key: each for key, each in state.members.items() if key != fold(nick)}
    waiting = [
        key for key, entry in state.open.items() if entry.what == Act.PROMPT and entry.data["nick"] == member.nick
    ]
    state = _close(state, *waiting)
    tokens, usd = state.spent_tokens + member.tokens, state.spent_usd + member.cost
    state = replace(state, members=remaining, spent_tokens=tokens, spent_usd=usd)
    task = state.tasks.get(member.task_id or "")
    if task is None:
        return state
    used = {"tokens": task.tokens + member.tokens, "cost_usd": task.cost_usd + member.cost}
    return _change_task(state, task.id, manager=None if task.manager == member.nick else task.manager, **used)


_CHANGES: Mapping[tuple[str, Phase], Callable[[TeamState, Mapping[str, Any]], TeamState]] = {
    (Act.TASK, Phase.DONE): _on_task,
    (Act.QUEUED, Phase.DONE): _on_queued,
    (Act.WORKTREE, Phase.DONE): _on_worktree,
    (Act.HIRE, Phase.INTEND): _on_hire_intended,
    (Act.HIRE, Phase.DONE): _on_hired,
    (Act.HIRE, Phase.FAILED): _on_hire_failed,
    (Act.PROMPT, Phase.DONE): _on_prompted,
    (Act.SHIFT, Phase.INTEND): _on_shift_intended,
    (Act.SHIFT, Phase.DONE): _on_shifted,
    (Act.RETIRE, Phase.INTEND): _on_retire_intended,
    (Act.RETIRE, Phase.DONE): _on_retired,
    (Act.REPORT, Phase.DONE): _on_report,
    (Act.CLEANUP, Phase.DONE): _on_cleanup,
    (Act.SPENT, Phase.DONE): _on_spent,
    (Act.ANNOUNCED, Phase.DONE): _on_announced,
    (Act.ALLOWANCE, Phase.DONE): _on_allowance,
    (Act.PARK, Phase.INTEND): _on_park,
    (Act.RELEASE, Phase.DONE): _on_release,
}
