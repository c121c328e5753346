"""The scenes; each returns when what it shows has happened, and raises Missed when it has not."""

from culture.cli.demo.narrator import DemoScene
from culture.cli.demo.participants import (
    BUILDER,
    CHANNELS,
    DIGGER,
    ECHO,
    EVE,
    HERE,
    MOST_HOPS,
    SCOUT,
    THERE,
    WORKSHOP,
    YOU,
)
from culture.cli.demo.stage import HOST, SceneFailed
from culture.ledger_views.ledger import LedgerFact
from culture.ledger_views.links import LINKED
from culture.protocol.names import fold
from culture.protocol.vocabulary import AgentState, FactKind, Receipt, WellKnownChannel
from culture.transport import Message

GENERAL, ALERTS = WellKnownChannel.GENERAL.value, WellKnownChannel.ALERTS.value


async def mention(show: DemoScene) -> str:
    """Somebody is called on another server, and answers."""
    you = show.stage.you
    show.narrator.tell(f"{YOU} is on the server {HERE}, the agent {SCOUT} on {THERE}. A name with @ calls.")
    msgid = await show.says(you, GENERAL, f"@{SCOUT} what broke the build?")
    await show.hears(you, SCOUT, "login.py")
    answered = await show.fact(
        "the message was answered",
        lambda fact: fact.key == f"{msgid}/{Receipt.ANSWERED}",
        FactKind.RECEIPT,
        SCOUT,
        f"key={msgid}",
    )
    return f"the ledger: delivered to {SCOUT}, injected, answered on {answered.server}"


async def question(show: DemoScene) -> str:
    """An agent asks before it acts, and a person answers."""
    you = show.stage.you
    show.narrator.tell(f"{BUILDER} may not deploy by itself: it asks, and waits. Only people may answer here.")
    await show.says(you, GENERAL, f"@{BUILDER} deploy the site")
    await show.hears(you, BUILDER, "[QUESTION]")
    asked = await show.fact("an open question", lambda fact: bool(fact.value.get("open")), FactKind.QUESTION, BUILDER)
    await show.says(you, BUILDER, f"{asked.key} yes")
    await show.hears(you, BUILDER, f"{asked.key} is answered", notice=True)
    await show.hears(you, BUILDER, "the site is out")
    closed = await show.fact(
        "the question was answered by a person",
        lambda fact: fact.key == asked.key and fact.value.get("human_confirmed") is True,
        FactKind.QUESTION,
        BUILDER,
    )
    return f"the ledger: {asked.key} of {BUILDER} answered by {closed.value['by']}, a {closed.value['class']}"


async def spiral(show: DemoScene) -> str:
    """An agent goes round in circles: its supervisor whispers twice, then calls people."""
    you, stage = show.stage.you, show.stage
    show.narrator.tell(
        f"{DIGGER} runs the same failing test again and again. Its supervisor whispers; nobody else hears that. "
        "When two whispers do not help, it calls people, and the agent waits for them."
    )
    await show.says(you, WORKSHOP, f"@{DIGGER} test_login fails, find out why")
    for number in (1, 2):
        await stage.until(f"whisper {number}", lambda number=number: len(stage.whispers(DIGGER)) >= number)  # type: ignore[misc]
        show.narrator.line("(whisper)", "supervisor", stage.whispers(DIGGER)[number - 1])
        await show.narrator.pause(1.0)
    await show.hears(you, DIGGER, "[ESCALATION]")
    held = await show.fact(
        "the agent is paused", lambda fact: fact.value.get("state") == AgentState.PAUSED, FactKind.STATE, DIGGER
    )
    alert = await show.fact(
        "people were called", lambda fact: fact.value.get("event") == "agent_spiraling", FactKind.ALERT, DIGGER
    )
    await show.says(you, WORKSHOP, f"@{DIGGER} abort")
    await show.hears(you, DIGGER, "aborted", notice=True)
    await show.fact(
        "the agent goes on", lambda fact: fact.value.get("state") == AgentState.IDLE, FactKind.STATE, DIGGER
    )
    return f"the ledger: alert {alert.value['event']}, {DIGGER} {held.value['state']} until {YOU} said abort"


