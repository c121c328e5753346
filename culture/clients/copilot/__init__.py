"""The copilot backend: runs the GitHub Copilot CLI through its SDK."""

from culture.clients.shared.sandbox.needs import ProgramNeeds
from culture.clients.shared.turn import Backend

BACKEND = Backend(
    name="copilot",
    runner="culture.clients.copilot.agent_runner:CopilotRunner",
    supervisor="culture.clients.copilot.supervisor:CopilotSupervisor",
    fields=frozenset({"copilot_path", "permission_mode", "provider"}),
    skill="culture.clients.copilot",
    # After 30 s it moves a command to the background.
    ask_bound=25.0,
    asks=("permission_mode", frozenset({"ask"})),
    finder="culture.clients.copilot.detect:found",
    needs=ProgramNeeds(
        folders=(".copilot",),
        settings=(
            *(".copilot/settings.json", ".copilot/mcp-config.json", ".copilot/copilot-instructions.md"),
            # The last one is the unpacked program itself.
            *(".copilot/skills", ".copilot/agents", ".agents/skills", ".cache/copilot"),
        ),
        copies=(".copilot/config.json",),
        moved={"COPILOT_HOME": ".copilot", "XDG_CACHE_HOME": ".cache"},
        variables=("COPILOT_*", "GH_TOKEN", "GITHUB_TOKEN"),
        hosts=("api.github.com", "github.com", "api.githubcopilot.com", "*.githubcopilot.com"),
    ),
)
