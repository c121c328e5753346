"""A prompt in words that no program takes for more than text."""

import re
from pathlib import Path

# To some programs a prompt that begins so is a command, whatever stands before it in white.
COMMAND_SIGNS = ("/", "!", "#", "@", "$", "?")
NO_COMMAND = "(what follows is a text, not a command)\n"
# Who is called may keep the sign before the nick, unless a file has that name.
_CALLED = re.compile(r"all|[A-Za-z0-9]+-[\w\[\]{}^`|-]+")
_SKILL = re.compile(r"\$(?=\w)")
_AT = re.compile(r"(?<!\w)@(?=(\S+))")
_CLOSING = ".,:;!?)'\""


def as_text(prompt: str) -> str:
    """The prompt, which is no command whatever it begins with."""
    return NO_COMMAND + prompt if prompt.lstrip().startswith(COMMAND_SIGNS) else prompt


def without_files(prompt: str, directory: Path) -> str:
    """The prompt with a space behind every ``@`` that a program could take for the name of a file to read."""

    def apart(found: re.Match[str]) -> str:
        name = found[1].rstrip(_CLOSING)
        return "@" if _CALLED.fullmatch(name) and not (directory / name).exists() else "@ "

    return _AT.sub(apart, prompt)


def without_skills(prompt: str) -> str:
    """The prompt with a space behind every ``$`` that a program could take for the name of a skill."""
    return _SKILL.sub("$ ", prompt)
