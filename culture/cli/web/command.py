"""``culture web``: show the page, let people in, throw them out."""

import asyncio
import getpass
import ipaddress
import json
import logging
import signal
import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from culture.cli import output
from culture.cli.agent_access import open_to_agents
from culture.cli.options import AsJson, Choices, ConfigFile, Name
from culture.cli.output import as_json as shown_json
from culture.cli.output import fail
from culture.cli.server.running_server import as_running
from culture.cli.web import process
from culture.clients.shared.webhook.formats import split_topic
from culture.clients.shared.webhook.posting import NotPosted, Post
from culture.clients.shared.webhook.posting import post as posted
from culture.config.errors import ConfigError
from culture.config.model import ServerConfig
from culture.lib import sd_notify
from culture.lib.http import HttpAccess
from culture.lib.log_lines import start_logging
from culture.lib.process.background import EndedEarly
from culture.lib.ssrf_guard import HttpTarget, TargetRefused
from culture.protocol.names import nearest
from culture.protocol.vocabulary import Exit, UserClass
from culture.server.auth.account_store import AccountStore
from culture.server.auth.accounts import AccountRefused
from culture.server.errors import StartError
from culture.web.app import serving
from culture.web.database import open_database
from culture.web.login_links import MINUTES
from culture.web.push import NotPushed, Push
from culture.web.sessions import BrowserSession, BrowserSessions
from culture.web.site import WebSettings, data_folder

_TIMEOUT = 15.0
# Whoever runs the page names the address in culture.yaml: it may be on this machine or beside it.
_ANYWHERE = tuple(map(ipaddress.ip_network, ("0.0.0.0/0", "::/0")))


async def post(address: str, push: Push) -> None:
    """Post it; ``NotPushed`` says why it failed, and names nothing secret."""
    try:
        target, topic = split_topic(HttpTarget.parse(address))
        body = json.dumps({"topic": topic, "title": push.title, "message": push.text, "click": push.link}).encode()
        headers = {"Content-Type": "application/json", "User-Agent": "culture"}
        await posted(Post(target, headers, body, HttpAccess(listed=_ANYWHERE)), _TIMEOUT)
    except (NotPosted, TargetRefused) as failure:
        raise NotPushed(str(failure)) from None


group = typer.Typer(help="Show the server's web page, and say who may stay.", no_args_is_help=True)

_CHATTY = ("uvicorn", "asyncio")

Host = Annotated[str | None, typer.Option("--host", metavar="ADDRESS", help="Listen here, in place of web.host.")]
Port = Annotated[int | None, typer.Option("--port", min=0, max=65535, metavar="PORT", help="In place of web.port.")]


@group.command()
def serve(config: ConfigFile = None, name: Name = None, host: Host = None, port: Port = None) -> None:
    """Show the page until told to stop.

    The server need not run yet: the page says so, and waits for it.
    """
    settings = _settings(_config(config, name), host, port)
    start_logging()
    for each in _CHATTY:
        logging.getLogger(each).setLevel(logging.WARNING)
    try:
        asyncio.run(_until_told(settings))
    except OSError as error:
        fail(
            f"{settings.web.host} port {settings.port}: {error.strerror or error}. "
            "Another port: `culture web serve --port 6681`, or web.port in culture.yaml"
        )
    except StartError as error:
        fail(str(error))


async def _until_told(settings: WebSettings) -> None:
    told = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, told.set)
    with process.held(settings.server.name) as change_note:
        async with serving(settings, post, lambda problem: change_note(problem=problem)) as running:
            change_note(url=running.url, port=running.port)
            typer.echo(f"The page of {settings.server.name} is at {running.url}")
            sd_notify.notify("READY=1")
            await told.wait()


@group.command()
def start(config: ConfigFile = None, name: Name = None, host: Host = None, port: Port = None) -> None:
    """Show the page from the background, and return when it answers."""
    settings = _config(config, name)
    note = process.running(settings.name)
    if note is not None:
        fail(f"the page of {settings.name} is shown already (pid {note.pid}) at {note.url}")
    try:
        note = process.start(settings.name, Choices(config, name, host, port).arguments)
    except EndedEarly as early:
        typer.echo(early.text, err=True)
        raise typer.Exit(early.code) from None
    except StartError as error:
        fail(str(error))
    typer.echo(f"The page of {settings.name} is at {note.url} (pid {note.pid}). Log in with `culture web link`.")


@group.command()
def stop(config: ConfigFile = None, name: Name = None) -> None:
    """Show the page no longer; whoever is logged in stays so."""
    server = Choices(config, name).server_name()
    gone = process.end(server)
    if gone is False:
        fail(f"the page of {server} has been told, but is still busy; see {process.log_file(server)}")
    typer.echo(f"The page of {server} {'is not shown' if gone is None else 'is shown no longer'}.")


