"""Claude Code as an agent, through the Claude Agent SDK."""

from culture.clients.shared.turn import Backend

BACKEND = Backend(
    name="claude",
    runner="culture.clients.claude.agent_runner:ClaudeRunner",
    supervisor="culture.clients.claude.supervisor:ClaudeSupervisor",
    fields=frozenset({"permission_mode", "allowed_tools", "mcp_servers"}),
    default_model="claude-opus-4-6",
    skill="culture.clients.claude",
    skill_folders=(".claude/skills", ".agents/skills"),
    finder="culture.clients.claude.found:found",
)
