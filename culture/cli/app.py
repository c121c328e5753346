"""The command line with all commands loaded, for tests and for tools that list the commands."""

from culture.cli.commands import assembled

app = assembled()
