"""The server that is meant, as it runs: with the options it was started with."""

from culture.cli.options import Choices
from culture.cli.output import fail
from culture.cli.server import pid_file
from culture.config import paths
from culture.protocol.vocabulary import Exit


def as_running(choices: Choices) -> Choices:
    """These choices, and where they are silent those of the running server of that name."""
    note = pid_file.running(choices.server_name())
    return choices.over(Choices.parse(note.options)) if note else choices


def certainly(choices: Choices) -> Choices:
    """These choices, unless it is a mere guess which server they mean and another one runs here."""
    if choices.name is None and choices.data_dir is None:
        loaded = choices.load()
        guess, living = loaded.config.name, pid_file.all_running()
        if ("name",) not in loaded.sources and living and guess not in living:
            fail(
                f"which server? By this host's name it is {guess}, which does not run; {' and '.join(living)} "
                f"{'does' if len(living) == 1 else 'do'}. Say --name {living[0]}, or write `name: {living[0]}` "
                f"into {choices.config or paths.server_file()}",
                Exit.USAGE,
            )
    return choices
