"""The scenes of the demo, and the narrator; a scene raises SceneFailed if it does not work."""

import asyncio
import textwrap
import time
from collections.abc import Callable
from dataclasses import dataclass

import typer

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
from culture.cli.demo.stage import HOST, PATIENCE, DemoConnection, DemoStage, SceneFailed
from culture.cli.output import is_coloured, one_line
from culture.ledger_views.ledger import LedgerFact, facts
from culture.ledger_views.links import LINKED
from culture.protocol.names import fold, is_channel
from culture.protocol.vocabulary import AgentState, FactKind, Receipt, WellKnownChannel
from culture.transport import Message

_WIDTH = 92
_INDENT = "     "
_LONGEST_NICK = 14
_LATE = 45.0  # seconds


class Narrator:
    """Prints what happens in the demo, with pauses for reading."""

    def __init__(self, fast: bool) -> None:
        self._fast = fast
        self._coloured = is_coloured()
        self._begun = time.monotonic()

    @property
    def elapsed(self) -> float:
        """Seconds since the demo began."""
        return time.monotonic() - self._begun

    async def pause(self, seconds: float) -> None:
        """Wait, so that people can read; return at once with --fast or if the demo takes too long."""
        if not self._fast and self.elapsed < _LATE:
            await asyncio.sleep(seconds)

    def say(self, text: str) -> None:
        """Print a paragraph of text, wrapped."""
        typer.echo(textwrap.fill(text, _WIDTH))

    def title(self, number: int, text: str) -> None:
        """Print the number and title of a scene."""
        typer.echo(f"\n{self._in(f'{number}. {text}', bold=True)}")

    def tell(self, text: str) -> None:
        """Print an indented paragraph that explains a scene."""
        typer.echo(textwrap.fill(text, _WIDTH, initial_indent="   ", subsequent_indent="   "))

    def command(self, text: str) -> None:
        """Print a command as if it were typed in a shell."""
        typer.echo(f"{_INDENT}$ {self._in(text, fg='yellow')}")

    def heard(self, message: Message) -> None:
        """Print a message that a person of the demo received."""
        where = message.channel if not message.private else "(private)"
        self.line(where, message.sender, message.text)

    def line(self, where: str, who: str, text: str) -> None:
        """Print a line of conversation: ``who`` says ``text`` in the channel ``where``."""
        nick = f"<{one_line(who)}>"
        label = self._in(nick.ljust(_LONGEST_NICK + 2), fg="cyan")
        typer.echo(f"{_INDENT}{one_line(where):<10} {label} {one_line(text, 160)}")

    def seen(self, text: str) -> None:
        """Print, with a check mark, a fact that the ledger or the history proves."""
        typer.echo(
            self._in(textwrap.fill(f"✓ {text}", _WIDTH, initial_indent="   ", subsequent_indent="     "), fg="green")
        )

    def missed(self, text: str) -> None:
        """Print, with a cross, something that should have happened and did not."""
        typer.echo(self._in(f"   ✗ {text}", fg="red"))

    def _in(self, text: str, **style: str | bool) -> str:
        return typer.style(text, **style) if self._coloured else text  # type: ignore[arg-type]


_LOOK_AGAIN = 0.1


