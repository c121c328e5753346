"""``culture mesh list``, ``link``, ``unlink``, ``rotate``; invitations are in other files."""

import shlex
import time
from pathlib import Path
from typing import Annotated

import typer

from culture.cli.agent_access import open_to_agents
from culture.cli.mesh import invite, join, links
from culture.cli.mesh.links import (
    TAKEN_UP,
    CrossingChannels,
    TrustOption,
    change_links,
    find_link,
    link_config,
    links_of,
    settings_of,
    trust_settings,
    when_effective,
    with_link,
    without_link,
)
from culture.cli.options import AsJson, ConfigFile, DataDir, Name
from culture.cli.output import as_json as in_json
from culture.cli.secret_input import link_secret
from culture.cli.server import certificate, pid_file
from culture.config.links import LinkConfig
from culture.config.model import Listen, ServerConfig
from culture.protocol.names import fold, short_name


def peer_command(settings: ServerConfig, link: LinkConfig, secret: Path) -> str:
    """Return the command to type on the other server, so that it has the same link.

    ``settings``: those of this server. ``secret``: file with the link's secret.
    """
    door = _door(settings, link)
    words = ["culture", "mesh", "link", settings.name]
    if link.address is None:
        words.append(_address(door))
    words += ["--secret-file", str(secret)]
    fingerprint = (
        certificate.fingerprint_of(door.tls.certificate) if door is not None and door.tls is not None else None
    )
    if fingerprint is not None:
        words += ["--fingerprint", fingerprint]
    if link.trust == "restricted":
        words += ["--trust", link.trust, *(word for channel in link.channels for word in ("--channel", channel))]
    lines = [f"On {link.name}, with the secret there:", f"  {shlex.join(words)}"]
    if fingerprint is None:
        lines.append(
            f"From another machine {link.short_name} is linked by TLS alone, for which {settings.name} needs a "
            "certificate: `culture server cert`."
        )
    return "\n".join(lines)


def rotation_commands(settings: ServerConfig, link: LinkConfig, secret: Path | None) -> str:
    """Return instructions that finish the change of a link's secret, on both servers.

    ``settings``: those of this server. ``secret``: file with the new secret, None if it is in no file.
    """
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
    """Return the listener to which the other server of a link would connect; None if none fits.

    A listener with TLS is preferred, unless the link does not use TLS.
    """
    plain = [each for each in settings.listen if each.tls is None and not each.websocket]
    encrypted = [each for each in settings.listen if each.tls is not None and not each.websocket]
    doors = plain if link.tls is False else encrypted + plain
    return doors[0] if doors else None


def _address(door: Listen | None) -> str:
    """Return ``host:port`` of a listener, for use on another machine; HOST or PORT if unknown."""
    if door is None:
        return "HOST:PORT"
    host = door.host if door.is_loopback else "HOST"
    return f"{f'[{host}]' if ':' in host else host}:{door.port or 'PORT'}"


group = typer.Typer(help="Link this server to others.", no_args_is_help=True)


Peer = Annotated[
    str, typer.Argument(metavar="NAME", show_default=False, help="Name of the other server, for example thor.")
]
SecretFile = Annotated[
    Path | None, typer.Option("--secret-file", metavar="FILE", help="Read the secret from the first line of this file.")
]
SecretStdin = Annotated[
    bool, typer.Option("--secret-stdin", help="Read the secret from standard input instead of asking.")
]
NewSecret = Annotated[
    Path | None,
    typer.Option("--new-secret", metavar="FILE", help="Create a secret, and write it to this file for the other side."),
]


@group.command("list")
@open_to_agents
def show(
    as_json: AsJson = False,
    config: ConfigFile = None,
    name: Name = None,
    data_dir: DataDir = None,
) -> None:
    """List the links, and the state of each."""
    settings = settings_of(config, name, data_dir)
    configured = links_of(settings)
    figures = {each["name"]: each for each in links.link_states(settings)}
    rows = [figures.get(link.name, links.idle_state(link)) for link in configured.values()]
    if as_json:
        typer.echo(in_json(rows))
    elif not rows:
        typer.echo("There are no links. Make one with `culture mesh invite`, or `culture mesh link NAME ADDRESS`.")
    else:
        for row in rows:
            typer.echo(links.describe_state(row))


