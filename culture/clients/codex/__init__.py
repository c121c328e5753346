"""Codex as an agent, through its app server."""

from culture.clients.shared.turn import Backend

BACKEND = Backend(
    name="codex",
    runner="culture.clients.codex.agent_runner:CodexRunner",
    supervisor="culture.clients.codex.supervisor:CodexSupervisor",
    fields=frozenset({"approval_policy", "sandbox_mode"}),
    skill="culture.clients.codex",
    finder="culture.clients.codex.found:found",
)
