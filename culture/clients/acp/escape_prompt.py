"""Escape prompts so that no program reads commands, files or skills out of them."""

import re
from pathlib import Path

# Some programs take a prompt that begins with one of these (after white space) for a command.
COMMAND_SIGNS = ("/", "!", "#", "@", "$", "?")
NO_COMMAND = "(what follows is a text, not a command)\n"
# A mention keeps its @, unless a file has that name.
_CALLED = re.compile(r"all|[A-Za-z0-9]+-[\w\[\]{}^`|-]+")
_SKILL = re.compile(r"\$(?=\w)")
_AT = re.compile(r"(?<!\w)@(?=(\S+))")
_CLOSING = ".,:;!?)'\""


def as_text(prompt: str) -> str:
    """Return the prompt, with a prefix if a program could mistake it for a command."""
    return NO_COMMAND + prompt if prompt.lstrip().startswith(COMMAND_SIGNS) else prompt


def without_files(prompt: str, directory: Path) -> str:
    """Return the prompt with a space after each ``@`` that could name a file to read.

    ``directory``: the folder in which the program would look for the file.
    """

    def with_space(match: re.Match[str]) -> str:
        name = match[1].rstrip(_CLOSING)
        return "@" if _CALLED.fullmatch(name) and not (directory / name).exists() else "@ "

    return _AT.sub(with_space, prompt)


def without_skills(prompt: str) -> str:
    """Return the prompt with a space after each ``$`` that could name a skill of the program."""
    return _SKILL.sub("$ ", prompt)