@group.command("link")
def make(
    peer: Peer,
    address: Annotated[
        str | None,
        typer.Argument(
            metavar="ADDRESS", show_default=False, help="host:port to dial; without it, the other server has to dial."
        ),
    ] = None,
    secret_file: SecretFile = None,
    secret_stdin: SecretStdin = False,
    new_secret: NewSecret = None,
    fingerprint: Annotated[
        str | None,
        typer.Option("--fingerprint", metavar="SHA256", help="Fingerprint of the other server's certificate."),
    ] = None,
    tls: Annotated[
        bool | None, typer.Option("--tls/--no-tls", help="Use TLS.  [default: yes, except on this machine]")
    ] = None,
    user: Annotated[
        str | None,
        typer.Option("--user", metavar="USER", help="User who runs the other server, if it is on this machine."),
    ] = None,
    trust: TrustOption = None,
    channel: CrossingChannels = None,
    config: ConfigFile = None,
    name: Name = None,
    data_dir: DataDir = None,
) -> None:
    """Link this server to another, or change a link.

    A running server applies it within a second. The secret is asked for, or read from a file or standard input. It is
    never an argument, since other users can see arguments. When you change a link, options that you leave out keep
    their values.
    """
    settings = settings_of(config, name, data_dir)
    before = links_of(settings).get(short_name(fold(peer)))
    current = before.model_dump(mode="json") if before is not None else {}
    options = {"name": peer, "address": address, "fingerprint": fingerprint, "tls": tls, "user": user}
    options |= trust_settings(trust, channel)
    if before is None or secret_file or secret_stdin or new_secret:
        options["secret"] = link_secret(peer, secret_file, secret_stdin, new_secret)
        current.pop("old_secret", None)
    changed = link_config({**current, **{key: value for key, value in options.items() if value is not None}})
    change_links(settings, lambda entries: with_link(entries, changed))
    typer.echo(f"{links.describe_link(changed)}{when_effective(settings)}; `culture mesh list` shows its state.")
    if new_secret is not None:
        typer.echo(peer_command(settings, changed, new_secret))


@group.command()
def unlink(peer: Peer, config: ConfigFile = None, name: Name = None, data_dir: DataDir = None) -> None:
    """Remove a link.

    A running server closes it within a second, and refuses that peer from then on.
    """
    settings = settings_of(config, name, data_dir)
    link = find_link(settings, peer)
    change_links(settings, lambda entries: without_link(entries, link.short_name))
    typer.echo(f"{link.name} is not linked any more{when_effective(settings)}.")


@group.command()
def rotate(
    peer: Peer,
    secret_file: SecretFile = None,
    secret_stdin: SecretStdin = False,
    new_secret: NewSecret = None,
    finish: Annotated[
        bool, typer.Option("--finish", help="Drop the old secret, once both sides have the new one.")
    ] = False,
    config: ConfigFile = None,
    name: Name = None,
    data_dir: DataDir = None,
) -> None:
    """Change the secret of a link without interrupting it.

    First run it on both sides with the new secret; the old one stays valid. Then run it on both sides with --finish.
    """
    settings = settings_of(config, name, data_dir)
    link = find_link(settings, peer)
    if finish:
        changed = link.model_copy(update={"old_secret": None})
    else:
        secret = link_secret(peer, secret_file, secret_stdin, new_secret)
        changed = link_config({**link.model_dump(mode="json"), "secret": secret, "old_secret": link.secret})
    change_links(settings, lambda entries: with_link(entries, changed))
    if pid_file.running(settings.name):
        # If the server saw both steps as one, it would replace the secret of the running link.
        time.sleep(TAKEN_UP)
    after = "only its present secret is good" if finish else "the new secret and the old one are good"
    typer.echo(f"{link.name}: {after}{when_effective(settings)}.")
    if not finish:
        typer.echo(rotation_commands(settings, link, new_secret or secret_file))


group.command()(invite.invite)
group.command()(invite.invites)
group.command()(invite.uninvite)
group.command()(join.join)
