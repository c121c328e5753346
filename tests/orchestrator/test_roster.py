"""What members' daemons are started with."""

import json
from pathlib import Path

import pytest

from culture.clients.shared.assembly import backend_fields
from culture.config.agents import BACKEND_FIELDS
from culture.config.load import load_agents
from culture.config.team import TeamConfig
from culture.orchestrator.journal.journal import JournalEntry, Phase
from culture.orchestrator.journal.replay import replay
from culture.orchestrator.journal.state import Act, TeamState
from culture.orchestrator.members.roster import MemberConfigs
from culture.wiki.pages import folder_of

HIRED = {"channels": ["#work-demo-1"], "order": "", "order_key": "k"}


def entered(*entries: tuple[Act, Phase, dict[str, object]]) -> TeamState:
    return replay(JournalEntry(number, 0.0, what, phase, data) for number, (what, phase, data) in enumerate(entries, 1))


@pytest.mark.requirement("O05", "O07", "O34")
def test_members_with_claude_get_the_wiki_the_bridge_and_their_own_folder(home: Path, project: Path) -> None:
    config = TeamConfig.model_validate(
        {
            "slug": "demo",
            "project_dir": str(project),
            "wiki_mcp_url": "http://127.0.0.1:8809/mcp",
            "mcp_bridge_url": "http://127.0.0.1:8808/mcp",
            "budget": {"member": {"usd": 3.0}},
        }
    )
    roster = MemberConfigs(config, home / "team" / "demo", "main", "spark-team-demo", "spark-Harper")
    tree = project / ".worktrees" / "agent-task-demo-1"
    em = {**HIRED, "name": "Harper", "nick": "spark-Harper", "role": "em", "worktree": str(project)}
    manager = {"name": "Ramona", "nick": "spark-Ramona", "role": "manager", "task": "demo-1", "worktree": str(tree)}
    state = entered(
        (Act.TASK, Phase.DONE, {"id": "demo-1", "text": "do it", "by": "spark-ori"}),
        (Act.HIRE, Phase.INTEND, em),
        (Act.HIRE, Phase.INTEND, {**HIRED, **manager}),
    )
    roster.write(state)
    agents = load_agents(roster.file, {**BACKEND_FIELDS, **backend_fields()}).config
    first, second = (agents.agent(nick) for nick in ("spark-Harper", "spark-Ramona"))
    assert first is not None
    assert second is not None
    assert (first.directory, second.directory) == (project, tree)
    assert second.backend_options["permission_mode"] == "bypassPermissions"
    assert second.backend_options["mcp_servers"] == {
        "dev-wiki": {"type": "http", "url": "http://127.0.0.1:8809/mcp?nick=spark-Ramona"},
        "irc-bridge": {"type": "http", "url": "http://127.0.0.1:8808/mcp?nick=spark-Ramona"},
    }
    assert second.team is not None
    assert (second.team.orchestrator, second.team.channel) == ("spark-team-demo", "#work-demo-1")
    assert second.team.wiki == folder_of("demo")
    assert (second.max_hops, second.budget.usd_total) == (None, 3.0)
    assert second.instructions_file is not None
    told = second.instructions_file.read_text(encoding="utf-8")
    assert "You are Ramona, a manager. On IRC you are spark-Ramona." in told
    assert "on the branch task/demo-1" in told
    # Managers and workers never learn where the project's own folder is.
    said = json.dumps({"told": told, "agent": second.model_dump(mode="json", exclude={"instructions_file"})})
    assert str(project) not in said.replace(str(tree), "")


def test_members_get_the_sandbox_of_the_team_with_its_wiki_and_its_servers(home: Path, project: Path) -> None:
    said = {
        "slug": "demo",
        "project_dir": str(project),
        "wiki_mcp_url": "http://127.0.0.1:8809/mcp",
        "sandbox": {"kind": "bwrap", "hosts": ("git.example.com",)},
        "roles": {"manager": {"options": {"sandbox": "none"}}},
    }
    roster = MemberConfigs(
        TeamConfig.model_validate(said), home / "team" / "demo", "main", "spark-team-demo", "spark-Harper"
    )
    em = {**HIRED, "name": "Harper", "nick": "spark-Harper", "role": "em", "worktree": str(project)}
    manager = {"name": "Ramona", "nick": "spark-Ramona", "role": "manager", "task": "demo-1", "worktree": str(project)}
    roster.write(
        entered(
            (Act.TASK, Phase.DONE, {"id": "demo-1", "text": "do it", "by": "spark-ori"}),
            (Act.HIRE, Phase.INTEND, em),
            (Act.HIRE, Phase.INTEND, {**HIRED, **manager}),
        )
    )
    agents = load_agents(roster.file, {**BACKEND_FIELDS, **backend_fields()}).config
    first, second = (agents.agent(nick) for nick in ("spark-Harper", "spark-Ramona"))
    assert first is not None
    assert second is not None
    assert (first.sandbox.kind, second.sandbox.kind) == ("bwrap", "none")
    assert first.sandbox.hosts == ("git.example.com", "127.0.0.1:8809")
    assert first.sandbox.write == (folder_of("demo"),)
