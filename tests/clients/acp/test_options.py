"""The settings of agents behind ACP: what is wrong is said with its place, before anything is started."""

from pathlib import Path
from typing import Any

import pytest

from culture.clients.shared.errors import WrongConfiguration
from culture.clients.shared.turn import RunnerSetup

pytest.importorskip("acp", reason="the extra culture[acp] is not installed")

from culture.clients.acp.agent_runner import AcpRunner
from culture.clients.acp.options import Permissions, options
from culture.clients.acp.quirks import KNOWN, Quirks, program_of, quirks_of
from tests.test_repository import ROOT

PAGE = ROOT / "docs/clients/acp/overview.md"


@pytest.mark.requirement("G16")
def test_without_settings_it_is_opencode_that_asks_nobody() -> None:
    chosen = options({}, {})
    assert chosen.command == ("opencode", "acp")
    assert chosen.permissions is Permissions.ALLOW
    assert (chosen.mode, chosen.mcp_servers) == (None, ())


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"acp_command": "opencode acp"}, "acp_command must be a list of words"),
        ({"acp_command": []}, "acp_command must be a list of words"),
        ({"acp_command": ["opencode", 1]}, "acp_command must be a list of words"),
        ({"permissions": "perhaps"}, "permissions: 'perhaps' is none of allow, ask, deny"),
        ({"acp_mode": 3}, "acp_mode must be a text"),
        ({"mcp_servers": ["wiki"]}, "mcp_servers: expected a mapping"),
    ],
)
def test_what_is_wrong_is_named(given: dict[str, Any], told: str) -> None:
    with pytest.raises(WrongConfiguration) as wrong:
        options(given, {})
    assert told in str(wrong.value)


def test_mcp_servers_of_every_kind() -> None:
    given = {
        "files": {"command": "culture", "args": ["bridge", "stdio"], "env": {"IRC_NICK": "spark-x"}},
        "wiki": {"type": "http", "url": "http://127.0.0.1/mcp", "headers": {"Authorization": "Bearer ${WIKI_TOKEN}"}},
        "old": {"type": "sse", "url": "http://127.0.0.1/sse"},
    }
    made = options({"mcp_servers": given}, {"WIKI_TOKEN": "sesame"}).mcp_servers
    files, wiki, old = (each.model_dump(exclude_none=True) for each in made)
    assert files == {
        "name": "files",
        "command": "culture",
        "args": ["bridge", "stdio"],
        "env": [{"name": "IRC_NICK", "value": "spark-x"}],
    }
    assert wiki["headers"] == [{"name": "Authorization", "value": "Bearer sesame"}]
    assert (old["type"], old["name"], old["url"]) == ("sse", "old", "http://127.0.0.1/sse")


@pytest.mark.parametrize(
    ("command", "program"),
    [
        (["opencode", "acp"], "opencode"),
        (["/srv/bin/cline", "--acp"], "cline"),
        (["npx", "-y", "@agentclientprotocol/codex-acp@2.6.0"], "codex-acp"),
        (["/srv/own/agent", "--opencode"], "agent"),
    ],
    ids=["bare", "path", "npx", "unknown"],
)
def test_a_program_is_known_by_its_name(command: list[str], program: str) -> None:
    assert program_of(command) == program
    assert (quirks_of(command) == KNOWN.get(program, quirks_of(["unknown"]))) is True


@pytest.mark.parametrize("known", [known for known in KNOWN.values() if known.tried])
def test_the_version_that_was_tried_is_installed(known: Quirks) -> None:
    """The newest one may do otherwise; the page names the same version."""
    assert known.install.endswith(f"@{known.tried}")
    assert f"`{known.install}`" in PAGE.read_text(encoding="utf-8")


def test_a_program_that_is_missing_is_named_with_what_to_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(WrongConfiguration, match=r"opencode is not installed: npm install -g opencode-ai@1\.\d+$"):
        AcpRunner(RunnerSetup("spark-agent", tmp_path))
