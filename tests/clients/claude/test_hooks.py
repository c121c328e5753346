"""Hooks in the settings of a Claude Code that is started by hand: the supervisor sees it, and its whispers arrive."""

import asyncio
import json
import os
import shlex
import sys
from pathlib import Path

import pytest

from culture.cli.skills import install
from culture.clients.claude.hooks import EVENTS, WrongSettings, added
from culture.clients.shared.skill.hook import content
from culture.server.ircd import IRCd
from tests.clients.shared.test_daemon import NICK
from tests.clients.shared.test_supervision import configured
from tests.support.agents import running
from tests.support.model import Model
from tests.support.waiting import PATIENCE, until

MAKE = [{"when": "make", "verdict": "CORRECTION You have run make often enough."}]


@pytest.mark.requirement("F27")
def test_what_is_in_the_settings_stays_and_ours_is_there_once() -> None:
    mine = {"matcher": "Bash", "hooks": [{"type": "command", "command": "notify-send done"}]}
    before = json.dumps({"model": "opus", "hooks": {"PostToolUse": [mine], "PreCompact": [mine]}})
    once = added(before)
    assert added(once) == once
    after = json.loads(once)
    assert after["model"] == "opus" and after["hooks"]["PreCompact"] == [mine]
    assert after["hooks"]["PostToolUse"][0] == mine and len(after["hooks"]["PostToolUse"]) == 2
    for event in EVENTS:
        (hook,) = after["hooks"][event][-1]["hooks"]
        assert hook["command"] == f"{shlex.quote(sys.executable)} -P -m culture.clients.shared.skill.hook"
    assert json.loads(added(None)).keys() == {"hooks"}


@pytest.mark.parametrize("settings", ["{", "[]", '{"hooks": []}', '{"hooks": {"Stop": {}}}'])
def test_settings_that_are_none_are_not_touched(settings: str) -> None:
    with pytest.raises(WrongSettings):
        added(settings)


def test_what_an_event_says_is_bounded() -> None:
    (block,) = content({"hook_event_name": "PostToolUse", "tool_name": "Write", "tool_input": {"text": "x" * 10**6}})
    assert block["name"] == "Write" and len(json.dumps(block)) < 5000
    assert content({"hook_event_name": "SessionStart"}) == content({}) == []


async def hook(event: object, **variables: str) -> tuple[int, bytes]:
    """Run the hook as Claude Code does; its exit code and what it wrote."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("CULTURE_NICK")}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",
        "-m",
        "culture.clients.shared.skill.hook",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**environment, **variables},
    )
    async with asyncio.timeout(PATIENCE):
        out, _ = await process.communicate(event if isinstance(event, bytes) else json.dumps(event).encode())
    assert process.returncode is not None
    return process.returncode, out


@pytest.mark.parametrize("event", [b"", b"nonsense", [], {}, {"hook_event_name": "PostToolUse"}])
async def test_a_hook_never_stands_in_the_way(home: Path, event: object) -> None:
    assert await hook(event) == (0, b"")
    assert await hook(event, CULTURE_NICK="spark-nobody") == (0, b"")


@pytest.mark.requirement("F27", "I23")
async def test_the_real_program_started_by_hand_is_seen_and_told(
    ircd: IRCd, home: Path, model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, query

    config = configured(home, ircd, [], MAKE, eval_interval=2)
    install("claude", tmp_path / "home", with_hooks=True)
    assert (tmp_path / "home/.claude/settings.json").is_file()
    go = tmp_path / "go"
    async with running(config, NICK) as daemon:

        async def let_go() -> None:
            await until(lambda: bool(daemon.socket._whispers))
            go.touch()

        waiting = asyncio.create_task(let_go())
        until_told = f"while [ ! -e {go} ]; do sleep 0.05; done"
        options = ClaudeAgentOptions(
            cwd=home / "work",
            permission_mode="bypassPermissions",
            setting_sources=["user"],
            env={"CULTURE_NICK": NICK},
        )
        prompt = f"[[bash make one]][[bash make two]][[bash {until_told}]][[bash ls]][[say done]]"
        results = [each async for each in query(prompt=prompt, options=options) if isinstance(each, ResultMessage)]
        await waiting
        assert [result.result for result in results] == ["done"]
        await until(lambda: "said: done" in daemon.supervision._supervisor._window.prompt())  # type: ignore[union-attr]
    heard = [
        request.everything.count("[SUPERVISOR/CORRECTION] You have run make often enough.")
        for request in model.journal.requests
    ]
    assert heard[0] == 0 and heard[-1] == 1
