"""The server that is meant, as it runs: with the options it was started with."""

from culture.cli import pidfile
from culture.cli.choices import Choices


def as_running(choices: Choices) -> Choices:
    """These choices, and where they are silent those of the running server of that name."""
    note = pidfile.running(choices.server_name())
    return choices.over(Choices.parse(note.options)) if note else choices
