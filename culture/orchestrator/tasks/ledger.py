"""A task as everybody may read it: a fact of the ledger."""

from pathlib import PurePath

from culture.orchestrator.journal.state import TeamState
from culture.orchestrator.parts import TeamParts

_LONGEST_TITLE = 200
_MOST_MEMBERS = 20


async def publish(parts: TeamParts, id: str | None) -> None:
    """Say in the ledger how a task stands; what is known there already is not said again."""
    if id is not None and id in parts.book.state.tasks:
        await parts.rooms.publish(id, as_fact(parts.book.state, id))


def as_fact(state: TeamState, id: str) -> dict[str, object]:
    """The task as it stands: who works on it, where, and what it has cost."""
    task = state.tasks[id]
    return {
        "state": task.stage.value,
        "text": _title(task.text),
        "by": task.by,
        "manager": task.manager or "",
        "members": [member.nick for member in state.team_of(id)][:_MOST_MEMBERS],
        "channel": task.channel,
        "branch": task.branch,
        "worktree": PurePath(task.worktree).name,
        "shifts": task.shifts,
        "tokens": state.task_tokens(id),
        "cost_usd": round(state.task_usd(id), 4),
        "said": _title(task.said),
    }


def _title(text: str) -> str:
    return " ".join(text.split())[:_LONGEST_TITLE]
