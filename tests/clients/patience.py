"""A person takes longer to answer than the agent's program waits for a command: the same for every real program."""

from culture.clients.shared.daemon import AgentDaemon
from tests.clients.shared.test_daemon import until
from tests.support.client import Client
from tests.support.model import Model

GENERAL = "#general"
SKILL = "python3 -P -m culture.clients.shared.skill.irc_client"
ASKED = "asked as q1: end your turn, the answer comes as your next prompt"


async def answers_late(daemon: AgentDaemon, ori: Client, model: Model) -> None:
    """The agent asks, its call returns, its turn ends; the answer is a prompt of its own, with who gave it."""
    nick = daemon.config.nick
    asking = f'[[bash {SKILL} ask "{GENERAL}" --options yes/no "may I?"]] [[say I wait for a word.]]'
    ori.send(f"PRIVMSG {GENERAL} :@{nick} deploy {asking}")
    await ori.expect("PRIVMSG", GENERAL, "[QUESTION] may I?")
    request = await model.journal.arrival("deploy", results=1)
    assert ASKED in request.results[0]
    await ori.expect("PRIVMSG", GENERAL, "I wait for a word.")
    await until(lambda: not daemon.work.busy)
    [question] = daemon.questions.open
    assert question.deadline - question.asked >= 300
    ori.send(f"PRIVMSG {GENERAL} :@{nick} yes q1")
    await ori.expect("PRIVMSG", GENERAL, "ok")
    await until(lambda: not daemon.work.busy)
    prompt = model.journal.requests[-1].prompt
    assert f"[IRC @mention in {GENERAL}] <spark-ori> @{nick} yes q1" in prompt
    assert 'answers your question q1, "may I?": ANSWERED' in prompt, prompt
