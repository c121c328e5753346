"""All commands of ``culture history``, put together."""

import typer

from culture.cli.history.export import export
from culture.cli.history.prune import prune
from culture.cli.history.search import search
from culture.cli.history.stats import stats
from culture.cli.history.verify import verify

group = typer.Typer(help="Look into what was said; the server may be running.", no_args_is_help=True)
for _command in (search, export, stats, verify, prune):
    group.command()(_command)
