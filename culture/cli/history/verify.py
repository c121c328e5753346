"""``culture history verify``: is everything whole?"""

import typer

from culture.cli.agent_access import open_to_agents
from culture.cli.amounts import counted
from culture.cli.choices import Choices, ConfigFile, DataDir, Name
from culture.cli.failing import fail
from culture.cli.history.opening import opened
from culture.cli.history.stats import shown_gap
from culture.cli.output import shown
from culture.cli.progress import elapsing


@open_to_agents
def verify(config: ConfigFile = None, name: Name = None, data_dir: DataDir = None) -> None:
    """Look through everything, and say what is not whole, and when messages could not be kept.

    The exit code is 1 when something is not whole.
    """
    with opened(Choices(config, name, None, None, data_dir)) as history:
        with elapsing("Checking"):
            problems = list(history.store.verify())
            entries, gaps = history.entries(), history.store.gaps()
        where = history.where
    for problem in problems:
        typer.echo(shown(problem))
    if problems:
        fail(f"{where} is damaged; restore a backup, or save what can be read with `culture history export`")
    typer.echo(f"{counted(entries)}, all whole.")
    for gap in gaps:
        typer.echo(shown_gap(gap))
