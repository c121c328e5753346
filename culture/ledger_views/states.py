"""Display names of agent states.

Imports no IRC client, so that ``culture status`` starts fast.
"""

from culture.protocol.vocabulary import AgentState

HELD, STANDING_DOWN = "held", "standing down"
"""Display states of an idle agent that agents cannot wake: messages wait for release, or only people may wake it."""


def display_state(state: str, *, stood_down: bool, held: int) -> str:
    """Return the state of an agent as people see it: for an idle agent, why nothing wakes it.

    This is ``standing down`` if ``stood_down`` (only people wake the agent), or ``held`` if it has ``held`` messages
    that wait for a person's release. Every other state is returned unchanged.
    """
    if state != AgentState.IDLE:
        return state
    return STANDING_DOWN if stood_down else HELD if held else state
