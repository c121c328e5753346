"""Supervisor that asks Codex for each verdict, without shell, files or memory."""

import asyncio

from culture.clients.codex.agent_runner import CodexRunner
from culture.clients.codex.app_server import AppServer, Params
from culture.clients.codex.options import effort
from culture.clients.shared.supervisor import NoJudgement, Supervisor, SupervisorSetup
from culture.clients.shared.turn import AgentDied, RunnerSetup, Turn

# Settings that reduce the prompt and switch off tools with effects.
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
    """Asks Codex for verdicts with the agent's login, in processes of its own."""

    def __init__(self, setup: SupervisorSetup) -> None:
        super().__init__(setup)
        effort(setup.thinking)

    async def judge(self, prompt: str) -> str:
        """Send the prompt to the supervisor's model once, without retries, and return its verdict.

        ``NoJudgement`` if the model gives none.
        """
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
        results: asyncio.Queue[Turn | int] = asyncio.Queue()
        judge.on_turn = judge.on_exit = results.put
        try:
            await judge.start(prompt)
            turn = await results.get()
        except AgentDied as death:
            raise NoJudgement(str(death)) from death
        finally:
            await judge.stop()
        if isinstance(turn, int):
            raise NoJudgement(f"Codex ended with code {turn}")
        return self.answered(turn)


class _Judge(CodexRunner):
    """A runner for one question of the supervisor, in a thread that Codex does not store."""

    outside = False

    async def thread_params(self, server: AppServer, note: str = "") -> Params:
        """Return thread parameters with the supervisor's instructions only, without shell and files.

        ``server``: Codex's process, which is asked for its settings; ``note``: a text added to the agent's
        instructions.
        """
        others = {
            f"mcp_servers.{name}.enabled": False for name in (await self.settings(server)).get("mcp_servers") or ()
        }
        return {
            **await super().thread_params(server, note),
            "ephemeral": True,
            "approvalPolicy": "never",
            "sandbox": "read-only",
            "environments": [],
            "baseInstructions": self.setup.instructions,
            "developerInstructions": None,
            "config": {**LEAN, **others},
        }
