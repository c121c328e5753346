"""The web page beside a server."""

from concurrent.futures import Future

import typer

from culture.cli.up.first_run import free_port, is_free
from culture.cli.web import process
from culture.config.errors import ConfigError
from culture.config.model import ServerConfig
from culture.lib.process.background import EndedEarly
from culture.lib.process.children import Launch
from culture.server.auth.accounts import Account
from culture.server.errors import StartError
from culture.web.login_links import MINUTES

_LAST_LINES = 3


def begin(settings: ServerConfig, launch: Launch) -> process.WebNote:
    """Show it, unless it is shown; on the next free port where its own is taken."""
    note = process.running(settings.name)
    if note is not None:
        return note
    host, port = settings.web.host, settings.web.port
    free = port if not port or is_free(host, port) else free_port(host, port)
    return process.start(settings.name, ["--name", settings.name, "--port", str(free)], launch)


def tell(settings: ServerConfig, person: Account | None, page: "Future[process.WebNote]") -> bool:
    """Say where it is, and let the person in; False when it could not begin."""
    try:
        note = page.result()
    except (EndedEarly, StartError, ConfigError, OSError) as error:
        why = "\n".join(str(error).splitlines()[-_LAST_LINES:])
        typer.echo(f"\nThe web page is not shown: {why}\nCorrect that, then type `culture web start`.", err=True)
        return False
    if settings.web.port not in (0, note.port):
        typer.echo(f"\nPort {settings.web.port} is used by another program, so the web page is on {note.port}.")
    if person is None:
        typer.echo(f"\nWeb page: {note.url}; `culture web link ACCOUNT` prints a link that logs somebody in.")
    else:
        typer.echo(
            f"\nWeb page; the link logs you in, once, within {MINUTES} minutes (`culture web link` makes another):"
        )
        typer.echo(f"\n  {process.link(settings, person.name)}")
    return True
