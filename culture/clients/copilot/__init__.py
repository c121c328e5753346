"""GitHub Copilot, through its SDK."""

from culture.clients.shared.turn import Backend

BACKEND = Backend(
    name="copilot",
    runner="culture.clients.copilot.agent_runner:CopilotRunner",
    supervisor="culture.clients.copilot.supervisor:CopilotSupervisor",
    fields=frozenset({"copilot_path", "permission_mode", "provider"}),
    skill="culture.clients.copilot",
    finder="culture.clients.copilot.found:found",
)
