"""Supervisor that asks an ACP agent for each verdict, in a new session."""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from culture.clients.acp.agent_runner import AcpRunner
from culture.clients.acp.options import Permissions
from culture.clients.shared.supervisor import NoJudgement, Supervisor, SupervisorSetup
from culture.clients.shared.turn import AgentDied, RunnerSetup


class AcpSupervisor(Supervisor):
    """Asks an ACP program for verdicts, without tools, in processes of its own.

    The program is that of the agent, or OpenCode.
    """

    def __init__(self, setup: SupervisorSetup) -> None:
        super().__init__(setup)
        self._runner(setup.directory)

    async def judge(self, prompt: str) -> str:
        """Send the prompt to the supervisor's model once, and return its verdict.

        The program runs in an empty folder: an AGENTS.md in the agent's folder must not instruct its supervisor.
        ``NoJudgement`` if there is no verdict.
        """
        with TemporaryDirectory(prefix="judge-", ignore_cleanup_errors=True) as folder:
            runner = self._runner(Path(folder))
            try:
                await runner.open()
                turn = await runner.take_turn(prompt)
            except AgentDied as death:
                raise NoJudgement(str(death)) from death
            finally:
                await runner.close()
        return self.answered(turn)

    def _runner(self, folder: Path) -> AcpRunner:
        command = self.setup.options.get("acp_command")
        return AcpRunner(
            RunnerSetup(
                nick=self.setup.nick,
                directory=folder,
                environment=self.environment,
                model=self.setup.model,
                instructions=self.setup.system_prompt,
                options={"acp_command": command, "permissions": Permissions.DENY},
                sandbox=self.setup.sandbox and replace(self.setup.sandbox, directory=folder),
            )
        )
