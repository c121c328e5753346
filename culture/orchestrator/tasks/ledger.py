"""Publishes tasks as facts in the server's ledger."""

from pathlib import PurePath

from culture.orchestrator.journal.state import TeamState
from culture.orchestrator.team_context import TeamContext

_LONGEST_TITLE = 200
_MOST_MEMBERS = 20


async def publish_task(context: TeamContext, id: str | None) -> None:
    """Publish a task's status as a ledger fact, if it has changed since the last time.

    ``id``: the task; nothing is done for None or an unknown one.
    """
    if id is not None and id in context.store.state.tasks:
        await context.rooms.publish_task(id, as_fact(context.store.state, id))


def as_fact(state: TeamState, id: str) -> dict[str, object]:
    """Return the fields of the ledger fact about the task ``id``: stage, members, branch, usage."""
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
