"""What members are told, and what they are called."""

import re
from pathlib import Path

import pytest

from culture.clients.shared.instructions import instructions
from culture.config.team import HAIKU, OPUS, ROLES, SONNET, TeamConfig
from culture.orchestrator import names, prompts
from culture.protocol.names import reserved, valid_local_nick
from tests.support.teamscripts import told_to

FACTS = {
    name: f"<{name}>"
    for name in [
        "name",
        "nick",
        "slug",
        "task",
        "branch",
        "main_branch",
        "manager",
        "em",
        "page",
        "project_channel",
        "standup_channel",
        "work_channel",
        "irc",
        "wiki",
    ]
}


WORKER = ("say there what you did and what you saw", "Product questions are not yours to settle.")
TOLD = {
    "em": (
        "1. Take what the PM wants, and break it down into tasks.",
        "How something is built, you decide. What changes the scope, what users see, or the architecture, you put to "
        "the PM in <project_channel>.",
        "Write each ruling to the wiki page `decisions/<title>`",
    ),
    "manager": (
        "1. **Plan.** Read what is there.",
        "Questions of implementation you settle with the EM, or by yourself.",
        "go to <project_channel>, where the PM answers.",
    ),
}
"""What each role does, and what it decides; workers decide nothing."""


@pytest.mark.requirement("M16", "O06")
@pytest.mark.parametrize("role", ROLES)
def test_every_role_is_told_who_it_is_where_and_what_it_does_and_decides(role: str, project: Path) -> None:
    text = prompts.load(project, role, FACTS)
    assert re.findall(r"\{[a-z_]+\}", text) == []
    assert "You are <name>" in text and "On IRC you are <nick>." in text and "channel>" in text
    sentences = " ".join(text.split())
    assert [each for each in TOLD.get(role, WORKER) if each not in sentences] == []


def test_every_placeholder_of_the_handoff_is_filled(project: Path) -> None:
    assert re.findall(r"\{[a-z_]+\}", prompts.load(project, prompts.HANDOFF, FACTS)) == []


@pytest.mark.parametrize("link", ["prompts", "prompts/em.md"])
def test_link_that_leads_out_of_the_project_is_not_read(link: str, project: Path, tmp_path: Path) -> None:
    """A member can write in the project, perhaps out of a sandbox; what it is told is read outside."""
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    (secrets / "em.md").write_text("a secret")
    shipped = prompts.load(project, "em", FACTS)
    (project / link).parent.mkdir(exist_ok=True)
    (project / link).symlink_to(secrets if link == prompts.FOLDER else secrets / "em.md")
    (project / names.FILE).symlink_to(secrets / "em.md")
    assert prompts.load(project, "em", FACTS) == shipped
    assert names.load(project) == names.read_list(names.SHIPPED)


@pytest.mark.requirement("M05", "M19")
@pytest.mark.requirement("M07", "M15", "M18", part="the prompt says it; no test sees that a manager does it")
def test_the_manager_knows_the_workflow_and_where_questions_go(project: Path) -> None:
    text = re.sub(r"\n +|(?<=[a-z,])\n(?=[a-z])", " ", prompts.load(project, "manager", FACTS))
    steps = [text.index(f"**{step}.**") for step in ("Plan", "Implement", "Test", "Review", "Fix", "Document")]
    assert steps == sorted(steps)
    assert "`plans/<task>` before anything is implemented" in text
    assert "After three rounds" in text
    assert "go to <project_channel>, where the PM answers" in text
    for worker in ("implementer", "test runner", "reviewer", "fixer", "documenter"):
        assert re.search(rf"Tell an? {worker}", text)


@pytest.mark.parametrize("role", ["em", "manager", "implementer"])
@pytest.mark.parametrize("url", [None, "http://127.0.0.1:8809/mcp", "https://wiki.example.org/mcp"])
def test_members_are_told_how_to_reach_the_wiki_and_to_end_their_turn(
    role: str, url: str | None, home: Path, project: Path
) -> None:
    told = told_to(role, TeamConfig.model_validate({"slug": "demo", "project_dir": project, "wiki_mcp_url": url}))
    is_here = url is None or "127.0.0.1" in url
    assert ("`culture wiki write PAGE --base REVISION -m 'why' <<'END'`" in told) == is_here
    assert ("`mcp__dev-wiki__wiki_write`" in told) == (url is not None)
    assert "end your turn" in told
    asked = {
        "em": "ask '#project-demo'",
        "manager": "send '#standup-demo' '@spark-Harper",
        "implementer": "send '#work-",
    }
    assert f"`{prompts.IRC} {asked[role]}" in told
    assert prompts.IRC in instructions("spark-Kim")


@pytest.mark.requirement("O36")
def test_the_hand_off_begins_with_the_founding_words(project: Path) -> None:
    text = prompts.load(project, prompts.HANDOFF, FACTS)
    assert text.startswith("Write a handoff summary to the wiki and post a notice to your channels.")


@pytest.mark.requirement("M11")
def test_a_project_has_words_and_names_of_its_own(project: Path) -> None:
    (project / "prompts").mkdir()
    (project / "prompts" / "em.md").write_text("You are {name}, and {unknown} stays.")
    (project / "names.txt").write_text("Ada\n# nobody\n\nAda\nGrace\n")
    assert prompts.load(project, "em", FACTS) == "You are <name>, and {unknown} stays.\n"
    assert names.load(project) == ("Ada", "Grace")


@pytest.mark.requirement("M10", "M12")
def test_names_are_names_and_given_once(project: Path) -> None:
    known = names.load(project)
    assert len(known) >= 90
    assert all(valid_local_nick(f"spark-{name}", "spark") and not reserved(name) for name in known)
    taken: list[str] = []
    for _ in known:
        taken.append(names.next_name(known, taken))
    assert sorted(taken) == sorted(known)
    assert names.next_name(known, taken) == f"{known[0]}2"
    assert names.next_name(known, [*taken, *(f"{name}2" for name in known)]) == f"{known[0]}3"
    with pytest.raises(names.NoNames, match=r"names\.txt"):
        names.next_name((), taken)
    assert names.next_name(known, [known[0].upper()]) == known[1]


@pytest.mark.requirement("M17", "O33")
def test_models_are_given_by_role(project: Path) -> None:
    config = TeamConfig(slug="demo", project_dir=project)
    models = {role: config.role(role).model for role in ROLES}
    assert (models["em"], models["manager"]) == (OPUS, OPUS)
    assert (models["implementer"], models["groucho"], models["documenter"]) == (SONNET, SONNET, HAIKU)
    other = TeamConfig.model_validate(
        {
            "slug": "demo",
            "project_dir": project,
            "em_name": "Ada",
            "em_model": "claude-sonnet-4-6",
            "roles": {"implementer": {"agent": "codex"}, "manager": {"model": "claude-haiku-4-5"}},
            "shift_threshold_pct": 85,
            "mcp_bridge_url": "http://127.0.0.1:8090/sse",
            "wiki_mcp_url": "http://127.0.0.1:8809/sse",
        }
    )
    assert other.role("em").model == SONNET
    assert (other.role("implementer").agent, other.role("implementer").model) == ("codex", None)
    assert (other.role("manager").agent, other.role("manager").model) == ("claude", HAIKU)
