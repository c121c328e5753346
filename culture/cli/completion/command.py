"""The command ``culture completion``."""

from enum import StrEnum
from typing import Annotated

import typer

from culture.cli.agent_access import open_to_agents
from culture.cli.command_tree import tree
from culture.cli.completion import bash, fish, zsh
from culture.cli.help import TITLES
from culture.clients.shared.backends import installed


class Shell(StrEnum):
    """The shells for which there is a completion script."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


_SCRIPTS = {Shell.BASH: bash.script, Shell.ZSH: zsh.script, Shell.FISH: fish.script}


@open_to_agents
def completion(
    shell: Annotated[Shell, typer.Argument(metavar="SHELL", show_default=False, help="bash, zsh or fish.")],
) -> None:
    """Print a script that completes commands, options, nicks and backends.

    bash: eval "$(culture completion bash)" in ~/.bashrc

    zsh: eval "$(culture completion zsh)" in ~/.zshrc, after compinit

    fish: culture completion fish > ~/.config/fish/completions/culture.fish
    """
    words = {"BACKEND": sorted(installed()), "TOPIC": TITLES}
    typer.echo(_SCRIPTS[shell](tree(words)), nl=False)
