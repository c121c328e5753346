"""Scripted agents that run, and a daemon's socket for what they call."""

from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest

from culture.clients.scripted.agent_runner import ScriptedRunner
from culture.clients.shared.requests import answer
from culture.clients.shared.socket_server import SocketServer
from culture.clients.shared.turn import RunnerSetup, Turn
from culture.config import paths
from culture.lib.process.orphans import new_token
from culture.protocol.vocabulary import Environment
from tests.clients.conformance import Record
from tests.clients.desks import NotedDesk, message

NICK = "spark-helper"


class Player:
    """A scripted agent, its runner, and what it told."""

    def __init__(self, runner: ScriptedRunner, token: str) -> None:
        self.runner = runner
        self.token = token
        self.record = Record(runner)

    async def turn(self, prompt: str) -> Turn:
        """Give a prompt and wait for the end of the turn."""
        before = len(self.record.turns)
        await self.runner.send_prompt(prompt)
        await self.record.until(lambda: len(self.record.turns) > before or self.record.exits)
        assert self.record.exits == [], "the agent died"
        return self.record.turns[-1]


Play = Callable[..., Awaitable[Player]]


@pytest.fixture
async def play(tmp_path: Path) -> AsyncIterator[Play]:
    """Starts agents with a playbook, or with the built-in one."""
    players: list[Player] = []

    async def start(playbook: str | None = None, resume: str | None = None, thinking: str = "medium") -> Player:
        if playbook is not None:
            (tmp_path / "playbook.yaml").write_text(playbook, encoding="utf-8")
        token = new_token()
        setup = RunnerSetup(
            NICK,
            tmp_path,
            {Environment.NICK: NICK, Environment.TOKEN: token},
            thinking=thinking,
            options={} if playbook is None else {"playbook": "playbook.yaml"},
            resume=resume,
        )
        player = Player(ScriptedRunner(setup), token)
        players.append(player)
        await player.runner.start()
        return player

    yield start
    for player in players:
        await player.runner.stop()


@pytest.fixture
async def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[NotedDesk]:
    """What the skill client of the agent reaches."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    # Where the lock of the socket is: in the home folder of whoever runs the tests, they would keep each other out.
    monkeypatch.setenv("CULTURE_HOME", str(tmp_path / "home"))
    desk = NotedDesk()
    desk.unread = [message("spark-ori", "the build is green")]
    server = SocketServer(paths.agent_socket(NICK), partial(answer, desk))
    await server.start()
    yield desk
    await server.stop()
