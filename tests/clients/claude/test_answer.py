"""Why a turn is no answer, in words that somebody on IRC can act upon."""

import pytest

sdk = pytest.importorskip("claude_agent_sdk")

from culture.clients.claude.answer import failure  # noqa: E402


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("Not logged in · Please run /login", " /login` as the user who runs the agent, or ANTHROPIC_API_KEY"),
        ("API Error: 529 overloaded", "API Error: 529 overloaded"),
    ],
)
def test_what_the_program_says_is_told_with_what_to_do(said: str, told: str) -> None:
    result = sdk.ResultMessage(
        subtype="success", duration_ms=1, duration_api_ms=1, is_error=True, num_turns=1, session_id="s", result=said
    )
    assert told in failure(result)
