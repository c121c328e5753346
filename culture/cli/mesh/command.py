"""``culture mesh``: the links of this server to others, also while it runs."""

import shlex
import time
from pathlib import Path
from typing import Annotated

import typer

from culture.cli.agent_access import open_to_agents
from culture.cli.mesh import invite, join, link_status
from culture.cli.mesh.common import (
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
from culture.cli.options import AsJson, ConfigFile, DataDir, Name
from culture.cli.output import as_json as in_json
from culture.cli.secret_input import link_secret
from culture.cli.server import certificate, pid_file
from culture.config.links import LinkConfig
from culture.config.model import Listen, ServerConfig
from culture.protocol.names import fold, short_name


def text(settings: ServerConfig, link: LinkConfig, secret: Path) -> str:
    """The command for the other side, with what is known here."""
    door = _door(settings, link)
    words = ["culture", "mesh", "link", settings.name]
    if link.address is None:
        words.append(_address(door))
    words += ["--secret-file", str(secret)]
    shown = certificate.of(door.tls.certificate) if door is not None and door.tls is not None else None
    if shown is not None:
        words += ["--fingerprint", shown]
    if link.trust == "restricted":
        words += ["--trust", link.trust, *(word for channel in link.channels for word in ("--channel", channel))]
    lines = [f"On {link.name}, with the secret there:", f"  {shlex.join(words)}"]
    if shown is None:
        lines.append(
            f"From another machine {link.short_name} is linked by TLS alone, for which {settings.name} needs a "
            "certificate: `culture server cert`."
        )
    return "\n".join(lines)


def rotation(settings: ServerConfig, link: LinkConfig, secret: Path | None) -> str:
    """How a change of secrets goes on, on both sides."""
    there = ["culture", "mesh", "rotate", settings.name, "--secret-file", str(secret or "FILE")]
    return "\n".join(
        [
            f"On {link.name}, unless it was done there:",
            f"  {shlex.join(there)}",
            "When both have the new one, forget the old one here and there:",
            f"  culture mesh rotate {link.name} --finish",
            f"  culture mesh rotate {settings.name} --finish",
        ]
    )


def _door(settings: ServerConfig, link: LinkConfig) -> Listen | None:
    """Where the other side would come in: by TLS, unless the link is without."""
    plain = [each for each in settings.listen if each.tls is None and not each.websocket]
    encrypted = [each for each in settings.listen if each.tls is not None and not each.websocket]
    doors = plain if link.tls is False else encrypted + plain
    return doors[0] if doors else None


def _address(door: Listen | None) -> str:
    """As far as it is known: a name for this machine that others use is not."""
    if door is None:
        return "HOST:PORT"
    host = door.host if door.is_loopback else "HOST"
    return f"{f'[{host}]' if ':' in host else host}:{door.port or 'PORT'}"


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
    figures = {each["name"]: each for each in link_status.figures(settings)}
    rows = [figures.get(link.name, link_status.at_rest(link)) for link in wanted.values()]
    if as_json:
        typer.echo(in_json(rows))
    elif not rows:
        typer.echo("There are no links. Make one with `culture mesh invite`, or `culture mesh link NAME ADDRESS`.")
    else:
        for row in rows:
            typer.echo(link_status.described(row))


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
    typer.echo(f"{link_status.intended(wanted)}{when(settings)}; `culture mesh list` shows how it goes.")
    if new_secret is not None:
        typer.echo(text(settings, wanted, new_secret))


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
    if pid_file.running(settings.name):
        # Two steps that a server sees as one would replace the secret that its link was made with.
        time.sleep(TAKEN_UP)
    after = "only its present secret is good" if finish else "the new secret and the old one are good"
    typer.echo(f"{link.name}: {after}{when(settings)}.")
    if not finish:
        typer.echo(rotation(settings, link, new_secret or secret_file))


group.command()(invite.invite)
group.command()(invite.invites)
group.command()(invite.uninvite)
group.command()(join.join)
