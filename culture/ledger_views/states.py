"""States of agents as people see them; light, for commands that load no IRC client."""

from culture.protocol.vocabulary import AgentState

HELD, STANDING_DOWN = "held", "standing down"
"""How an idle agent is shown that other agents cannot wake: with messages that wait for a person's word, or told to."""


def shown_state(state: str, *, stood_down: bool, held: int) -> str:
    """State of an agent as people see it: of one that is idle, why agents cannot wake it."""
    if state != AgentState.IDLE:
        return state
    return STANDING_DOWN if stood_down else HELD if held else state
