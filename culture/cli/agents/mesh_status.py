"""States of the agents of the whole mesh, as the ledger has them."""

from typing import Any

from culture.cli.agents.irc_session import IrcPerson, present
from culture.ledger_views.agents import agents
from culture.ledger_views.ledger import facts, online
from culture.protocol.vocabulary import FactKind

_MOST = "limit=1000"


async def reports(who: IrcPerson) -> list[dict[str, Any]]:
    """One report for each agent that has said what it does within the days that the ledger keeps."""
    async with present(who) as transport:
        states = await facts(transport, FactKind.STATE, "*", _MOST)
        questions = await facts(transport, FactKind.QUESTION, "*", _MOST)
        here = await online(transport, [fact.nick for fact in states])
    return [agent.as_data() for agent in agents([*states, *questions], here)]
