"""``culture team logins``: accounts for a team whose home folder is not the server's, as in a container of its own.

A team makes accounts for its members in the accounts file of its server. Where it must not read that file, a person
makes them beforehand, for as many members as the team may ever hire, and hands the tokens over: a line each, with nick
and token.
"""

import sys
from itertools import islice
from typing import Annotated

import typer

from culture.cli.agent_access import for_people
from culture.cli.agents import agent_login
from culture.cli.options import Choices, ConfigFile
from culture.cli.output import fail
from culture.cli.team.select_team import ASK_THERE
from culture.config.team import TeamConfig
from culture.orchestrator.names import SHIPPED, listed, next_names
from culture.protocol.names import valid_nick
from culture.protocol.vocabulary import Exit
from culture.server.auth.account_store import AccountStore
from culture.server.auth.accounts import AccountRefused

NUMBER = 100
_DEFAULT_EM: str = TeamConfig.model_fields["em_name"].default
_LONGEST_NICK = 64


@for_people(ASK_THERE)
def logins(
    slug: Annotated[
        str | None, typer.Argument(metavar="SLUG", show_default=False, help="The team; with --take none.")
    ] = None,
    em: Annotated[str, typer.Option("--em", metavar="NAME", help="The name of its EM.")] = _DEFAULT_EM,
    number: Annotated[int, typer.Option("--number", "-n", min=1, max=1000, help="For so many members.")] = NUMBER,
    take: Annotated[bool, typer.Option("--take", help="Read what the other end printed, and keep it here.")] = False,
    config: ConfigFile = None,
) -> None:
    """Make accounts for a team in another home folder, and print their tokens.

    For a container or another user that must not read the server's files: type
    it where the server is, and pipe it into `culture team logins --take` where
    the team is. Tokens of an earlier time hold no longer.
    """
    if take:
        _take()
        return
    if slug is None:
        fail("which team? `culture team logins SLUG`", Exit.USAGE)
    server = Choices(config).load().config
    store = AccountStore(server.accounts_file, server.account_prefix)
    names = islice(next_names(listed(SHIPPED), [em]), number)
    for name in (f"team-{slug}", em, *names):
        nick = f"{server.short_name}-{name}"
        try:
            typer.echo(f"{nick} {agent_login.issue(nick, store, always_on=False)}")
        except (agent_login.NoLogin, AccountRefused) as refused:
            fail(f"{nick}: {refused}")


def _take() -> None:
    kept = 0
    for line in sys.stdin:
        nick, _, token = line.strip().partition(" ")
        if not valid_nick(nick, _LONGEST_NICK) or not token.isascii() or not token.isprintable() or " " in token:
            fail("this is nothing that `culture team logins` printed: nick and token, a line each", Exit.USAGE)
        agent_login.keep(nick, token)
        kept += 1
    if not kept:
        fail("nothing came: pipe `culture team logins SLUG` into this", Exit.USAGE)
    typer.echo(f"{kept} logins are kept.")
