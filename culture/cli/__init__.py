"""The command line: one file per group of commands, and the only place that builds everything."""

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
    """Run the command line; what went wrong is said on stderr and by the exit code."""
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
            f"culture: {error.filename}: {error.strerror}. Everything of culture is in {paths.home()}; "
            f"{Environment.HOME} names another place",
            file=sys.stderr,
        )
        sys.exit(Exit.FAILED)


def _is_of_home(error: OSError) -> bool:
    """Whether the folder of all our files cannot be used, which is no mistake of ours."""
    named = error.filename
    return isinstance(named, str | os.PathLike) and Path(named).is_relative_to(paths.home())


def _assembled(word: str) -> "typer.Typer":
    """The command line; what is loaded for it stays, so that looking for garbage meanwhile would find none.

    From here on Ctrl-C is an exception, as there will be something to put in order.
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
    from culture.server.skill_host.loader import WrongSkill  # brings the server with it

    return Exit.WRONG_CONFIGURATION if isinstance(error, WrongSkill) else Exit.FAILED
