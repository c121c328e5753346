"""What is particular about each program that speaks the protocol; nothing else in this backend knows their names."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

DEFAULT_COMMAND = ("opencode", "acp")


@dataclass(frozen=True, slots=True)
class Quirks:
    """How a program differs from one that does everything as the protocol says."""

    words: tuple[str, ...] = ()
    """What stands behind its name to have it speak the protocol."""
    install: str = ""
    """What to type to have it."""
    tried: str = ""
    """The newest version that was tried."""
    compact: str | None = None
    """The command with which it shortens its context, where it does not say so itself."""
    asking: Mapping[str, str] = field(default_factory=dict)
    """Variables that make it ask before it uses a tool, where it would not."""
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


KNOWN: Mapping[str, Quirks] = {
    "opencode": Quirks(
        words=DEFAULT_COMMAND[1:],
        install="npm install -g opencode-ai",
        tried="1.18",
        compact="/compact",
        asking={"OPENCODE_PERMISSION": '{"*":"ask"}'},
        pulls_files=False,
        keys=("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "OPENCODE_API_KEY"),
        logins=(".local/share/opencode/auth.json",),
    ),
    "cline": Quirks(words=("--acp",), install="npm install -g cline", tried="3.0", keys=("CLINE_API_KEY",)),
    "gemini": Quirks(
        words=("--acp",),
        install="npm install -g @google/gemini-cli",
        tried="0.61",
        pulls_files=False,
        keys=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        logins=(".gemini/oauth_creds.json",),
    ),
    "qwen": Quirks(
        words=("--acp",),
        install="npm install -g @qwen-code/qwen-code",
        tried="0.15",
        compact="/compress",
        pulls_files=False,
        keys=("OPENAI_API_KEY",),
        logins=(".qwen/oauth_creds.json",),
    ),
    "claude-agent-acp": Quirks(
        install="npm install -g @agentclientprotocol/claude-agent-acp",
        tried="0.49",
        compact="/compact",
        keys=("ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"),
        logins=(".claude/.credentials.json",),
    ),
    "codex-acp": Quirks(
        install="npm install -g @agentclientprotocol/codex-acp",
        tried="2.6",
        compact="/compact",
        pulls_files=False,
        pulls_skills=True,
        # In its sandbox the daemon of the agent cannot be reached.
        free="agent-full-access",
        careful="read-only",
        notices=True,
        leaves_commands=True,
        keys=("OPENAI_API_KEY", "CODEX_API_KEY"),
        logins=(".codex/auth.json",),
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
