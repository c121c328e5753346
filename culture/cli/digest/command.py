"""``culture digest`` itself."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from culture.cli import amounts
from culture.cli.agents.person import AsNick, Person, person, present, run
from culture.cli.choices import Choices, ConfigFile
from culture.cli.digest import posting, showing
from culture.cli.failing import fail
from culture.cli.output import as_json as in_json
from culture.config.digest import Digest as Settings
from culture.facts.digest import Digest, digest
from culture.facts.gathering import facts_since, said_since
from culture.facts.ledger import online
from culture.protocol.names import fold, is_channel, nearest
from culture.protocol.vocabulary import Exit, FactKind

_WEBHOOK = "webhook"
_LOOK_BACK = 8 * 3600.0


def command(
    since: Annotated[
        float | None,
        typer.Option(
            "--since", metavar="AGE", parser=amounts.option(amounts.duration), help="So far back.  [default: 8h]"
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Everything there is to know, for programs.")] = False,
    agent: Annotated[str | None, typer.Option("--agent", metavar="NICK", help="About this agent alone.")] = None,
    to: Annotated[
        str | None,
        typer.Option("--to", metavar="PLACE", help="Post it: a channel in quotes, or webhook, as culture.yaml has it."),
    ] = None,
    scheduled: Annotated[
        bool, typer.Option("--scheduled", help="Post it where and as `digest` in culture.yaml says.")
    ] = False,
    config: ConfigFile = None,
    nick: AsNick = None,
) -> None:
    """Say what happened while you were away.

    What each agent did, asked and spent, and where it is stuck; what was said and
    to you; which links were down. These are facts of the ledger and the history;
    no model is asked, unless `digest.summarise` in culture.yaml names an agent.
    """
    settings = Choices(config).load().config.digest
    if to is not None and to != _WEBHOOK and not is_channel(to):
        fail(f"{to!r} is neither a channel such as '#digest' nor {_WEBHOOK}", Exit.USAGE)
    if (to == _WEBHOOK and settings.webhook is None) or (scheduled and not settings.is_posted):
        fail("culture.yaml does not say where to: set digest.webhook or digest.channel", Exit.WRONG_CONFIGURATION)
    who = person(nick)
    look_back = since if since is not None else settings.every if scheduled else _LOOK_BACK
    is_posted = scheduled or to is not None
    found = run(_gathered(who, look_back, agent or "", in_public=is_posted))
    if as_json:
        typer.echo(in_json(showing.as_data(found)))
    if is_posted:
        _post(who, settings if scheduled else _narrowed(settings, to or ""), found)
    elif not as_json:
        typer.echo(_in_words(who, settings, showing.shown(found)))


async def _gathered(who: Person, look_back: float, agent: str, *, in_public: bool) -> Digest:
    """What there is to tell; in public nothing that not everybody may know."""
    until = datetime.now(UTC)
    since = until - timedelta(seconds=look_back)
    async with present(who) as transport:
        facts = await facts_since(transport, since, agent)
        known = {fold(fact.nick): fact.nick for fact in facts if fact.kind == FactKind.STATE}
        if agent and fold(agent) not in known:
            near = nearest(agent, list(known.values()))
            fail(f"the ledger knows no agent {agent}{f'; did you mean {near}?' if near else ''}")
        said = await said_since(transport, since, until, in_public=in_public)
        here = await online(transport, list(known.values()))
        you = "" if in_public else transport.nick
    return digest(facts, said, since, until, you, here, agent)


def _narrowed(settings: Settings, to: str) -> Settings:
    """The settings with this place alone."""
    places = {"webhook": settings.webhook, "channel": None} if to == _WEBHOOK else {"webhook": None, "channel": to}
    return settings.model_copy(update=places)


def _post(who: Person, settings: Settings, found: Digest) -> None:
    text = _in_words(who, settings, showing.shown(found, brief=True))
    run(posting.post_all(who, settings, text))
    places = [place for place in (settings.channel, "the web" if settings.webhook else None) if place]
    typer.echo(f"The digest was posted to {' and '.join(places)}.", err=True)


def _in_words(who: Person, settings: Settings, text: str) -> str:
    """With an agent's summary before the facts, where one is asked for."""
    if settings.summarise is None:
        return text
    words = run(posting.summary(who, settings.summarise, text, settings.summary_timeout))
    return f"{words}\n\n{text}"
