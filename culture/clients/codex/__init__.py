"""The codex backend: runs Codex through its app server."""

from culture.clients.shared.sandbox.needs import ProgramNeeds
from culture.clients.shared.turn import Backend

BACKEND = Backend(
    name="codex",
    runner="culture.clients.codex.agent_runner:CodexRunner",
    supervisor="culture.clients.codex.supervisor:CodexSupervisor",
    fields=frozenset({"approval_policy", "sandbox_mode"}),
    skill="culture.clients.codex",
    # After 10 s its shell lets the agent go on without the command, and says nothing of its end.
    ask_bound=8.0,
    asks=("approval_policy", frozenset({"on-request", "untrusted"})),
    finder="culture.clients.codex.detect:found",
    needs=ProgramNeeds(
        folders=(".codex",),
        logins=(".codex/auth.json",),
        settings=(
            *(".codex/config.toml", ".codex/AGENTS.md", ".codex/prompts", ".codex/rules", ".codex/skills"),
            ".agents/skills",
        ),
        moved={"CODEX_HOME": ".codex"},
        variables=("CODEX_*", "OPENAI_*"),
        hosts=("api.openai.com", "chatgpt.com", "auth.openai.com"),
    ),
)
