"""A supervisor with Codex's judgement: one question without shell, files or memory for each verdict."""

import asyncio

from culture.clients.codex.agent_runner import CodexRunner
from culture.clients.codex.app_server import AppServer, Params
from culture.clients.codex.options import effort
from culture.clients.shared.supervisor import NoJudgement, Supervisor, SupervisorSetup
from culture.clients.shared.turn import AgentDied, RunnerSetup, Turn

# What Codex tells and offers its model beside the question; of its tools those that touch nothing stay.
LEAN: dict[str, object] = {
    "web_search": "disabled",
    "include_environment_context": False,
    "include_permissions_instructions": False,
    "include_apps_instructions": False,
    "include_collaboration_mode_instructions": False,
    "skills.include_instructions": False,
    "agents.enabled": False,
    "features.shell_tool": False,
    "features.image_generation": False,
    "features.goals": False,
}


class CodexSupervisor(Supervisor):
    """Asks Codex with the login that the agent has; its processes are its own, not the agent's."""

    def __init__(self, setup: SupervisorSetup) -> None:
        super().__init__(setup)
        effort(setup.thinking)

    async def judge(self, prompt: str) -> str:
        """Put the question, once."""
        setup = self.setup
        judge = _Judge(
            RunnerSetup(
                setup.nick,
                setup.directory,
                self.environment,
                setup.model,
                setup.thinking,
                setup.system_prompt,
                sandbox=setup.sandbox,
            )
        )
        told: asyncio.Queue[Turn | int] = asyncio.Queue()
        judge.on_turn = judge.on_exit = told.put
        try:
            await judge.start(prompt)
            turn = await told.get()
        except AgentDied as death:
            raise NoJudgement(str(death)) from death
        finally:
            await judge.stop()
        if isinstance(turn, int):
            raise NoJudgement(f"Codex ended with code {turn}")
        return self.answered(turn)


class _Judge(CodexRunner):
    """Answers one question in a thread that is not kept."""

    outside = False

    async def wanted(self, server: AppServer, note: str = "") -> Params:
        """A thread under the supervisor's instructions alone, without a place to run anything in."""
        others = {
            f"mcp_servers.{name}.enabled": False for name in (await self.settings(server)).get("mcp_servers") or ()
        }
        return {
            **await super().wanted(server, note),
            "ephemeral": True,
            "approvalPolicy": "never",
            "sandbox": "read-only",
            "environments": [],
            "baseInstructions": self.setup.instructions,
            "developerInstructions": None,
            "config": {**LEAN, **others},
        }