@dataclass(frozen=True, slots=True)
class DemoScene:
    """The demo's processes (``stage``) and printer (``narrator``), with methods that use both."""

    stage: DemoStage
    narrator: Narrator

    async def says(self, who: DemoConnection, where: str, text: str) -> str:
        """Send a message as the person ``who`` to a channel or nick, print it, and return its msgid."""
        self.narrator.line(where if is_channel(where) else "(private)", who.nick, text)
        msgids = await who.transport.send_privmsg(where, text)
        await self.narrator.pause(0.8)
        return msgids[0]

    async def hears(
        self, who: DemoConnection, sender: str, word: str, since: int = 0, *, notice: bool = False
    ) -> Message:
        """Wait until ``who`` receives a message of ``sender`` that contains ``word``.

        The message is printed and returned. ``since``: number of received messages to skip. ``notice``: whether it must
        be a notice. SceneFailed is raised on timeout.
        """

        def fits(message: Message) -> bool:
            is_theirs = fold(message.sender) == fold(sender) and message.notice is notice
            return is_theirs and not message.own and word in message.text

        message = await who.ears.expect(f"{sender} said nothing with “{word}”", fits, since)
        self.narrator.heard(message)
        await self.narrator.pause(1.0)
        return message

    async def fact(self, what: str, is_it: Callable[[LedgerFact], bool], *question: str) -> LedgerFact:
        """Wait until the ledger has a fact for which ``is_it`` is true; return the newest such fact.

        ``what``: the fact in words, for the text of SceneFailed on timeout. ``question``: parameters of LEDGER GET.
        """
        return (await self.several(what, 1, is_it, *question))[-1]

    async def several(
        self, what: str, number: int, is_it: Callable[[LedgerFact], bool], *question: str
    ) -> list[LedgerFact]:
        """Wait until ``is_it`` is true for at least ``number`` facts of the ledger; return them.

        They are sorted, oldest first. ``what``: the facts in words, for the text of SceneFailed on timeout.
        ``question``: parameters of LEDGER GET.
        """
        try:
            async with asyncio.timeout(PATIENCE):
                while True:
                    candidates = await facts(self.stage.you.transport, *question, "limit=1000")
                    if len(fitting := [fact for fact in candidates if is_it(fact)]) >= number:
                        return fitting
                    await asyncio.sleep(_LOOK_AGAIN)
        except TimeoutError:
            raise SceneFailed(f"the ledger has no fact: {what}") from None


GENERAL, ALERTS = WellKnownChannel.GENERAL.value, WellKnownChannel.ALERTS.value


async def mention(show: DemoScene) -> str:
    """Play a scene: a person mentions an agent on another server and gets its answer.

    Returns a sentence on the result.
    """
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
    """Play a scene: an agent asks before it acts, and a person answers.

    Returns a sentence on the result.
    """
    you = show.stage.you
    show.narrator.tell(f"{BUILDER} may not deploy by itself: it asks, and waits. Only people may answer here.")
    await show.says(you, GENERAL, f"@{BUILDER} deploy the site")
    await show.hears(you, BUILDER, "[QUESTION]")
    question_fact = await show.fact(
        "an open question", lambda fact: bool(fact.value.get("open")), FactKind.QUESTION, BUILDER
    )
    await show.says(you, BUILDER, f"{question_fact.key} yes")
    await show.hears(you, BUILDER, f"{question_fact.key} is answered", notice=True)
    await show.hears(you, BUILDER, "the site is out")
    closed = await show.fact(
        "the question was answered by a person",
        lambda fact: fact.key == question_fact.key and fact.value.get("human_confirmed") is True,
        FactKind.QUESTION,
        BUILDER,
    )
    return f"the ledger: {question_fact.key} of {BUILDER} answered by {closed.value['by']}, a {closed.value['class']}"


async def spiral(show: DemoScene) -> str:
    """Play a scene: an agent goes in circles; its supervisor whispers twice, then calls people.

    Returns a sentence on the result.
    """
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
    paused_fact = await show.fact(
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
    return f"the ledger: alert {alert.value['event']}, {DIGGER} {paused_fact.value['state']} until {YOU} said abort"


async def split(show: DemoScene) -> str:
    """Play a scene: the link between the servers is cut and restored, and no message is lost.

    Returns a sentence on the result.
    """
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
    histories = {seat.nick: [each.msgid for each in await seat.transport.history(GENERAL)] for seat in (you, eve)}
    if any(msgids.count(msgid) != 1 for msgids in histories.values() for msgid in (ours, theirs)):
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
    """Play a scene: two agents thank each other until the loop guard stops them.

    Returns a sentence on the result.
    """
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
    "A mention wakes an agent on another server",
    "An agent asks for permission",
    "The supervisor stops an agent that repeats itself",
    "The link between the servers breaks and returns",
    "The loop guard stops two agents that answer each other",
)
