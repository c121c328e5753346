"""The commands of ``culture team``."""

import typer

from culture.cli.commands import Listing
from culture.cli.team import rescue
from culture.cli.team.init import init
from culture.cli.team.logins import logins
from culture.cli.team.merge import diff, merge
from culture.cli.team.requests import budget, hire, retire, task
from culture.cli.team.status import status
from culture.cli.team.up import down, up

group = typer.Typer(help="A team of agents on a project: an EM, managers, workers.", no_args_is_help=True)
for command in (init, up, down, status, task, hire, retire, budget, diff, merge, logins):
    group.command()(command)
group.add_typer(rescue.group, name="rescue", cls=Listing)
