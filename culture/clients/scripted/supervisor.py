"""Supervisor without a model: takes its verdicts from a playbook."""

import asyncio

from culture.clients.scripted.agent_runner import playbook_of
from culture.clients.scripted.playbook import read
from culture.clients.shared.supervisor import Supervisor, SupervisorSetup


class ScriptedSupervisor(Supervisor):
    """Judges by the ``judge:`` rules of a playbook; the verdict is OK if none matches."""

    def __init__(self, setup: SupervisorSetup) -> None:
        super().__init__(setup)
        self._playbook = read(playbook_of(setup.nick, setup.directory, setup.options))

    async def judge(self, prompt: str) -> str:
        """Return the verdict of the first rule that matches the prompt.

        The search runs in a thread, as patterns may be slow.
        """
        return await asyncio.to_thread(self._playbook.judged, prompt)
