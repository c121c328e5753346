"""``culture web``: starts and stops the web page, prints login links, ends sessions."""

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
from culture.cli.local_servers import with_running_options
from culture.cli.options import AsJson, Choices, ConfigFile, Name
from culture.cli.output import as_json as shown_json
from culture.cli.output import fail
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
from culture.web.database import open_database
from culture.web.login_links import MINUTES
from culture.web.push import NotPushed, Push
from culture.web.sessions import BrowserSession, BrowserSessions
from culture.web.site import WebSettings, data_folder

_TIMEOUT = 15.0
# The operator names the address in culture.yaml: it may be a local one.
_ANYWHERE = tuple(map(ipaddress.ip_network, ("0.0.0.0/0", "::/0")))


async def post(address: str, push: Push) -> None:
    """Send a push notification to an address; raise NotPushed with the reason if that fails.

    The reason contains no secrets.
    """
    try:
        target, topic = split_topic(HttpTarget.parse(address))
        body = json.dumps({"topic": topic, "title": push.title, "message": push.text, "click": push.link}).encode()
        headers = {"Content-Type": "application/json", "User-Agent": "culture"}
        await posted(Post(target, headers, body, HttpAccess(listed=_ANYWHERE)), _TIMEOUT)
    except (NotPosted, TargetRefused) as failure:
        raise NotPushed(str(failure)) from None


group = typer.Typer(help="Run the web page, and manage who is logged in.", no_args_is_help=True)

_CHATTY = ("uvicorn", "asyncio")

Host = Annotated[
    str | None, typer.Option("--host", metavar="ADDRESS", help="Address to listen on; overrides web.host.")
]
Port = Annotated[
    int | None, typer.Option("--port", min=0, max=65535, metavar="PORT", help="Port to listen on; overrides web.port.")
]


