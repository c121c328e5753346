"""One supervisor per agent: each sees its own agent, counts for itself, and knows of no other."""

import json
from pathlib import Path
from typing import Any

import pytest

from culture.clients.shared.daemon import AgentDaemon
from culture.clients.shared.supervisor import Supervisor
from culture.protocol.vocabulary import AgentState
from culture.server.ircd import IRCd
from tests.clients.shared.test_supervision import BUILDING, STUCK, settled
from tests.support.agents import agents_yaml, playbook, prompts, running
from tests.support.client import Client, registered
from tests.support.waiting import until

ONE, OTHER = "spark-one", "spark-other"


def watched(home: Path, nick: str, verdict: dict[str, str]) -> dict[str, Any]:
    """An agent that retries what it is told to build, and a judge of its own for it."""
    work = home / nick
    work.mkdir()
    judging = work / "judge.yaml"
    judging.write_text(json.dumps({"judge": [verdict]}), encoding="utf-8")
    supervisor = {"agent": "scripted", "playbook": str(judging), "eval_interval": 6}
    return {"nick": nick, "directory": str(work), "playbook": playbook(work, BUILDING), "supervisor": supervisor}


async def build(ori: Client, daemon: AgentDaemon, what: str) -> None:
    """Have it build something, and be judged for it."""
    nick = daemon.config.nick
    ori.send(f"PRIVMSG #general :@{nick} build it: {what}")
    await ori.expect("PRIVMSG", "#general", "built", where=lambda each: each.source.startswith(f"{nick}!"))
    await settled(daemon)


def seen_by_supervisor(daemon: AgentDaemon) -> str:
    """All that the supervisor of an agent would put before its model now."""
    supervisor = daemon.supervision._supervisor
    assert isinstance(supervisor, Supervisor)
    return supervisor._window.prompt()


@pytest.mark.requirement("I17")
async def test_each_agent_has_a_supervisor_and_they_do_not_coordinate(ircd: IRCd, home: Path) -> None:
    deeper = {"when": "cmake --build", "verdict": "THINK_DEEPER This deserves a plan."}
    config = agents_yaml(home, ircd.port, watched(home, ONE, STUCK), watched(home, OTHER, deeper))
    async with (
        registered(ircd.port, "spark-ori") as ori,
        registered(ircd.port, "spark-eve") as eve,
        running(config, ONE) as one,
        running(config, OTHER) as other,
    ):
        await ori.join("#general")
        await eve.join("#alerts")
        assert one.supervision._supervisor is not other.supervision._supervisor
        # The same trouble with both, in turn: one has it three times, the other once.
        await build(ori, one, "the first part")
        await build(ori, other, "the cellar")
        for part in ("the second part", "the third part"):
            await build(ori, one, part)
        await eve.expect("PRIVMSG", "#alerts", where=lambda each: "[ESCALATION]" in each.params[1])
        await until(lambda: one.presence.state is AgentState.PAUSED)
        assert other.notes.held is None and other.presence.state is AgentState.IDLE
        assert "the cellar" not in seen_by_supervisor(one) and "part" not in seen_by_supervisor(other)
        assert "the cellar" in seen_by_supervisor(other)
        ori.send(f"PRIVMSG #general :@{OTHER} and now")
        await ori.expect("PRIVMSG", "#general", "heard: and now")
        everything = [*ori.seen, *eve.seen]
    told = [prompt.splitlines()[-1] for prompt in prompts(home / OTHER) if "SUPERVISOR" in prompt]
    assert told == ["[SUPERVISOR/THINK_DEEPER] This deserves a plan."]
    of_one = "\n".join(prompts(home / ONE))
    assert "[SUPERVISOR/CORRECTION]" in of_one and "THINK_DEEPER" not in of_one
    lines = [line for line in everything if line.verb in ("PRIVMSG", "NOTICE") and line.source.startswith(OTHER)]
    assert not [line for line in lines if "SUPERVISOR" in line.params[1] or ONE in line.params[1]]
