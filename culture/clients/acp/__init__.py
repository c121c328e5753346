"""The ACP backend: runs any agent that speaks the Agent Client Protocol."""

from culture.clients.shared.turn import Backend

BACKEND = Backend(
    name="acp",
    runner="culture.clients.acp.agent_runner:AcpRunner",
    supervisor="culture.clients.acp.supervisor:AcpSupervisor",
    fields=frozenset({"acp_command", "acp_mode", "permissions", "mcp_servers"}),
    skill="culture.clients.acp",
    skill_folders=(".agents/skills", ".claude/skills"),
    # OpenCode and Qwen Code end a command after 120 s.
    ask_bound=90.0,
    asks=("permissions", frozenset({"ask", "deny"})),
    finder="culture.clients.acp.detect:found",
    needs_of="culture.clients.acp.options:needs",
)
