"""What programs of several makers go through alike: killed, and stopped while nothing comes."""

import os
import signal

from tests.clients.watched import Launch, Watched
from tests.support.model import Model


async def goes_on_after_a_kill(launch: Launch, model: Model) -> None:
    """Killed in a turn it says so, once, and the next one knows what it knew."""
    agent = launch()
    await agent.runner.start()
    await agent.turn("[[say remember the marmot]]")
    await agent.runner.send_prompt("[[wait NEVER]] [[say never]]")
    await model.journal.arrival("[[say never]]")
    os.kill(agent.program(), signal.SIGKILL)
    assert await agent.exited() == -signal.SIGKILL
    assert not agent.runner.is_running()
    await agent.runner.stop()
    assert agent.exits == [-signal.SIGKILL]

    again = launch(resume=agent.runner.session_id)
    await again.runner.start("[[say what was it?]]")
    assert (await again.next_turn()).text == "what was it?"
    assert again.runner.session_id == agent.runner.session_id
    assert "remember the marmot" in model.journal.requests[-1].everything


async def stops_while_the_model_hangs(agent: Watched, model: Model) -> None:
    """Whatever it waits for, nothing is left of it."""
    await agent.runner.send_prompt("[[hang]]")
    await model.journal.arrival("[[hang]]")
    await agent.runner.stop()
    assert agent.exits == [0]
    assert agent.processes() == {}
