"""What is particular about each program that speaks the protocol; nothing else in this backend knows their names."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from culture.clients.shared.sandbox.needs import ProgramNeeds

DEFAULT_COMMAND = ("opencode", "acp")
_XDG = {"XDG_CONFIG_HOME": ".config", "XDG_DATA_HOME": ".local/share", "XDG_STATE_HOME": ".local/state"}


@dataclass(frozen=True, slots=True)
class Quirks:
    """How a program differs from one that does everything as the protocol says."""

    words: tuple[str, ...] = ()
    """What stands behind its name to have it speak the protocol."""
    package: str = ""
    """Its name in the registry of npm."""
    tried: str = ""
    """The newest version that was tried."""
    compact: str | None = None
    """The command with which it shortens its context, where it does not say so itself."""
    asking: Mapping[str, str] = field(default_factory=dict)
    """Variables that make it ask before it uses a tool, where it would not."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Variables that it is started with, unless they are set."""
    pulls_files: bool = True
    """Whether it puts the content of a file in place of ``@path``; of a program that nobody tried it is assumed."""
    pulls_skills: bool = False
    """Whether it adds the text of a skill to a prompt that has ``$name`` in it, wherever that stands."""
    free: str | None = None
    """The mode in which it works without asking and outside of any sandbox, where it has to be chosen."""
    careful: str | None = None
    """The mode in which it asks."""
    notices: bool = False
    """Whether a piece of text without the id of a message is the program's own word: a warning, or an error."""
    leaves_commands: bool = False
    """Whether a command goes on running when its turn is broken off."""
    keys: tuple[str, ...] = ()
    """Variables with a key that it finds by itself."""
    logins: tuple[str, ...] = ()
    """Files under the home that are there when somebody has logged in."""
    needs: ProgramNeeds = field(default_factory=ProgramNeeds)
    """What it needs inside a sandbox, beside its keys and logins."""

    @property
    def install(self) -> str:
        """What to type to have the version that was tried, with its corrections; empty where nothing is known."""
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
        # For a goal it would begin turn after turn by itself.
        variables={"CODEX_CONFIG": '{"features":{"goals":false}}'},
        # In its sandbox the daemon of the agent cannot be reached.
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
    # Not tried.
    "kiro-cli": Quirks(),
    "goose": Quirks(),
}


def program_of(command: Sequence[str]) -> str:
    """The name of the program that a command runs, also through ``npx`` or a path."""
    names = [word.rsplit("/", 1)[-1].split("@")[0] for word in command]
    return next((name for name in names if name in KNOWN), names[0])


def quirks_of(command: Sequence[str]) -> Quirks:
    """What is particular about it; nothing that is known, for others."""
    return KNOWN.get(program_of(command), Quirks())
