"""The real Claude Code with the wiki among its tools."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, query

from culture.clients.shared.turn import RunnerSetup
from culture.wiki.pages import Pages
from culture.wiki.server import serving
from culture.wiki.types import revision_of
from tests.clients.watched import Launch
from tests.support.model import Model


@pytest.fixture
def wiki(tmp_path: Path) -> Pages:
    return Pages.create(tmp_path / "wiki" / "demo")


@pytest.fixture
async def port(wiki: Pages) -> AsyncIterator[int]:
    async with serving(wiki, port=0) as taken:
        yield taken


def call(tool: str, **arguments: object) -> str:
    return f"[[call mcp__dev-wiki__{tool} {json.dumps(arguments)}]]"


async def ask(prompt: str, folder: Path, kind: str, url: str) -> str:
    """What Claude says, with the wiki configured as the founding text has it."""
    options = ClaudeAgentOptions(
        cwd=folder,
        mcp_servers={"dev-wiki": {"type": kind, "url": url}},  # type: ignore[dict-item]
        permission_mode="bypassPermissions",
        setting_sources=[],
        strict_mcp_config=True,
    )
    said = ""
    async for message in query(prompt=prompt, options=options):
        if isinstance(message, ResultMessage):
            said = message.result or ""
    return said


@pytest.mark.requirement("O25")
@pytest.mark.parametrize(("kind", "path"), [("http", "/mcp"), ("sse", "/sse")])
async def test_claude_reads_writes_and_is_told_of_a_conflict(
    environment: None, model: Model, wiki: Pages, port: int, tmp_path: Path, kind: str, path: str
) -> None:
    """O25: state that lasts is on a wiki, which agents reach by MCP."""
    wiki.write("plans/e2", "theirs\n", "", "spark-em")
    base = revision_of("theirs\n")
    script = [
        call("wiki_read", page="templates/plan"),
        call("wiki_write", page="plans/e2", text="mine\n", base_revision=""),
        call("wiki_write", page="plans/e2", text="theirs\nmine\n", base_revision=base, message="both"),
        *(
            call("wiki_write", page=page, text=f"# {page}\n", base_revision="")
            for page in ("sprint-state", "handoffs/spark-ramona", "decisions/cdn")
        ),
        call("wiki_search", words="mine"),
        "[[say the plan is written]]",
    ]
    url = f"http://127.0.0.1:{port}{path}?nick=spark-ramona"
    assert await ask(" ".join(script), tmp_path, kind, url) == "the plan is written"
    form, conflict, done, *_, found = model.journal.requests[-1].results
    assert "## What could go wrong" in form
    assert "theirs\n" in conflict and "mine\n" in conflict and base in conflict
    assert done.startswith("plans/e2 written") and "plans/e2:2: mine" in found
    assert wiki.read("plans/e2").text == "theirs\nmine\n"
    assert [(each.author, each.message) for each in wiki.history("plans/e2", 1)] == [("spark-ramona", "both")]
    for page in ("sprint-state", "handoffs/spark-ramona", "decisions/cdn"):
        assert wiki.read(page).author == "spark-ramona"


async def test_a_runner_has_the_servers_of_its_configuration(
    launch: Launch, model: Model, wiki: Pages, port: int, setup: RunnerSetup
) -> None:
    """What is secret stands in the environment: a name in braces is put there by Claude Code."""
    url = f"http://127.0.0.1:{port}/mcp?nick=${{WHO}}"
    agent = launch(
        environment={**setup.environment, "WHO": "spark-ramona"},
        options={"mcp_servers": {"dev-wiki": {"type": "http", "url": url}}},
    )
    await agent.runner.start()
    write = call("wiki_write", page="plans/e3", text="ours\n", base_revision="")
    await agent.turn(f"{write} [[say written]]")
    assert wiki.read("plans/e3").author == "spark-ramona"
