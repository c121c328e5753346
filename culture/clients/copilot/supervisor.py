"""Supervisor that asks Copilot for each verdict, without tools or memory."""

import asyncio

from copilot._jsonrpc import JsonRpcError
from copilot.rpc import PermissionDecisionReject
from copilot.session import PermissionInvocation, PermissionRequestResult
from copilot.session_events import AssistantUsageData, PermissionRequest, SessionEvent

from culture.clients.copilot.answer import CopilotAnswer, tokens
from culture.clients.copilot.conversation import UNREACHABLE, CopilotConversation
from culture.clients.copilot.options import read
from culture.clients.copilot.process import CopilotProcess
from culture.clients.shared.supervisor import NoJudgement, Supervisor, SupervisorSetup
from culture.clients.shared.turn import AgentDied
from culture.lib.process.orphans import end_all


class CopilotSupervisor(Supervisor):
    """Asks Copilot for verdicts with the agent's login or provider, in processes of its own."""

    def __init__(self, setup: SupervisorSetup) -> None:
        super().__init__(setup)
        self._options = read(
            setup.nick, setup.directory, setup.options, self.environment, model=setup.model, thinking=setup.thinking
        )

    async def judge(self, prompt: str) -> str:
        """Send the prompt to the supervisor's model once, without retries, and return its verdict.

        ``NoJudgement`` if the model gives none.
        """
        try:
            collected = await self._answer(prompt)
        except (AgentDied, JsonRpcError, *UNREACHABLE) as error:
            raise NoJudgement(str(error)) from error
        turn = collected.turn(0, None, own_provider=self._options.provider is not None)
        if turn.error:
            raise NoJudgement(turn.error)
        return turn.text

    async def stop(self) -> None:
        """Stop the supervisor, and kill the processes of a running request."""
        await super().stop()
        await end_all(self.setup.token)

    async def _answer(self, prompt: str) -> CopilotAnswer:
        talk = CopilotConversation(self._count)
        chosen = self._options
        setup = self.setup
        live = await CopilotProcess.start(
            chosen.program, setup.directory, chosen.environment, setup.token, talk.lost, setup.sandbox
        )
        try:
            talk.session = await live.client.create_session(
                model=chosen.model,
                provider=chosen.provider,
                reasoning_effort=chosen.effort,
                working_directory=str(self.setup.directory),
                system_message={"mode": "replace", "content": self.setup.system_prompt},
                available_tools=[],
                skip_custom_instructions=True,
                on_permission_request=_refuse,
                on_event=talk.hear,
            )
            collected = await talk.ask(prompt)
            await live.client.delete_session(talk.session.session_id)
            return collected
        except asyncio.CancelledError:
            # A hanging program does not stop by itself.
            live.kill()
            raise
        finally:
            await live.leave()
            await talk.close()

    async def _count(self, event: SessionEvent) -> None:
        if isinstance(event.data, AssistantUsageData) and self.on_spent is not None:
            self.on_spent(tokens(event.data), 0.0)


def _refuse(_request: PermissionRequest, _invocation: PermissionInvocation) -> PermissionRequestResult:
    return PermissionDecisionReject()
