"""An agent that asks before it deletes, and people who answer it from their clients."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from culture.clients.shared.daemon import AgentDaemon
from tests.support.agents import agents_yaml, playbook, running

BEE = "spark-bee"
_CLIENT = "python3 -P -m culture.clients.shared.skill.irc_client"
_RULES: list[dict[str, Any]] = [
    {
        "when": "> .*delete the old branches",
        "steps": [
            {"run": f"{_CLIENT} ask --timeout 60 --options yes/no/abort '#general' 'Delete the 47 branches?'"},
            {"send": {"to": "#general", "text": "They said {output}, so it is done."}},
        ],
    },
    {"when": "> .*count", "steps": [{"say": "This is prompt {count}."}]},
]


@asynccontextmanager
async def asking_agent(home: Path, port: int) -> AsyncIterator[AgentDaemon]:
    """The agent, in ``#general``."""
    trust = {"trust": {"humans": "always", "agents": "never"}}
    config = agents_yaml(
        home, port, {"nick": BEE, "playbook": playbook(home, _RULES, [{"think": "Well."}])}, rules=trust
    )
    async with running(config, BEE, patience=30) as daemon:
        yield daemon
