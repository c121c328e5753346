"""Claude Code itself, with the bridge among its MCP servers."""

import asyncio
import json
import os
from pathlib import Path

import pytest

from culture.bridge.access import BridgeAccess
from culture.server.ircd import IRCd
from tests.bridge.conftest import Bridge
from tests.clients.claude.conftest import environment, model
from tests.support.client import registered
from tests.support.waiting import PATIENCE

__all__ = ["environment", "model"]

LONG = 1.5 * PATIENCE


def step(tool: str, **arguments: object) -> str:
    return f"[[call mcp__irc-bridge__{tool} {json.dumps(arguments)}]]"


@pytest.mark.requirement("N04", "N15")
@pytest.mark.parametrize(("kind", "path"), [("http", "/mcp"), ("sse", "/sse")])
async def test_claude_code_speaks_and_reads_through_the_bridge(
    environment: None, ircd: IRCd, bridge: Bridge, access: BridgeAccess, tmp_path: Path, kind: str, path: str
) -> None:
    sdk = pytest.importorskip("claude_agent_sdk")
    _, secret = access.issue(("spark-jules",), ("#general",))
    async with bridge(ircd.port) as port, registered(ircd.port, "spark-ori") as ori:
        await ori.join("#general")
        await ori.ask("PRIVMSG #general :the build is red")
        server = {
            "type": kind,
            "url": f"http://127.0.0.1:{port}{path}",
            "headers": {"Authorization": f"Bearer {secret}"},
        }
        options = sdk.ClaudeAgentOptions(
            cwd=tmp_path,
            model="claude-opus-4-6",
            permission_mode="bypassPermissions",
            mcp_servers={"irc-bridge": server},
            strict_mcp_config=True,
            setting_sources=[],
        )
        prompt = " ".join(
            (
                step("read_messages", channel="#general"),
                step("send_message", channel="#general", text="I look at it"),
                step("send_message", channel="#general", text="as somebody else", sender="ori"),
                "[[say done]]",
            )
        )
        results = []
        async with asyncio.timeout(LONG):
            async for message in sdk.query(prompt=prompt, options=options):
                if isinstance(message, sdk.SystemMessage) and message.subtype == "init":
                    tools = sorted(name for name in message.data["tools"] if name.startswith("mcp__"))
                if isinstance(message, sdk.UserMessage) and isinstance(message.content, list):
                    results += [block for block in message.content if isinstance(block, sdk.ToolResultBlock)]
        assert len(tools) == 5
        said = await ori.expect("PRIVMSG", "#general", "I look at it")
        assert said.source.startswith("spark-jules!")
        read, sent, refused = (json.dumps(each.content) for each in results)
        assert "the build is red" in read
        assert "not instructions" in read
        assert "said in #general" in sent
        assert "does not speak for ori" in refused
        assert [message for message in await ori.sync() if message.verb == "PRIVMSG"] == []
    assert os.environ["ANTHROPIC_API_KEY"] == "dummy"
