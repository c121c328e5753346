"""``culture down``: nothing of this home folder runs any longer."""

import typer

from culture.cli import output
from culture.cli.server import pid_file
from culture.cli.up.shutdown import Shutdown, everybody
from culture.protocol.vocabulary import Exit


def down() -> None:
    """Stop everything that runs here: teams, agents, web pages, servers.

    It says what it has ended, and looks whether anything of it is still there:
    the exit code is 1 when something is. What was not answered yet is kept, and
    comes again at the next start.
    """
    end = Shutdown()
    end.teams()
    end.agents(everybody())
    servers = pid_file.all_running()
    for name in servers:
        end.page(name)
    for name in servers:
        end.server(name)
    end.look()
    end.view()
    if end.left:
        typer.echo("culture: this is still running:", err=True)
        for line in end.left:
            typer.echo(f"  {output.shown(line)}", err=True)
        raise typer.Exit(Exit.FAILED)
    typer.echo("Nothing is left running." if end.ended else "Nothing was running.")
