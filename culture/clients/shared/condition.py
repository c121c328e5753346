"""What an agent is doing, and why it cannot answer: read off the parts of its daemon."""

from culture.clients.shared.agentfacts import is_open
from culture.clients.shared.parts import Parts
from culture.clients.shared.prompts import PRIVATE
from culture.protocol.vocabulary import AgentState


def show(parts: Parts) -> None:
    """Publish what the agent is doing."""
    parts.reporting.wake()
    if parts.keeper.parked:
        parts.presence.show(AgentState.PARKED, why="too many crashes")
    elif parts.questions.waiting:
        parts.presence.show(AgentState.ASKING, _shown_task(parts), then=_next(parts))
    elif parts.work.busy:
        parts.presence.show(AgentState.WORKING, _shown_task(parts), then=_next(parts))
    elif parts.notes.held is not None:
        parts.presence.show(AgentState.PAUSED, parts.notes.held, why="stuck, waiting for guidance")
    elif parts.notes.paused:
        parts.presence.show(AgentState.PAUSED)
    elif (why := parts.purse.why_not()) is not None:
        parts.presence.show(AgentState.PARKED, why=why)
    elif parts.keeper.ready:
        parts.presence.show(AgentState.IDLE)


def _next(parts: Parts) -> AgentState | None:
    """What comes after a turn that is under way; a turn is not broken off for a pause."""
    return AgentState.PAUSED if parts.notes.paused or parts.notes.held is not None else None


def _shown_task(parts: Parts) -> str:
    """The task as everybody on the mesh may know it: not what was said where not everybody may come."""
    prompt = parts.work.prompt
    is_hidden = prompt is not None and not is_open(parts.transport, prompt.target)
    return PRIVATE if is_hidden else parts.task


def may_begin(parts: Parts) -> bool:
    """Whether a turn may begin."""
    is_held = parts.notes.paused or parts.notes.held is not None or parts.purse.why_not() is not None
    return parts.transport.connected and not is_held


def is_stopped(parts: Parts) -> bool:
    """Whether the agent does nothing until a person says resume, or until its budget begins anew."""
    notes = parts.notes
    return notes.paused or notes.held is not None or parts.keeper.parked or parts.purse.why_not() is not None


def unavailable(parts: Parts) -> str | None:
    """Why the agent answers later, for whoever calls it; None when it answers."""
    if parts.notes.held is not None:
        return f"paused, waiting for guidance (say resume or abort) on {parts.notes.held!r}"
    if parts.notes.paused:
        return "paused"
    if parts.keeper.parked:
        return "parked after too many crashes"
    if (why := parts.purse.why_not()) is not None:
        return f"parked: {why}"
    if parts.presence.state is AgentState.CRASHED:
        return "starting again after a crash"
    hours = parts.config.quiet_hours
    return f"quiet until {hours.split('-')[1]}" if hours and parts.work.is_quiet else None
