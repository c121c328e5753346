"""A small model that answers one question: whoever fills the documenter's role, without tools, session or memory."""

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
    """What asks such a model; NoBackend where there is none."""
    kind = backend(role.agent)
    made = supervisor_class(kind)
    if not issubclass(made, Supervisor):
        raise TypeError(f"{made} judges nothing")
    options = {name: value for name, value in role.options.items() if name in kind.fields}
    setup = SupervisorSetup(
        nick, directory, chosen_model(role.model), thinking="off", options=options, system_prompt=SYSTEM_PROMPT
    )
    asked, one_by_one = made(setup), asyncio.Lock()

    async def ask(question: str) -> str:
        try:
            # What is left of a question ends with it, and would take another's with it.
            async with one_by_one, asyncio.timeout(PATIENCE):
                return await asked.judge(question)
        except TimeoutError:
            raise NoAnswer(f"no answer within {PATIENCE:g} s") from None

    return ask
