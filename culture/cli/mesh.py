"""``culture mesh``: the links of this server to others, also while it runs."""

import time
from pathlib import Path
from typing import Annotated

import typer

from culture.cli import invitation, inviting, joining, links, pidfile
from culture.cli.agent_access import open_to_agents
from culture.cli.choices import AsJson, ConfigFile, DataDir, Name
from culture.cli.meshbook import (
    TAKEN_UP,
    CrossingChannels,
    TrustOption,
    believed,
    checked,
    known,
    links_of,
    settings_of,
    when,
    with_link,
    without,
    write,
)
from culture.cli.output import as_json as in_json
from culture.cli.secret import link_secret
from culture.protocol.names import fold, short_name

group = typer.Typer(help="Link this server to others.", no_args_is_help=True)


Peer = Annotated[str, typer.Argument(metavar="NAME", show_default=False, help="The other server, for example thor.")]
SecretFile = Annotated[
    Path | None, typer.Option("--secret-file", metavar="FILE", help="The secret is the first line of this file.")
]
SecretStdin = Annotated[
    bool, typer.Option("--secret-stdin", help="Read the secret from standard input, do not ask for it.")
]
NewSecret = Annotated[
    Path | None,
    typer.Option("--new-secret", metavar="FILE", help="Make a secret and put it into this file, for the other side."),
]


@group.command("list")
@open_to_agents
def show(
    as_json: AsJson = False,
    config: ConfigFile = None,
    name: Name = None,
    data_dir: DataDir = None,
) -> None:
    """Show the links, and how each is."""
    settings = settings_of(config, name, data_dir)
    wanted = links_of(settings)
    figures = {each["name"]: each for each in links.figures(settings)}
    rows = [figures.get(link.name, links.at_rest(link)) for link in wanted.values()]
    if as_json:
        typer.echo(in_json(rows))
    elif not rows:
        typer.echo("There are no links. Make one with `culture mesh invite`, or `culture mesh link NAME ADDRESS`.")
    else:
        for row in rows:
            typer.echo(links.described(row))


@group.command("link")
def make(
    peer: Peer,
    address: Annotated[
        str | None,
        typer.Argument(metavar="ADDRESS", show_default=False, help="host:port to dial; without one it is waited for."),
    ] = None,
    secret_file: SecretFile = None,
    secret_stdin: SecretStdin = False,
    new_secret: NewSecret = None,
    fingerprint: Annotated[
        str | None, typer.Option("--fingerprint", metavar="SHA256", help="Of the other server's certificate.")
    ] = None,
    tls: Annotated[
        bool | None, typer.Option("--tls/--no-tls", help="Speak TLS.  [default: beyond this machine]")
    ] = None,
    user: Annotated[
        str | None,
        typer.Option("--user", metavar="USER", help="Who runs it, where it is on this machine and another user's."),
    ] = None,
    trust: TrustOption = None,
    channel: CrossingChannels = None,
    config: ConfigFile = None,
    name: Name = None,
    data_dir: DataDir = None,
) -> None:
    """Link this server to another, or change such a link.

    A running server takes it up within a second. The secret is asked for, or
    read from a file or standard input; it is never an argument, as others can
    see those. Of a link that is there, what is not said stays as it is.
    """
    settings = settings_of(config, name, data_dir)
    before = links_of(settings).get(short_name(fold(peer)))
    kept = before.model_dump(mode="json") if before is not None else {}
    said = {"name": peer, "address": address, "fingerprint": fingerprint, "tls": tls, "user": user}
    said |= believed(trust, channel)
    if before is None or secret_file or secret_stdin or new_secret:
        said["secret"] = link_secret(peer, secret_file, secret_stdin, new_secret)
        kept.pop("old_secret", None)
    wanted = checked({**kept, **{key: value for key, value in said.items() if value is not None}})
    write(settings, lambda entries: with_link(entries, wanted))
    typer.echo(f"{links.intended(wanted)}{when(settings)}; `culture mesh list` shows how it goes.")
    if new_secret is not None:
        typer.echo(invitation.text(settings, wanted, new_secret))


@group.command()
def unlink(peer: Peer, config: ConfigFile = None, name: Name = None, data_dir: DataDir = None) -> None:
    """Take a link away: a running server ends it within a second, and lets that one in no more."""
    settings = settings_of(config, name, data_dir)
    link = known(settings, peer)
    write(settings, lambda entries: without(entries, link.short_name))
    typer.echo(f"{link.name} is not linked any more{when(settings)}.")


@group.command()
def rotate(
    peer: Peer,
    secret_file: SecretFile = None,
    secret_stdin: SecretStdin = False,
    new_secret: NewSecret = None,
    finish: Annotated[
        bool, typer.Option("--finish", help="Both sides have the new secret: forget the old one.")
    ] = False,
    config: ConfigFile = None,
    name: Name = None,
    data_dir: DataDir = None,
) -> None:
    """Change a link's secret without interrupting it.

    First on both sides with the new secret: until then the old one is good
    too. Then on both sides with --finish.
    """
    settings = settings_of(config, name, data_dir)
    link = known(settings, peer)
    if finish:
        wanted = link.model_copy(update={"old_secret": None})
    else:
        secret = link_secret(peer, secret_file, secret_stdin, new_secret)
        wanted = checked({**link.model_dump(mode="json"), "secret": secret, "old_secret": link.secret})
    write(settings, lambda entries: with_link(entries, wanted))
    if pidfile.running(settings.name):
        # Two steps that a server sees as one would replace the secret that its link was made with.
        time.sleep(TAKEN_UP)
    after = "only its present secret is good" if finish else "the new secret and the old one are good"
    typer.echo(f"{link.name}: {after}{when(settings)}.")
    if not finish:
        typer.echo(invitation.rotation(settings, link, new_secret or secret_file))


group.command()(inviting.invite)
group.command()(inviting.invites)
group.command()(inviting.uninvite)
group.command()(joining.join)
