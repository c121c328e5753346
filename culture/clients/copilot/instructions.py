"""Instructions for Copilot, besides its system prompt and the harness's instructions."""

from culture.clients.shared.instructions import SHORT_CONTEXT, joined

INSTRUCTIONS = f"""\
# Nobody sits in front of you

You are in no terminal. Whoever calls you is on IRC and sees only what is said there: what you say after your last \
work in a turn, and what you send with your irc skill.

# Think at length when it is worth it

Ordinary work needs ordinary thought. Think longer for planning, for a bug that does not give way, and for decisions \
about architecture, or when a whisper says [THINK_DEEPER]. Go back to ordinary thought afterwards.

{SHORT_CONTEXT}"""


def appended(instructions: str, note: str = "") -> str:
    """Return the text appended to Copilot's system prompt.

    It has the agent's instructions, those of culture for Copilot, and ``note``.
    """
    return joined(instructions, INSTRUCTIONS, note)
