"""The command line: one file per group of commands, and the only place that builds everything."""

import sys

from culture.cli.app import app
from culture.config.errors import ConfigError
from culture.protocol.vocabulary import Exit
from culture.server.errors import StartError
from culture.server.installed import WrongSkill


def main() -> None:
    """Run the command line; what went wrong is said on stderr and by the exit code."""
    try:
        app()
    except ConfigError as error:
        print(error, file=sys.stderr)
        sys.exit(Exit.WRONG_CONFIGURATION)
    except StartError as error:
        print(f"culture: {error}", file=sys.stderr)
        sys.exit(Exit.WRONG_CONFIGURATION if isinstance(error, WrongSkill) else Exit.FAILED)
