"""A person takes longer to answer than the agent's program waits for a command: the same for every real program."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from culture.clients.shared.daemon import AgentDaemon
from tests.support.client import Client
from tests.support.clock import sleep
from tests.support.model import Model
from tests.support.waiting import PATIENCE

GENERAL = "#general"
SKILL = "python3 -P -m culture.clients.shared.skill.irc_client"
ASKED = "asked as q1: end your turn, the answer comes as your next prompt"


@dataclass(frozen=True, slots=True)
class Seconds:
    """Seconds from the question until its call returned, the person answered and the agent had the answer."""

    returned: float
    answered: float
    prompted: float


async def answers_late(
    daemon: AgentDaemon, ori: Client, model: Model, *, later: float = 0.0, bound: float = 0.0
) -> Seconds:
    """The agent asks, its call returns, its turn ends; the answer is a prompt of its own, with who gave it.

    The person answers ``later`` seconds after the question, or as soon as the turn has ended; the call returns within
    ``bound`` seconds, and the patience of a test.
    """
    nick = daemon.config.nick
    asking = f'[[bash {SKILL} ask "{GENERAL}" --options yes/no "may I?"]] [[say I wait for a word.]]'
    ori.send(f"PRIVMSG {GENERAL} :@{nick} deploy {asking}")
    await ori.expect("PRIVMSG", GENERAL, "[QUESTION] may I?")
    [question] = daemon.questions.open
    returned = await moment(lambda: any(each.results for each in model.journal.asked("deploy")), bound)
    request = await model.journal.arrival("deploy", results=1)
    assert ASKED in request.results[0]
    await ori.expect("PRIVMSG", GENERAL, "I wait for a word.")
    await moment(lambda: not daemon.work.busy)
    assert [each.number for each in daemon.questions.open] == [question.number]
    assert question.deadline - question.asked >= 300
    answered = await moment(lambda: time.time() >= question.asked + later, later)
    ori.send(f"PRIVMSG {GENERAL} :@{nick} yes q1")
    await ori.expect("PRIVMSG", GENERAL, "ok")
    await moment(lambda: not daemon.work.busy)
    prompt = model.journal.requests[-1].prompt
    assert f"[IRC @mention in {GENERAL}] <spark-ori> @{nick} yes q1" in prompt
    assert "class: human" in prompt
    assert 'answers your question q1, "may I?": ANSWERED' in prompt, prompt
    # The same conversation goes on: the task, and the call that asked, stand before the answer.
    assert ASKED in model.journal.requests[-1].everything
    return Seconds(*(round(each - question.asked, 1) for each in (returned, answered, time.time())))


async def moment(holds: Callable[[], bool], within: float = 0.0) -> float:
    """When something holds, that comes within some seconds and the patience of a test."""
    async with asyncio.timeout(within + PATIENCE):
        while not holds():
            await sleep(0.005)
    return time.time()
