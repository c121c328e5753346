"""An agent on a server that knows no classes: who is one of ours is no person there."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.agents import agents_yaml, playbook, running
from tests.support.client import registered
from tests.support.ngircd import ngircd


@pytest.fixture
async def port(tmp_path: Path) -> AsyncIterator[int]:
    async with ngircd(tmp_path) as port:
        yield port


@pytest.mark.parametrize("other", ["spark-bob", "SPARK-bob", "spark-bob_"])
async def test_another_agent_of_the_configuration_cannot_command_it(port: int, home: Path, other: str) -> None:
    config = agents_yaml(home, port, {"nick": "spark-ada", "playbook": playbook(home, [])}, {"nick": "spark-bob"})
    async with registered(port, other) as bob, running(config, "spark-ada") as daemon:
        await bob.join("#general")
        bob.send("PRIVMSG #general :@spark-ada pause")
        said = await bob.expect("PRIVMSG", "#general")
        assert said.params[1] == "heard: pause"
        assert not daemon.notes.paused


@pytest.mark.requirement("F02")
async def test_a_person_can(port: int, home: Path) -> None:
    agent = {"nick": "spark-ada", "playbook": playbook(home, [])}
    config = agents_yaml(home, port, agent, {"nick": "spark-bob"}, rules={"people": ["ori"]})
    async with registered(port, "ori") as ori, running(config, "spark-ada") as daemon:
        await ori.join("#general")
        ori.send("PRIVMSG #general :@spark-ada pause")
        await ori.expect("NOTICE", "ori")
        assert daemon.notes.paused