@group.command()
@open_to_agents
def status(config: ConfigFile = None, name: Name = None, as_json: AsJson = False) -> None:
    """Say whether the page is shown, and where; the exit code is 1 when it is not."""
    server = Choices(config, name).server_name()
    note = process.running(server)
    if as_json:
        typer.echo(shown_json(None if note is None else asdict(note)))
    elif note is None:
        typer.echo(f"The page of {server} is not shown. Show it with `culture web start`.")
    else:
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(note.since))
        typer.echo(f"The page of {server} is at {note.url or '(not ready yet)'} (pid {note.pid}) since {since}.")
        if note.problem:
            typer.echo(output.shown(f"It is not connected to {server}: {note.problem}"))
    if note is None:
        raise typer.Exit(Exit.FAILED)


@group.command()
def link(
    account: Annotated[
        str | None, typer.Argument(metavar="ACCOUNT", show_default=False, help="Whom it logs in; else yourself.")
    ] = None,
    minutes: Annotated[
        int, typer.Option("--minutes", min=1, max=1440, metavar="N", help="So long it works.")
    ] = MINUTES,
    config: ConfigFile = None,
    name: Name = None,
) -> None:
    """Print a link that logs somebody in, once.

    Whoever opens it first is in: send it as you would send a password.
    """
    settings = _config(config, name)
    person = _person(settings, account)
    note = process.running(settings.name)
    if note is None or not note.url:
        fail("the page is not shown, and whoever else listens there would be told the link: `culture web start` first")
    typer.echo(process.link(settings, person, minutes))


@group.command()
def sessions(config: ConfigFile = None, name: Name = None, as_json: AsJson = False) -> None:
    """Show who is logged in to the page, in which browser, and since when."""
    with open_database(data_folder(_config(config, name))) as database:
        found = BrowserSessions(database).all()
    if as_json:
        typer.echo(shown_json([asdict(each) for each in found]))
    elif not found:
        typer.echo("Nobody is logged in to the page.")
    else:
        width = max(len(each.account) for each in found)
        for each in found:
            typer.echo(f"{each.id}  {each.account:<{width}}  {_times(each)}  {output.shown(each.browser)}")


@group.command()
def revoke(
    which: Annotated[
        str | None, typer.Argument(metavar="ID|ACCOUNT", show_default=False, help="A session, or all of an account.")
    ] = None,
    everybody: Annotated[bool, typer.Option("--all", help="All sessions of everybody.")] = False,
    config: ConfigFile = None,
    name: Name = None,
) -> None:
    """Log somebody out: a session by its id, all of an account, or everybody.

    Pages that are open end within seconds. To keep somebody out, `culture account revoke`.
    """
    if (which is None) != everybody:
        fail("say the id of a session, an account, or --all; `culture web sessions` shows them", Exit.USAGE)
    with open_database(data_folder(_config(config, name))) as database:
        known = BrowserSessions(database)
        count = known.revoke_all() if which is None else int(known.revoke(which)) or known.revoke_of(which)
    if which is not None and not count:
        fail(f"there is no session and no account {which} that is logged in; `culture web sessions` shows them")
    typer.echo(f"{count} {'session has' if count == 1 else 'sessions have'} ended.")


def _times(session: BrowserSession) -> str:
    made, seen = (time.strftime("%Y-%m-%d %H:%M", time.localtime(each)) for each in (session.made, session.seen))
    return f"since {made}, seen {seen}"


def _config(config: Path | None, name: str | None) -> ServerConfig:
    return as_running(Choices(config, name)).load().config


def _settings(config: ServerConfig, host: str | None, port: int | None) -> WebSettings:
    try:
        return process.settings_of(config, host, port)
    except AccountRefused as refused:
        fail(str(refused), Exit.WRONG_CONFIGURATION)
    except (StartError, ConfigError) as error:
        fail(str(error), Exit.WRONG_CONFIGURATION)


def _person(config: ServerConfig, wanted: str | None) -> str:
    store = AccountStore(config.accounts_file, config.account_prefix)
    people = [each.name for each in store.all() if each.kind is UserClass.HUMAN and each.is_active]
    account = store.owner_of(wanted or _login())
    if account is not None and account.name in people:
        return account.name
    if wanted is None and len(people) == 1:
        return people[0]
    if wanted is None and people:
        fail(f"whom shall it log in? People with an account: {', '.join(people)}", Exit.USAGE)
    if account is not None and not account.is_active:
        fail(f"{account.name} is revoked; `culture account passwd {account.name}` lets them in again")
    near = nearest(wanted or "", people)
    hint = f"Did you mean {near}?" if near else f"Make one: `culture account add {wanted or 'NAME'}`"
    fail(f"there is no account of a person called {wanted or _login()}. {hint}")


def _login() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""
