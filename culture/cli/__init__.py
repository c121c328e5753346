"""The command line, `culture …`: the only package that imports and connects all others.

`main` is the entry point. `commands.COMMANDS` names the module and the function of each command; only the module of
the command that was typed is loaded, since loading all of them takes longer than most commands need.

One typed command: `main` → `commands.assembled` → `agent_access.GuardedCommand.invoke` (refuses agents) → the
function of the command → `output` (prints, cleans foreign text) → the exit code (`protocol.vocabulary.Exit`).

Commands of one file each:

- account: `culture account`
- bridge: `culture bridge`, `culture bridge token`
- completion: `culture completion`: the scripts for bash, zsh and fish
- config: `culture config`
- digest: `culture digest`
- help: `culture help`; its pages are topics/*.txt
- skills: `culture skills`
- wiki: `culture wiki`

Folders, each with a map in its own docstring: agents, demo, doctor, history, mesh, server, team, up, web.

Helpers:

- agent_access: which commands an agent may run
- app, commands, command_tree: the table of commands, and the command line as data
- humanize: sizes, ages and dates, read and printed
- local_servers: the servers of this machine and how to connect to them
- mcp_serve: runs an MCP server over HTTP or stdio
- options: options that select a server
- output: errors, confirmation, JSON, cleaned text
- progress: progress bars
- secret_input: passwords and link secrets from a terminal, a pipe or a file
- yaml_edit: changes a YAML file and keeps its comments
"""

import gc
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from culture.config import paths
from culture.config.errors import ConfigError
from culture.config.installation import name_conflict
from culture.protocol.vocabulary import Environment, Exit
from culture.server.errors import StartError

if TYPE_CHECKING:
    import typer


def main() -> None:
    """Run the command line: print errors on stderr and exit with the code of the error (`Exit`)."""
    if conflict := name_conflict():
        print(f"culture: {conflict}", file=sys.stderr)
        sys.exit(Exit.WRONG_CONFIGURATION)
    try:
        _assembled(sys.argv[1] if len(sys.argv) > 1 else "")(prog_name="culture")
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    except ConfigError as error:
        print(error, file=sys.stderr)
        sys.exit(Exit.WRONG_CONFIGURATION)
    except StartError as error:
        print(f"culture: {error}", file=sys.stderr)
        sys.exit(_code(error))
    except OSError as error:
        if not _is_of_home(error):
            raise
        print(
            f"culture: {error.filename}: {error.strerror}. All files of culture are in {paths.home()}; "
            f"set {Environment.HOME} to use another folder",
            file=sys.stderr,
        )
        sys.exit(Exit.FAILED)


def _is_of_home(error: OSError) -> bool:
    """Return whether an OSError is about a file in culture's home folder, and so no bug of ours."""
    named = error.filename
    return isinstance(named, str | os.PathLike) and Path(named).is_relative_to(paths.home())


def _assembled(word: str) -> "typer.Typer":
    """Return the command line with the command ``word`` only, or with all if no command has it.

    Garbage collection is off while modules load. Afterwards SIGINT raises KeyboardInterrupt, since a command may have
    something to clean up.
    """
    gc.disable()
    try:
        from culture.cli.commands import assembled

        return assembled(word)
    finally:
        gc.freeze()
        gc.enable()
        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _code(error: StartError) -> Exit:
    from culture.server.skill_host.loader import WrongSkill  # imports the server

    return Exit.WRONG_CONFIGURATION if isinstance(error, WrongSkill) else Exit.FAILED
