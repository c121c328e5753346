"""Copilot as a supervisor: one question without tools for each verdict."""

import asyncio
from pathlib import Path

import pytest

from culture.clients.shared.supervisor import SYSTEM_PROMPT, SupervisorSetup
from culture.lib.process.orphans import carrying
from tests.clients.copilot.conftest import provided
from tests.clients.shared.test_supervisor import called, said
from tests.support.model import Model
from tests.support.waiting import PATIENCE

pytest.importorskip("copilot", reason="the extra culture[copilot] is not installed")

from culture.clients.copilot.supervisor import CopilotSupervisor


def watching(model: Model, folder: Path, timeout: float = PATIENCE) -> CopilotSupervisor:
    setup = SupervisorSetup("spark-copilot", folder, model="gpt-5", timeout=timeout, options=provided(model))
    return CopilotSupervisor(setup)


async def test_a_verdict_becomes_a_whisper(environment: None, model: Model, tmp_path: Path) -> None:
    model.journal.verdicts = ["[[usage 500 20 0 0]] [[say CORRECTION You retried cmake.]]"]
    (tmp_path / "AGENTS.md").write_text("A marmot that is not its business.")
    supervisor, whispers, spent = watching(model, tmp_path), list[tuple[str, str]](), list[int]()

    async def whispered(message: str, action: str) -> None:
        whispers.append((message, action))

    supervisor.on_whisper = whispered
    supervisor.on_spent = lambda tokens, _dollars: spent.append(tokens)
    await supervisor.start()
    for _ in range(5):
        await supervisor.observe(called("bash", command="cmake .."))
    await supervisor.rest()
    assert whispers == [("You retried cmake.", "CORRECTION")]
    assert spent == [520]
    (asked,) = model.journal.requests
    assert asked.body["messages"][0]["content"].startswith(SYSTEM_PROMPT)
    assert "cmake .." in asked.everything and "marmot" not in asked.everything
    assert not asked.body.get("tools")
    assert carrying(supervisor.setup.token) == []
    assert not list((tmp_path / "home/.copilot/session-state").glob("*/events.jsonl"))


async def test_one_that_fails_or_hangs_is_given_up_with_its_process(
    environment: None, model: Model, tmp_path: Path
) -> None:
    model.journal.verdicts = ["[[err 400 no such model]]", "[[hang]]"]
    supervisor, troubles = watching(model, tmp_path), list[str]()
    supervisor.on_trouble = troubles.append
    await supervisor.start()
    for _ in range(5):
        await supervisor.observe(said("working"))
    await supervisor.rest()
    assert len(troubles) == 1 and "no such model" in troubles[0]
    assert carrying(supervisor.setup.token) == []
    judging = asyncio.create_task(supervisor.judge("well?"))
    await model.journal.first(lambda request: "well?" in request.everything)
    judging.cancel()
    async with asyncio.timeout(PATIENCE):
        await asyncio.wait([judging])
    assert judging.cancelled()
    assert carrying(supervisor.setup.token) == []
    await supervisor.stop()
