"""From the journal to what the team knows: what each entry changes, so that all can be had again from the disk."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from culture.orchestrator.journal.journal import JournalEntry, Phase
from culture.orchestrator.journal.state import TaskStage, TeamMember, TeamState, TeamTask, What, key_of

MOST = 4000
"""So many keys of a kind are remembered before the older half is forgotten."""


def replayed(entries: Iterable[JournalEntry], state: TeamState | None = None) -> TeamState:
    """The state after these entries."""
    now = state or TeamState()
    for entry in entries:
        if entry.number > now.number:
            now = after(now, entry)
    return now


def after(state: TeamState, entry: JournalEntry) -> TeamState:
    """The state after one more entry; one that makes no sense changes nothing."""
    open_now = dict(state.open)
    if entry.phase is Phase.INTEND:
        open_now[key_of(entry)] = entry
    else:
        open_now.pop(key_of(entry), None)
    msgid = entry.data.get("msgid")
    heard = _latest(state.heard, msgid) if msgid else state.heard
    state = replace(state, number=entry.number, open=open_now, heard=heard)
    change = _CHANGES.get((entry.what, entry.phase))
    return change(state, entry.data) if change is not None else state


def _took(state: TeamState, data: Mapping[str, Any]) -> TeamState:
    task = TeamTask(data["id"], data["text"], data["by"], data.get("msgid", ""))
    return replace(state, tasks={**state.tasks, task.id: task})


def _queued(state: TeamState, data: Mapping[str, Any]) -> TeamState:
    return _task(state, data["id"], stage=TaskStage.QUEUED)


def _made_worktree(state: TeamState, data: Mapping[str, Any]) -> TeamState:
    found = {"branch": data["branch"], "worktree": data["path"], "base": data.get("base", "")}
    return _task(state, data["id"], stage=TaskStage.WORKING, **found)


def _hiring(state: TeamState, data: Mapping[str, Any]) -> TeamState:
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
    state = _closed(state, f"{What.WANTED.value} {member.wanted.lower()}")
    names = state.names if data["name"] in state.names else (*state.names, data["name"])
    state = replace(state, names=names, members={**state.members, member.nick.lower(): member})
    if member.role == "manager" and member.task_id is not None:
        state = _task(state, member.task_id, manager=member.nick)
    return state


def _hired(state: TeamState, data: Mapping[str, Any]) -> TeamState:
    session = data.get("session")
    return _member(state, data["nick"], hired=True, **({"session_id": session} if session else {}))


def _not_hired(state: TeamState, data: Mapping[str, Any]) -> TeamState:
    return _gone(state, data["nick"])


def _shifting(state: TeamState, data: Mapping[str, Any]) -> TeamState:
    name = data.get("successor")
    names = (*state.names, name) if name and name not in state.names else state.names
    task = state.tasks.get(data.get("task") or "")
    state = replace(state, names=names)
    return _task(state, task.id, shifts=task.shifts + 1) if task else replace(state, shifts=state.shifts + 1)


def _shifted(state: TeamState, data: Mapping[str, Any]) -> TeamState:
    """Who stays under its own name, as the EM does, begins with an empty context."""
    return _member(state, data["nick"], wrapping_up=False, context_pct=None, session_id=None)


def _retiring(state: TeamState, data: Mapping[str, Any]) -> TeamState:
    return _member(state, data["nick"], leaving=True)


def _retired(state: TeamState, data: Mapping[str, Any]) -> TeamState:
    return _gone(state, data["nick"])


def _prompted(state: TeamState, data: Mapping[str, Any]) -> TeamState:
    state = replace(state, prompts=_latest(state.prompts, data["key"]))
    return _member(state, data["nick"], wrapping_up=True) if data.get("wrap_up") else state


def _reported(state: TeamState, data: Mapping[str, Any]) -> TeamState:
    stage = TaskStage(data["how"])
    if stage.is_over:
        state = replace(state, parked=state.parked - {data["id"]})
    return _task(state, data["id"], stage=stage, said=data.get("text", ""))


def _cleaned(state: TeamState, data: Mapping[str, Any]) -> TeamState:
    kept = {"rescue": data.get("ref", ""), "stays": data.get("stays", "")}
    return _task(state, data["id"], cleaned=True, worktree="", **kept)


def _spent(state: TeamState, data: Mapping[str, Any]) -> TeamState:
    return _member(
        state,
        data["nick"],
        tokens=data["tokens"],
        cost=data["cost_usd"],
        context_pct=data.get("context_pct"),
        session_id=data.get("session"),
    )


def _told(state: TeamState, data: Mapping[str, Any]) -> TeamState:
    return replace(
        state, told=_latest(state.told, data["key"], *data.get("also", ()), spared=lambda key: _is_asked(state, key))
    )


def _is_asked(state: TeamState, key: str) -> bool:
    """Whether it is asked for again and again, for as long as there is the task."""
    word, _, rest = key.partition(" ")
    if word == "overlap":
        return all(id in state.tasks and not state.tasks[id].stage.is_over for id in rest.split(" ")[:2])
    return word in ("begun", "over")


def _latest(known: Mapping[str, None], *new: str, spared: Callable[[str], bool] = lambda key: False) -> dict[str, None]:
    """These and the new ones; when they have become many, the latest and those that are spared."""
    found = {**known, **dict.fromkeys(new)}
    if len(found) <= MOST:
        return found
    late = set(list(found)[-MOST // 2 :])
    return {key: None for key in found if key in late or spared(key)}


def _allowed(state: TeamState, data: Mapping[str, Any]) -> TeamState:
    return replace(state, allowances={**state.allowances, data["id"]: (data.get("usd"), data.get("tokens"))})


def _parked(state: TeamState, data: Mapping[str, Any]) -> TeamState:
    return replace(state, parked=state.parked | {data["id"]})


def _released(state: TeamState, data: Mapping[str, Any]) -> TeamState:
    return replace(state, parked=state.parked - {data["id"]})


def _closed(state: TeamState, *keys: str) -> TeamState:
    return replace(state, open={key: entry for key, entry in state.open.items() if key not in keys})


def _task(state: TeamState, id: str, **changes: Any) -> TeamState:
    task = state.tasks.get(id)
    if task is None:
        return state
    return replace(state, tasks={**state.tasks, id: replace(task, **changes)})


def _member(state: TeamState, nick: str, **changes: Any) -> TeamState:
    member = state.member(nick)
    if member is None:
        return state
    return replace(state, members={**state.members, nick.lower(): replace(member, **changes)})


def _gone(state: TeamState, nick: str) -> TeamState:
    member = state.member(nick)
    if member is None:
        return state
    left = {key: each for key, each in state.members.items() if key != nick.lower()}
    waiting = [
        key for key, entry in state.open.items() if entry.what == What.PROMPT and entry.data["nick"] == member.nick
    ]
    state = _closed(state, *waiting)
    tokens, usd = state.spent_tokens + member.tokens, state.spent_usd + member.cost
    state = replace(state, members=left, spent_tokens=tokens, spent_usd=usd)
    task = state.tasks.get(member.task_id or "")
    if task is None:
        return state
    used = {"tokens": task.tokens + member.tokens, "cost_usd": task.cost_usd + member.cost}
    return _task(state, task.id, manager=None if task.manager == member.nick else task.manager, **used)


_CHANGES: Mapping[tuple[str, Phase], Callable[[TeamState, Mapping[str, Any]], TeamState]] = {
    (What.TASK, Phase.DONE): _took,
    (What.QUEUED, Phase.DONE): _queued,
    (What.WORKTREE, Phase.DONE): _made_worktree,
    (What.HIRE, Phase.INTEND): _hiring,
    (What.HIRE, Phase.DONE): _hired,
    (What.HIRE, Phase.FAILED): _not_hired,
    (What.PROMPT, Phase.DONE): _prompted,
    (What.SHIFT, Phase.INTEND): _shifting,
    (What.SHIFT, Phase.DONE): _shifted,
    (What.RETIRE, Phase.INTEND): _retiring,
    (What.RETIRE, Phase.DONE): _retired,
    (What.REPORT, Phase.DONE): _reported,
    (What.CLEANUP, Phase.DONE): _cleaned,
    (What.SPENT, Phase.DONE): _spent,
    (What.TOLD, Phase.DONE): _told,
    (What.ALLOWANCE, Phase.DONE): _allowed,
    (What.PARK, Phase.INTEND): _parked,
    (What.RELEASE, Phase.DONE): _released,
}