@group.command()
def serve(config: ConfigFile = None, name: Name = None, host: Host = None, port: Port = None) -> None:
    """Serve the web page until stopped.

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
    from culture.web.app import serving  # the page itself, which only this needs

    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    with process.held(settings.server.name) as pid_file:
        async with serving(settings, post, lambda problem: pid_file.change(problem=problem)) as running:
            pid_file.change(url=running.url, port=running.port)
            typer.echo(f"The web page of {settings.server.name} is at {running.url}")
            sd_notify.notify("READY=1")
            await stop.wait()


@group.command()
def start(config: ConfigFile = None, name: Name = None, host: Host = None, port: Port = None) -> None:
    """Start the web page in the background, and return when it answers."""
    settings = _config(config, name)
    note = process.running(settings.name)
    if note is not None:
        fail(f"the web page of {settings.name} is running already (pid {note.pid}) at {note.url}")
    try:
        note = process.start(settings.name, Choices(config, name, host, port).arguments)
    except EndedEarly as early:
        typer.echo(early.text, err=True)
        raise typer.Exit(early.code) from None
    except StartError as error:
        fail(str(error))
    typer.echo(f"The web page of {settings.name} is at {note.url} (pid {note.pid}). Log in with `culture web link`.")


@group.command()
def stop(config: ConfigFile = None, name: Name = None) -> None:
    """Stop the web page; sessions are kept."""
    server = Choices(config, name).server_name()
    gone = process.end(server)
    if gone is False:
        fail(f"the web page of {server} was told to stop, but is still busy; see {process.log_file(server)}")
    typer.echo(f"The web page of {server} {'is not running' if gone is None else 'has stopped'}.")


@group.command()
@open_to_agents
def status(config: ConfigFile = None, name: Name = None, as_json: AsJson = False) -> None:
    """Show whether the web page runs, and where; the exit code is 1 when it does not."""
    server = Choices(config, name).server_name()
    note = process.running(server)
    if as_json:
        typer.echo(shown_json(None if note is None else asdict(note)))
    elif note is None:
        typer.echo(f"The web page of {server} is not running. Start it with `culture web start`.")
    else:
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(note.since))
        typer.echo(f"The web page of {server} is at {note.url or '(not ready yet)'} (pid {note.pid}) since {since}.")
        if note.problem:
            typer.echo(output.clean(f"It is not connected to {server}: {note.problem}"))
    if note is None:
        raise typer.Exit(Exit.FAILED)


@group.command()
def link(
    account: Annotated[
        str | None,
        typer.Argument(metavar="ACCOUNT", show_default=False, help="Account to log in.  [default: your own]"),
    ] = None,
    minutes: Annotated[
        int, typer.Option("--minutes", min=1, max=1440, metavar="N", help="Minutes that the link works.")
    ] = MINUTES,
    config: ConfigFile = None,
    name: Name = None,
) -> None:
    """Print a link that logs a person in, once.

    Whoever opens it first is logged in: treat it like a password.
    """
    settings = _config(config, name)
    person = _person(settings, account)
    note = process.running(settings.name)
    if note is None or not note.url:
        fail(
            "the web page is not running; another program on that port could steal the login link. "
            "Run `culture web start` first"
        )
    typer.echo(process.link(settings, person, minutes))


@group.command()
def sessions(config: ConfigFile = None, name: Name = None, as_json: AsJson = False) -> None:
    """List the sessions of the web page: account, browser, and time."""
    with open_database(data_folder(_config(config, name))) as database:
        rows = BrowserSessions(database).all()
    if as_json:
        typer.echo(shown_json([asdict(each) for each in rows]))
    elif not rows:
        typer.echo("Nobody is logged in to the page.")
    else:
        width = max(len(each.account) for each in rows)
        for each in rows:
            typer.echo(f"{each.id}  {each.account:<{width}}  {_times(each)}  {output.clean(each.browser)}")


@group.command()
def revoke(
    which: Annotated[
        str | None,
        typer.Argument(
            metavar="ID|ACCOUNT", show_default=False, help="Id of a session, or an account for all of its sessions."
        ),
    ] = None,
    everybody: Annotated[bool, typer.Option("--all", help="End all sessions.")] = False,
    config: ConfigFile = None,
    name: Name = None,
) -> None:
    """End sessions: one by its id, all of an account, or all.

    Open pages are closed within seconds. To keep somebody out, use `culture account revoke`.
    """
    if (which is None) != everybody:
        fail("name the id of a session, an account, or --all; `culture web sessions` lists them", Exit.USAGE)
    with open_database(data_folder(_config(config, name))) as database:
        store = BrowserSessions(database)
        count = store.revoke_all() if which is None else int(store.revoke(which)) or store.revoke_of(which)
    if which is not None and not count:
        fail(f"no session or logged-in account {which}; `culture web sessions` lists them")
    typer.echo(f"{count} {'session has' if count == 1 else 'sessions have'} ended.")


def _times(session: BrowserSession) -> str:
    created, last_seen = (
        time.strftime("%Y-%m-%d %H:%M", time.localtime(each)) for each in (session.made, session.seen)
    )
    return f"since {created}, seen {last_seen}"


def _config(config: Path | None, name: str | None) -> ServerConfig:
    return with_running_options(Choices(config, name)).load().config


def _settings(config: ServerConfig, host: str | None, port: int | None) -> WebSettings:
    try:
        return process.settings_of(config, host, port)
    except AccountRefused as refused:
        fail(str(refused), Exit.WRONG_CONFIGURATION)
    except (StartError, ConfigError) as error:
        fail(str(error), Exit.WRONG_CONFIGURATION)


def _person(config: ServerConfig, name: str | None) -> str:
    store = AccountStore(config.accounts_file, config.account_prefix)
    people = [each.name for each in store.all() if each.kind is UserClass.HUMAN and each.is_active]
    account = store.owner_of(name or _login())
    if account is not None and account.name in people:
        return account.name
    if name is None and len(people) == 1:
        return people[0]
    if name is None and people:
        fail(f"which account? People with an account: {', '.join(people)}", Exit.USAGE)
    if account is not None and not account.is_active:
        fail(f"{account.name} is revoked; `culture account passwd {account.name}` lets them in again")
    near = nearest(name or "", people)
    hint = f"Did you mean {near}?" if near else f"Make one: `culture account add {name or 'NAME'}`"
    fail(f"there is no account of a person called {name or _login()}. {hint}")


def _login() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""
