"""The links of a server for ``culture mesh``: reads, checks, changes and describes them."""

import json
import sys
import time
from collections.abc import Callable, Collection, Iterable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from culture.cli import output
from culture.cli.local_servers import require_clear_choice, with_running_options
from culture.cli.options import Choices
from culture.cli.output import fail
from culture.cli.server import pid_file
from culture.config.links import LinkConfig
from culture.config.model import ServerConfig
from culture.config.values import Misfit
from culture.federation import book, status
from culture.federation.book import Book, Entries, UnreadableBook
from culture.protocol.names import fold, nearest, short_name
from culture.protocol.vocabulary import Exit

TAKEN_UP = 1.5
"""Seconds after which a running server has read a changed link file."""


class Trust(StrEnum):
    """Trust level of a link: how far this server believes the peer's users and statements."""

    FULL = "full"
    NO_AUTHORITY = "no_authority"
    RESTRICTED = "restricted"


TrustOption = Annotated[
    Trust | None, typer.Option("--trust", help="Trust level of the other server's users.  [default: full]")
]
AskedTrustOption = Annotated[
    Trust | None,
    typer.Option("--trust", help="Trust level of the other server's users; asked for at a terminal, else required."),
]
CrossingChannels = Annotated[
    list[str] | None,
    typer.Option("--channel", metavar="CHANNEL", help="With --trust restricted: a channel to share; may be repeated."),
]

_CONSEQUENCE = {
    Trust.FULL: "its people count as people here: they may answer your agents and be channel operators",
    Trust.NO_AUTHORITY: "its users can talk here, but have no authority",
    Trust.RESTRICTED: "its users can talk in {channels} only, and have no authority",
}


def describe_trust(trust: str, channels: Collection[str], name: str) -> str:
    """Return sentences for people: what a trust level allows, and how to choose a lower one.

    ``name``: the server at the other end of the link.
    """
    text = f"Trust {trust}: {_CONSEQUENCE[Trust(trust)].format(channels=', '.join(channels))}."
    if trust != Trust.FULL:
        return text
    later = f"culture mesh link {name or 'NAME'} --trust no_authority"
    return f"{text} For less, use --trust no_authority with this command, or later `{later}`."


def ask_trust(trust: Trust | None, channels: list[str] | None, whose: str) -> Trust | None:
    """Return the trust level of the option, or else what the person at the terminal chooses.

    ``trust``, ``channels``: values of the options. ``whose``: name of the server at the other end of the link. If only
    channels are given, None is returned, which stands for level restricted. The command ends if there is no terminal to
    ask at.
    """
    if trust is not None or channels:
        return trust
    if not sys.stdin.isatty():
        fail(
            f"choose a trust level for the users of {whose}: --trust full for a machine of yours, "
            "--trust no_authority for somebody else's, --trust restricted --channel '#name' for one room alone",
            Exit.USAGE,
        )
    typer.echo(f"Which trust level do the users of {whose} get?", err=True)
    for each, what in _CONSEQUENCE.items():
        typer.echo(f"  {each:<13} {what.format(channels='the channels of --channel')}", err=True)
    while True:
        typer.echo(f"full is for a machine of yours. Trust [{Trust.NO_AUTHORITY}]: ", nl=False, err=True)
        answer = sys.stdin.readline()
        if not answer:
            fail("no answer", Exit.USAGE)
        match answer.strip().lower() or Trust.NO_AUTHORITY:
            case Trust.FULL | Trust.NO_AUTHORITY as chosen:
                return Trust(chosen)
            case Trust.RESTRICTED:
                fail("type the command again with --trust restricted --channel '#name'", Exit.USAGE)
        typer.echo(f"One of {', '.join(Trust)}.", err=True)


def server_of(config: Path | None, name: str | None, data_dir: Path | None) -> ServerConfig:
    """Return the configuration of the server that the options select.

    For a running server, the options with which it was started apply too.
    """
    return with_running_options(require_clear_choice(Choices(config, name=name, data_dir=data_dir))).load().config


def settings_of(config: Path | None, name: str | None, data_dir: Path | None) -> ServerConfig:
    """Return the configuration of the server that the options select.

    The command ends if that server cannot have links.
    """
    settings = server_of(config, name, data_dir)
    if settings.nick_prefix != "required":
        fail("links need nick_prefix: required, since nicks are unique in the mesh by their prefix")
    return settings


def links_of(settings: ServerConfig) -> dict[str, LinkConfig]:
    """Return the links of a server by short name, from culture.yaml and the link file."""
    try:
        return book.merged(settings.links, Book(book.path_of(settings)).read())
    except UnreadableBook as error:
        fail(f"cannot be read: {error}")


def find_link(settings: ServerConfig, peer: str) -> LinkConfig:
    """Return the link to the server ``peer``; end the command if there is none."""
    links = links_of(settings)
    link = links.get(short_name(fold(peer)))
    if link is None:
        close = nearest(peer, [each.name for each in links.values()])
        fail(f"there is no link to {peer}; {f'did you mean {close}?' if close else '`culture mesh list` shows them'}")
    return link


