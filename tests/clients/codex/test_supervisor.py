"""Codex judges: one question for each verdict, without shell, files or memory."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from culture.clients.shared.supervisor import SYSTEM_PROMPT, SupervisorSetup
from culture.lib.process.orphans import carrying
from tests.clients.shared.test_supervisor import called, said
from tests.support.model import Model
from tests.support.waiting import PATIENCE

pytest.importorskip("codex_cli_bin", reason="the extra culture[codex] is not installed")

from culture.clients.codex.supervisor import CodexSupervisor


@pytest.fixture
async def supervisor(environment: None, tmp_path: Path) -> AsyncIterator[CodexSupervisor]:
    """One that is fed by the test."""
    watching = CodexSupervisor(SupervisorSetup("spark-codex", tmp_path, thinking="low", timeout=PATIENCE))
    await watching.start()
    try:
        yield watching
    finally:
        await watching.stop()


@pytest.mark.requirement("I18")
async def test_one_question_without_shell_or_files_is_asked(
    supervisor: CodexSupervisor, model: Model, tmp_path: Path, codex_home: Path
) -> None:
    (tmp_path / "AGENTS.md").write_text("The agent's own marmot.")
    with (codex_home / "config.toml").open("a") as settings:
        settings.write(f'[mcp_servers.other]\ncommand = "touch"\nargs = ["{tmp_path}/started"]\n')
    spent, whispers = list[tuple[int, float]](), list[tuple[str, str]]()
    supervisor.on_spent = lambda used, cost: spent.append((used, cost))
    supervisor.task = lambda: "benchmark nemotron"

    async def whispered(message: str, action: str) -> None:
        whispers.append((message, action))

    supervisor.on_whisper = whispered
    model.journal.verdicts = ["[[usage 900 7]] [[say CORRECTION Read the error.]]"]
    for _ in range(4):
        await supervisor.observe(called("Bash", command="cmake .."))
    await supervisor.observe(said("/clear"))
    await supervisor.rest()
    assert whispers == [("Read the error.", "CORRECTION")]
    (request,) = model.journal.requests
    assert SYSTEM_PROMPT in [part["text"] for item in request.body["input"] for part in item.get("content", ())]
    assert request.body["reasoning"]["effort"] == "low"
    assert "benchmark nemotron" in request.prompt and request.prompt.count("cmake ..") == 4
    assert "marmot" not in request.everything and len(request.everything) < 20_000
    assert spent == [(907, 0.0)]
    assert not (tmp_path / "started").exists()
    assert not (codex_home / "sessions").exists()


async def test_it_has_no_shell(supervisor: CodexSupervisor, model: Model, tmp_path: Path) -> None:
    model.journal.verdicts = [f"[[bash touch {tmp_path}/made]]", "[[say OK]]"]
    assert await supervisor.judge("is it well?") == "OK"
    assert not (tmp_path / "made").exists()


@pytest.mark.fault("E26")
@pytest.mark.parametrize(
    ("answer", "told"),
    [("[[err 401]]", " login` as the user"), ("[[say Hello!]]", "no verdict")],
    ids=["no key", "no verdict"],
)
async def test_a_model_that_fails_is_told_of(supervisor: CodexSupervisor, model: Model, answer: str, told: str) -> None:
    troubles: list[str] = []
    supervisor.on_trouble = troubles.append
    model.journal.verdicts = [answer] * 8
    for _ in range(5):
        await supervisor.observe(said("working"))
    await supervisor.rest()
    assert len(troubles) == 1 and told in troubles[0]


@pytest.mark.fault("E26")
async def test_a_question_that_hangs_is_given_up_with_its_process(
    environment: None, model: Model, tmp_path: Path
) -> None:
    supervisor = CodexSupervisor(SupervisorSetup("spark-codex", tmp_path))
    model.journal.verdicts = ["[[hang]]"]
    judging = asyncio.create_task(supervisor.judge("is it well?"))
    request = await model.journal.first(lambda request: "is it well?" in request.everything)
    assert request.prompt == "is it well?"
    assert carrying(supervisor.setup.token) != []
    judging.cancel()
    async with asyncio.timeout(PATIENCE):
        await asyncio.wait([judging])
    assert judging.cancelled()
    assert carrying(supervisor.setup.token) == []