async def split(show: DemoScene) -> str:
    """The link between the servers breaks and is made again, and nothing is lost."""
    you, eve, stage = show.stage.you, show.stage.eve, show.stage
    show.narrator.tell(f"Now the link between {HERE} and {THERE} is cut. Both go on, each with its own.")
    show.narrator.command(f"culture mesh unlink {THERE}")
    await stage.culture("mesh", "unlink", THERE, "--name", HERE)
    await stage.until("the servers parted", lambda: not you.sees(EVE) and not eve.sees(YOU))
    await show.fact("the link is gone", lambda fact: not _is_up(fact), FactKind.LINK, HERE)
    ours = await show.says(you, GENERAL, f"@{SCOUT} are you still there?")
    theirs = await show.says(eve, GENERAL, "Here on thor it is quiet: is anybody there?")
    if any(each.msgid == theirs for each in you.ears.all) or any(each.msgid == ours for each in eve.ears.all):
        raise SceneFailed("the servers were not apart")
    show.narrator.tell("Neither has reached the other side. The link is made again:")
    show.narrator.command(f"culture mesh link {THERE} {HOST}:{stage.ports[THERE]} --secret-file link.secret")
    address = f"{HOST}:{stage.ports[THERE]}"
    await stage.culture("mesh", "link", THERE, address, "--secret-file", str(stage.secret), "--name", HERE)
    for person, msgid in ((you, theirs), (eve, ours)):
        late = await person.ears.expect("what was said during the split", lambda each, msgid=msgid: each.msgid == msgid)  # type: ignore[misc]
        show.narrator.tell(f"{person.nick} now reads, as of {late.timestamp.astimezone():%H:%M:%S}:")
        show.narrator.heard(late)
        await show.narrator.pause(0.6)
    await show.hears(you, SCOUT, "now I have your message")
    kept = {seat.nick: [each.msgid for each in await seat.transport.history(GENERAL)] for seat in (you, eve)}
    if any(msgids.count(msgid) != 1 for msgids in kept.values() for msgid in (ours, theirs)):
        raise SceneFailed("the histories of both servers have both messages, each once")
    await show.fact(
        "the mention was answered",
        lambda fact: fact.key == f"{ours}/{Receipt.ANSWERED}",
        FactKind.RECEIPT,
        SCOUT,
        f"key={ours}",
    )
    await show.fact("the link is there", _is_up, FactKind.LINK, HERE)
    await stage.until(
        "everybody is back", lambda: all(map(you.sees_all, CHANNELS)) and all(map(eve.sees_all, CHANNELS))
    )
    return "both histories have both messages, each once; the mention was answered after the split"


def _is_up(fact: LedgerFact) -> bool:
    return fact.key == THERE and fact.value.get("state") == LINKED


async def loop(show: DemoScene) -> str:
    """Two agents thank each other, and are stopped before that goes on for ever."""
    you = show.stage.you
    since = len(you.ears.all)
    show.narrator.tell(
        f"{ECHO} and {SCOUT} are polite, and each answer calls the other. Every automatic reply says how many led "
        f"to it; after {MOST_HOPS} in a row a person has to say how to go on."
    )
    await show.says(you, WORKSHOP, f"@{ECHO} thank the others")

    def is_stop(message: Message) -> bool:
        return message.notice and "automatic replies in a row" in message.text

    try:
        stopped = await you.ears.expect("the guard stopped the loop", is_stop, since)
    finally:
        for message in you.ears.all[since:]:
            if fold(message.channel) == fold(WORKSHOP) and not message.own:
                show.narrator.heard(message)
                await show.narrator.pause(0.4)
    turns = await show.several(
        f"{MOST_HOPS} turns of the two",
        MOST_HOPS,
        lambda fact: fact.nick in (ECHO, SCOUT) and fact.value.get("place") == WORKSHOP and "outcome" in fact.value,
        FactKind.TASK,
    )
    replies = [each for each in you.ears.all[since:] if each.channel == WORKSHOP and not (each.notice or each.own)]
    if len(turns) != MOST_HOPS or len(replies) != MOST_HOPS:
        raise SceneFailed(f"{MOST_HOPS} replies and no more: there were {len(replies)}, and {len(turns)} turns")
    return f"the ledger: {len(turns)} turns of the two and then none; {stopped.sender} waits for a person"


SCENES = (mention, question, spiral, split, loop)
TITLES = (
    "Somebody is called, and answers",
    "An agent asks before it acts",
    "An agent goes in circles",
    "The network splits and heals",
    "Two agents that would never stop",
)
