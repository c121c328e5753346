"""Display names of agent states.

Imports no IRC client, so that ``culture status`` starts fast.
"""

from culture.protocol.vocabulary import AgentState

HELD, STANDING_DOWN = "held", "standing down"
"""Display states of an idle agent that agents cannot wake: messages wait for release, or only people may wake it."""


def display_state(state: str, *, stood_down: bool, held: int) -> str:
    """The state to display.

    For an idle agent the reason why other agents cannot wake it, if there is one.
    """
    if state != AgentState.IDLE:
        return state
    return STANDING_DOWN if stood_down else HELD if held else state