def with_link(entries: Entries, link: LinkConfig) -> Entries:
    """Return the contents of the link file with ``link`` added, or replaced if it was there."""
    return Entries({**entries.links, link.short_name: link}, entries.unlinked - {link.short_name})


def without_link(entries: Entries, name: str) -> Entries:
    """Return the contents of the link file without the link ``name``, and marked as removed.

    The mark also removes a link that is in culture.yaml.
    """
    links = {key: link for key, link in entries.links.items() if key != name}
    return Entries(links, entries.unlinked | {name})


def change_links(settings: ServerConfig, change: Callable[[Entries], Entries]) -> None:
    """Replace the contents of a server's link file by the result of ``change`` for them.

    The command ends, and nothing is written, if the result is invalid.
    """

    def checked_entries(entries: Entries) -> Entries:
        changed = change(entries)
        book.check(settings, book.merged(settings.links, changed).values())
        return changed

    try:
        Book(book.path_of(settings)).change(checked_entries)
    except (UnreadableBook, OSError) as error:
        fail(f"cannot be changed: {error}")
    except Misfit as wrong:
        fail(f"{wrong.key[-1]}: {wrong}", Exit.USAGE)


def link_config(fields: dict[str, Any]) -> LinkConfig:
    """Return a link with the settings in ``fields``; end the command if they are invalid."""
    try:
        return LinkConfig.model_validate_json(
            json.dumps({key: value for key, value in fields.items() if value is not None})
        )
    except ValidationError as error:
        # Never quote the input: it may be the secret.
        wrong = [
            f"{'.'.join(map(str, each['loc'])) or 'link'}: {each['msg']}" for each in error.errors(include_input=False)
        ]
        fail("; ".join(wrong).replace("Value error, ", ""), Exit.USAGE)


def when_effective(settings: ServerConfig) -> str:
    """Return the end of a sentence that says when a change of links takes effect; "" if at once."""
    return "" if pid_file.running(settings.name) else f", once {settings.name} runs"


def trust_settings(trust: Trust | None, channels: list[str] | None) -> dict[str, Any]:
    """Return the fields ``trust`` and ``channels`` of a link, from the values of the options.

    Only level restricted has channels. None means that the link keeps its value.
    """
    is_open = trust is not None and trust is not Trust.RESTRICTED
    return {"trust": trust and trust.value, "channels": channels or ([] if is_open else None)}


_STATES = {"waiting": "waiting for it to dial", "not running": "not linked, since this server does not run"}


def link_states(settings: ServerConfig) -> list[dict[str, Any]]:
    """Return the state of each link as a dict, read from the running server's status file.

    Empty if the server does not run.
    """
    try:
        data = json.loads(status.path_of(settings).read_bytes())
    except (OSError, ValueError):
        return []
    note = pid_file.running(settings.name)
    return list(data["links"]) if note is not None and note.pid == data.get("pid") else []


def idle_state(link: LinkConfig) -> dict[str, Any]:
    """Return the state of a link, as a dict, for a server that does not run."""
    row = {"name": link.name, "address": link.address, "trust": link.trust, "state": "not running"}
    return {**row, "channels": list(link.channels)}


def describe_link(link: LinkConfig) -> str:
    """Return a phrase about a configured link: ``thor is dialled at 10.0.0.2:6697, trust full``."""
    how = f"is dialled at {link.address}" if link.address else "is let in when it dials"
    return f"{link.name} {how}, {_trust(link.trust, link.channels)}"


def describe_state(row: dict[str, Any]) -> str:
    """Return a line on a link's state: ``thor  linked for 3h, at 10.0.0.2:6697, trust full, …``.

    ``row``: a dict of ``link_states`` or ``idle_state``.
    """
    facts = [_STATES.get(row["state"], row["state"])]
    if row.get("since"):
        facts[0] += f" for {_ago(time.time() - row['since'])}"
    if row.get("address"):
        facts.append(f"at {row['address']}")
    facts.append(_trust(row["trust"], row.get("channels", ())))
    for key, text in (
        ("behind", "{} messages behind"),
        ("queued", "{} bytes on their way"),
        ("private", "{} private messages wait"),
    ):
        if row.get(key):
            facts.append(text.format(row[key]))
    if row.get("lag"):
        facts.append(f"{_ago(row['lag'])} late")
    if row.get("acknowledged") and not row.get("behind"):
        facts.append("has all our messages")
    if row.get("secret") == "old":
        facts.append("by its old secret")
    problem = f"; {row['problem']}" if row.get("problem") else ""
    return output.clean(f"{row['name']}  {', '.join(facts)}{problem}")


def _trust(trust: str, channels: Iterable[str]) -> str:
    named = ", ".join(channels)
    return f"trust {trust} to {named}" if named else f"trust {trust}"


def _ago(seconds: float) -> str:
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return f"{int(seconds)}s"
