"""All commands, put together."""

from culture.cli.commands import assembled

app = assembled()
