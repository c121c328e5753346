"""Handles on members, and the usage that their daemons report."""

from collections.abc import Mapping
from typing import Any

from culture.orchestrator.journal.state import TeamMember, What
from culture.orchestrator.members.members import AgentSession, ContextTracker, ManagedAgent, ModelTier
from culture.orchestrator.parts import TeamParts


def handle(parts: TeamParts, member: TeamMember) -> ManagedAgent:
    """The handle on a member."""
    found = parts.agents.get(member.name)
    if found is None:
        found = parts.agents[member.name] = ManagedAgent(_session(parts, member), member.task_id, member.role)
    return found


async def figures(parts: TeamParts, member: TeamMember) -> Mapping[str, Any]:
    """What a member's daemon knows of it, and what it has used, which is written down; NoAnswer without it."""
    session = handle(parts, member).session
    status = await session.look()
    tokens = int(status.get("tokens_ever", 0))
    if status.get("context_pct") is None:
        session.context_tracker.add(max(0, tokens - member.tokens))
    used = {
        "tokens": tokens,
        "cost_usd": float(status.get("cost_usd_ever", 0.0)),
        "context_pct": session.context_tracker.pct,
        "session": session.session_id,
    }
    now = parts.book.state.member(member.nick)
    if now is not None and (now.tokens, now.cost, now.context_pct, now.session_id) != tuple(used.values()):
        parts.book.done(What.SPENT, nick=now.nick, **used)
    return status


def _session(parts: TeamParts, member: TeamMember) -> AgentSession:
    config, role = parts.config, parts.config.role(member.role)
    tracker = ContextTracker(
        window_size=ModelTier.context_window(role.model),
        threshold_pct=config.shift_threshold_pct,
        warn_pct=config.warn_pct,
    )
    tracker.input_tokens = int((member.context_pct or 0.0) * tracker.window_size / 100)
    return AgentSession(
        name=member.name,
        model=role.model or "",
        system_prompt=parts.roster.told(member, parts.book.state),
        cwd=member.worktree_path,
        mcp_servers=parts.roster.mcp_servers(member.nick),
        context_tracker=tracker,
        daemons=parts.daemons,
        nick=member.nick,
        session_id=member.session_id,
        _send_timeout=config.send_timeout,
    )
