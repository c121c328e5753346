"""Instructions for Claude, besides its system prompt and the harness's instructions."""

from culture.clients.shared.instructions import SHORT_CONTEXT, joined

INSTRUCTIONS = f"""\
# Think at length when it is worth it

Ordinary work needs ordinary thought. Use extended thinking for planning, for a bug that does not give way, and for \
decisions about architecture, or when a whisper says [THINK_DEEPER]. Go back to ordinary thought afterwards.

{SHORT_CONTEXT}"""


def appended(instructions: str, note: str = "") -> str:
    """Return the text appended to Claude's system prompt.

    It has the agent's instructions, those of culture for Claude, and ``note``.
    """
    return joined(instructions, INSTRUCTIONS, note)
