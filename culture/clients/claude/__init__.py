"""The claude backend: runs Claude Code through the Claude Agent SDK."""

from culture.clients.shared.sandbox.needs import ProgramNeeds
from culture.clients.shared.turn import Backend

BACKEND = Backend(
    name="claude",
    runner="culture.clients.claude.agent_runner:ClaudeRunner",
    supervisor="culture.clients.claude.supervisor:ClaudeSupervisor",
    fields=frozenset({"permission_mode", "allowed_tools", "mcp_servers"}),
    default_model="claude-opus-4-6",
    skill="culture.clients.claude",
    skill_folders=(".claude/skills", ".agents/skills"),
    loads_skill=True,
    # After 120 s it moves a command to the background, and its end is no user message.
    ask_bound=90.0,
    asks=("permission_mode", frozenset({"default", "acceptEdits", "plan", "auto"})),
    finder="culture.clients.claude.detect:found",
    needs=ProgramNeeds(
        folders=(".claude",),
        logins=(".claude/.credentials.json",),
        settings=(
            *(".claude/settings.json", ".claude/CLAUDE.md", ".claude/skills", ".claude/agents", ".claude/commands"),
            *(".claude/plugins", ".claude/hooks", ".claude/rules", ".agents/skills"),
        ),
        copies=(".claude.json",),
        moved={"CLAUDE_CONFIG_DIR": ".claude"},
        variables=("ANTHROPIC_*", "CLAUDE_*", "DISABLE_*", "API_TIMEOUT_MS", "BASH_*_MS", "MAX_*_TOKENS", "MCP_*"),
        # The sandbox contains it: without this it refuses bypassPermissions as root.
        set={"IS_SANDBOX": "1"},
        hosts=("api.anthropic.com", "platform.claude.com", "console.anthropic.com"),
    ),
)
