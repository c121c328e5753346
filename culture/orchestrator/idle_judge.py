"""The idle judge: a small model that answers one question, without tools, session or memory."""

import asyncio
from pathlib import Path

from culture.clients.shared.backends import backend, supervisor_class
from culture.clients.shared.supervisor import Supervisor, SupervisorSetup
from culture.clients.shared.turn import chosen_model
from culture.config.team import RoleConfig
from culture.orchestrator.errors import NoAnswer
from culture.orchestrator.heartbeat import Judge

PATIENCE = 60.0
SYSTEM_PROMPT = "You look after a team of AI agents. Answer the question with the one word that it asks for."


def judge(role: RoleConfig, nick: str, directory: Path) -> Judge:
    """Return a function that asks the role's model a question and returns the model's answer.

    ``nick``: names the judge in log messages; ``directory``: the folder in which the model's program runs. Raises
    ``NoBackend`` if the role's backend is unknown. The returned function raises ``NoAnswer`` after a timeout.
    """
    kind = backend(role.agent)
    supervisor_type = supervisor_class(kind)
    if not issubclass(supervisor_type, Supervisor):
        raise TypeError(f"{supervisor_type} judges nothing")
    options = {name: value for name, value in role.options.items() if name in kind.fields}
    setup = SupervisorSetup(
        nick, directory, chosen_model(role.model), thinking="off", options=options, system_prompt=SYSTEM_PROMPT
    )
    supervisor, lock = supervisor_type(setup), asyncio.Lock()

    async def ask(question: str) -> str:
        try:
            # One question at a time: cancelling one would cancel another that shares the process.
            async with lock, asyncio.timeout(PATIENCE):
                return await supervisor.judge(question)
        except TimeoutError:
            raise NoAnswer(f"no answer within {PATIENCE:g} s") from None

    return ask
