"""Supervisor that asks Claude for each verdict, without tools, session or memory."""

import asyncio

from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKError, ResultMessage, query

from culture.clients.claude.answer import failure, tokens
from culture.clients.claude.options import LONGEST_LINE, effort, launcher
from culture.clients.claude.session import put
from culture.clients.shared.supervisor import NoJudgement, Supervisor, SupervisorSetup
from culture.lib.process.orphans import end_all

LAST_WORDS = 3


class ClaudeSupervisor(Supervisor):
    """Asks Claude Code for verdicts with the agent's login, in processes of its own."""

    def __init__(self, setup: SupervisorSetup) -> None:
        super().__init__(setup)
        effort(setup.thinking)

    async def judge(self, prompt: str) -> str:
        """Send the prompt to the supervisor's model once, without retries, and return its verdict.

        ``NoJudgement`` if the model gives none.
        """
        result, words = None, list[str]()
        try:
            async for message in query(prompt=put(prompt), options=self._options(words)):
                if isinstance(message, ResultMessage):
                    result = message
        except asyncio.CancelledError:
            await end_all(self.setup.token, grace=0)
            raise
        except ClaudeSDKError as error:
            # After a failure it tells what failed, and ends with an error of its own.
            if result is None:
                raise NoJudgement("; ".join([str(error), *words[-LAST_WORDS:]])) from error
        if result is None:
            raise NoJudgement("Claude Code gave no answer")
        return self._answered(result)

    async def stop(self) -> None:
        """Stop the supervisor, and kill the processes of a running request."""
        await super().stop()
        await end_all(self.setup.token)

    def _answered(self, result: ResultMessage) -> str:
        if self.on_spent is not None:
            self.on_spent(tokens(result.usage), result.total_cost_usd or 0.0)
        if why := failure(result):
            raise NoJudgement(why)
        return result.result or ""

    def _options(self, words: list[str]) -> ClaudeAgentOptions:
        level = effort(self.setup.thinking)
        return ClaudeAgentOptions(
            system_prompt=self.setup.system_prompt,
            cwd=self.setup.directory,
            model=self.setup.model,
            effort=level,
            thinking=None if level else {"type": "disabled"},
            tools=[],
            skills=[],
            max_turns=1,
            permission_mode="dontAsk",
            setting_sources=[],
            strict_mcp_config=True,
            env=self.environment,
            extra_args={"no-session-persistence": None},
            max_buffer_size=LONGEST_LINE,
            stderr=words.append,
            cli_path=launcher(self.setup.sandbox, self.environment),
        )
