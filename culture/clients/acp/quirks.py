"""Quirks of each known ACP program; no other module of this backend names programs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from culture.clients.shared.sandbox.needs import ProgramNeeds

DEFAULT_COMMAND = ("opencode", "acp")
_XDG = {"XDG_CONFIG_HOME": ".config", "XDG_DATA_HOME": ".local/share", "XDG_STATE_HOME": ".local/state"}


@dataclass(frozen=True, slots=True)
class Quirks:
    """How an ACP program differs from one that follows the protocol exactly."""

    words: tuple[str, ...] = ()
    """Arguments that make it speak the protocol."""
    package: str = ""
    """Its npm package."""
    tried: str = ""
    """The newest tested version."""
    compact: str | None = None
    """Its command to compact the context, if it does not announce one."""
    asking: Mapping[str, str] = field(default_factory=dict)
    """Environment variables that make it ask for permissions."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Default environment variables."""
    pulls_files: bool = True
    """Whether it replaces ``@path`` with the file's content; assumed for unknown programs."""
    pulls_skills: bool = False
    """Whether ``$name`` anywhere in a prompt adds the text of a skill."""
    free: str | None = None
    """Mode without permission requests and sandbox, if it must be set."""
    careful: str | None = None
    """Mode in which it asks for permissions."""
    notices: bool = False
    """Whether text without a message id comes from the program, not from the model."""
    leaves_commands: bool = False
    """Whether commands keep running when a turn is interrupted."""
    keys: tuple[str, ...] = ()
    """Environment variables in which it looks for an API key."""
    logins: tuple[str, ...] = ()
    """Files under the home folder that show a login."""
    needs: ProgramNeeds = field(default_factory=ProgramNeeds)
    """Files that the program needs inside a sandbox, besides keys and logins."""

    @property
    def install(self) -> str:
        """Return the command that installs the tested version of the program; "" if unknown."""
        return f"npm install -g {self.package}@{self.tried}" if self.package else ""


KNOWN: Mapping[str, Quirks] = {
    "opencode": Quirks(
        words=DEFAULT_COMMAND[1:],
        package="opencode-ai",
        tried="1.18",
        compact="/compact",
        asking={"OPENCODE_PERMISSION": '{"*":"ask"}'},
        pulls_files=False,
        keys=("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "OPENCODE_API_KEY"),
        logins=(".local/share/opencode/auth.json",),
        needs=ProgramNeeds(
            folders=(".local/share/opencode", ".local/state/opencode", ".config/opencode", ".cache/opencode"),
            settings=(
                *(".config/opencode/opencode.json", ".config/opencode/opencode.jsonc", ".config/opencode/config.json"),
                *(".config/opencode/AGENTS.md", ".config/opencode/skills", ".agents/skills"),
            ),
            moved=_XDG,
            variables=("OPENCODE_*", "ANTHROPIC_*", "OPENAI_*", "OPENROUTER_*"),
            hosts=("opencode.ai", "models.dev", "api.anthropic.com", "api.openai.com", "openrouter.ai"),
        ),
    ),
    "cline": Quirks(
        words=("--acp",),
        package="cline",
        tried="3.0",
        keys=("CLINE_API_KEY",),
        needs=ProgramNeeds(folders=(".cline",), variables=("CLINE_*",)),
    ),
    "gemini": Quirks(
        words=("--acp",),
        package="@google/gemini-cli",
        tried="0.61",
        pulls_files=False,
        keys=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        logins=(".gemini/oauth_creds.json",),
        needs=ProgramNeeds(
            folders=(".gemini",),
            settings=(".gemini/settings.json", ".gemini/GEMINI.md", ".agents/skills"),
            variables=("GEMINI_*", "GOOGLE_API_KEY", "GOOGLE_CLOUD_PROJECT"),
            hosts=("generativelanguage.googleapis.com", "cloudcode-pa.googleapis.com", "oauth2.googleapis.com"),
        ),
    ),
    "qwen": Quirks(
        words=("--acp",),
        package="@qwen-code/qwen-code",
        tried="0.15",
        compact="/compress",
        pulls_files=False,
        keys=("OPENAI_API_KEY",),
        logins=(".qwen/oauth_creds.json",),
        needs=ProgramNeeds(
            folders=(".qwen",),
            settings=(".qwen/settings.json", ".qwen/QWEN.md", ".agents/skills"),
            variables=("QWEN_*", "OPENAI_*", "DASHSCOPE_*"),
            hosts=("portal.qwen.ai", "chat.qwen.ai", "dashscope.aliyuncs.com", "dashscope-intl.aliyuncs.com"),
        ),
    ),
    "claude-agent-acp": Quirks(
        package="@agentclientprotocol/claude-agent-acp",
        tried="0.49",
        compact="/compact",
        keys=("ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"),
        logins=(".claude/.credentials.json",),
        needs=ProgramNeeds(
            folders=(".claude",),
            settings=(".claude/settings.json", ".claude/CLAUDE.md", ".claude/skills", ".agents/skills"),
            copies=(".claude.json",),
            moved={"CLAUDE_CONFIG_DIR": ".claude"},
            variables=("ANTHROPIC_*", "CLAUDE_*"),
            hosts=("api.anthropic.com", "platform.claude.com"),
        ),
    ),
    "codex-acp": Quirks(
        package="@agentclientprotocol/codex-acp",
        tried="2.6",
        compact="/compact",
        pulls_files=False,
        pulls_skills=True,
        # With goals it would begin turns by itself, without end.
        variables={"CODEX_CONFIG": '{"features":{"goals":false}}'},
        # Inside its own sandbox it cannot reach the agent's daemon.
        free="agent-full-access",
        careful="read-only",
        notices=True,
        leaves_commands=True,
        keys=("OPENAI_API_KEY", "CODEX_API_KEY"),
        logins=(".codex/auth.json",),
        needs=ProgramNeeds(
            folders=(".codex",),
            settings=(".codex/config.toml", ".codex/AGENTS.md", ".codex/skills", ".agents/skills"),
            moved={"CODEX_HOME": ".codex"},
            variables=("OPENAI_*", "CODEX_*"),
            hosts=("api.openai.com", "chatgpt.com", "auth.openai.com"),
        ),
    ),
    # Not tested.
    "kiro-cli": Quirks(),
    "goose": Quirks(),
}


def program_of(command: Sequence[str]) -> str:
    """Return the name of the program that a command runs, directly, by path or through ``npx``."""
    names = [word.rsplit("/", 1)[-1].split("@")[0] for word in command]
    return next((name for name in names if name in KNOWN), names[0])


def quirks_of(command: Sequence[str]) -> Quirks:
    """Return the quirks of the program that a command runs; defaults for an unknown program."""
    return KNOWN.get(program_of(command), Quirks())
