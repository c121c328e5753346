"""A team at work: what a person wants becomes a task, a manager, a worker, a commit, and is merged at their word."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from culture.clients.shared import pidfile
from culture.orchestrator.errors import NotHired
from culture.orchestrator.journal.state import TaskStage
from culture.orchestrator.repository.merge import merge
from culture.protocol.vocabulary import ClientTag
from culture.server.ircd import IRCd
from culture.wiki.names import SPRINT_STATE
from culture.wiki.pages import Pages, folder_of
from tests.orchestrator.conftest import git_in
from tests.orchestrator.crew import COMMIT, at_work, end_members, heard, prompts_of, team_yaml
from tests.support.client import registered
from tests.support.waiting import until


@pytest.fixture(autouse=True)
async def ended(home: Path) -> AsyncIterator[None]:
    yield
    await end_members(home)


@pytest.mark.requirement("M10", "M11", "M12", "M13", "O20", "O22", "O24", "O25")
async def test_what_a_person_wants_is_done_and_merged_at_their_word(ircd: IRCd, home: Path, project: Path) -> None:
    config = team_yaml(home, project, ircd.port)
    async with registered(ircd.port, "spark-ori") as ori, at_work(config) as team:
        for channel in ("#project-demo", "#standup-demo"):
            await ori.join(channel)
        await until(lambda: "spark-harper" in team.context.store.state.members)
        ori.send("PRIVMSG #project-demo :please say hello")
        await until(lambda: "demo-1" in team.context.store.state.tasks)
        await until(lambda: team.context.store.state.tasks["demo-1"].cleaned)
        assert "culture team merge demo-1" in await heard(ori, "#standup-demo", "[demo-1] done: hello is there")
        state = team.context.store.state
        assert state.tasks["demo-1"].stage is TaskStage.DONE
        assert [member.name for member in state.members.values()] == ["Harper"]
        assert state.names == ("Harper", "Ramona", "Jules")
        assert not (project / ".worktrees" / "agent-task-demo-1").exists()
        assert not (project / "hello.txt").exists()
        assert git_in(project, "status", "--porcelain") == ""
        await team.context.jobs.settle()
        page = Pages(folder_of("demo")).read(SPRINT_STATE).text
        assert "| demo-1 | done, branch `task/demo-1` | nobody | say hello; hello is there |" in page
        assert "> say hello" in Pages(folder_of("demo")).read("plans/demo-1").text
        merged = await merge(team.context.worktrees, "demo-1", "main", "demo-1")
        assert merged.changed
        assert (project / "hello.txt").read_text() == "hello\n"


def meets(other: str) -> list[dict[str, object]]:
    """Goes on when the manager of the other task is at work, too."""
    here = {"run": "touch here"}
    there = {"wait": {"until": f"../agent-task-{other}/here", "timeout": "30s"}}
    done = {"send": {"to": "#standup-demo", "text": "TASK: {id} failed: we have met"}}
    return [here, there, done, {"say": "ok"}]


@pytest.mark.requirement("O13", "O32", "M08", "M09")
async def test_two_tasks_are_worked_on_at_once_and_the_ledger_has_them(ircd: IRCd, home: Path, project: Path) -> None:
    rules = [
        {"when": r"Your task is (?P<id>demo-1), from", "steps": meets("demo-2")},
        {"when": r"Your task is (?P<id>demo-2), from", "steps": meets("demo-1")},
    ]
    config = team_yaml(home, project, ircd.port, {"manager": rules})
    caps = "message-tags"
    async with registered(ircd.port, "spark-ori", caps) as ori, at_work(config) as team:
        await ori.join("#standup-demo")
        em = await team.spawn_em()
        assert (em.name, team.agents["Harper"].role, team.agents["Harper"].task_id) == ("Harper", "em", None)
        assert team._load_prompt("groucho").count("You are Groucho") == 1
        assert team._mcp_servers("spark-Harper") == {}
        ori.send("PRIVMSG #standup-demo :TASK: one")
        ori.send("PRIVMSG #standup-demo :TASK: two")
        await until(lambda: len(team.context.store.state.tasks) == 2)
        with pytest.raises(NotHired, match="there is no task demo-9"):
            await team.spawn_agent("fixer", "demo-9", "mend it")
        await until(lambda: {"over demo-1", "over demo-2"} <= team.context.store.state.announced.keys())
        facts = [line for line in await ori.ask("LEDGER GET task spark-team-demo") if line.verb == "LEDGER"]
        said = {line.params[2]: json.loads(line.tags[ClientTag.FACT.value]) for line in facts}
        assert {id: (fact["state"], fact["text"]) for id, fact in said.items()} == {
            "demo-1": ("failed", "one"),
            "demo-2": ("failed", "two"),
        }
        assert [(fact["members"], fact["worktree"], fact["shifts"]) for fact in said.values()] == [([], "", 0)] * 2
        assert all(fact["tokens"] > 0 for fact in said.values())
        assert set(team.agents) == {"Harper"}


@pytest.mark.requirement("O21")
async def test_a_member_is_given_the_path_of_its_worktree_and_no_other_of_the_project(
    ircd: IRCd, home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """O21: neither its processes nor its prompts name main's folder; what it commits and pushes is its branch."""
    remote = home / "remote.git"
    git_in(home, "init", "--quiet", "--bare", str(remote))
    git_in(project, "remote", "add", "origin", str(remote))
    git_in(project, "push", "--quiet", "origin", "main")
    before = git_in(project, "rev-parse", "main")
    # So it is where a person starts the team in the project, by an alias of git.
    of_git = {"GIT_DIR": project / ".git", "GIT_WORK_TREE": project, "GIT_PREFIX": project}
    for name, folder in {"PWD": project, "OLDPWD": project, **of_git}.items():
        monkeypatch.setenv(name, str(folder))
    commit = f"git add . && {COMMIT} -m mine && git push -q origin HEAD"
    work = f"echo mine > mine.txt && {commit}; env > env.log; cat /proc/$PPID/cmdline /proc/$PPID/environ > agent.log"
    done = {"send": {"to": "#standup-demo", "text": "TASK: demo-1 waiting: for a look"}}
    rules = [{"when": "Your task is", "steps": [{"run": work}, done, {"say": "ok"}]}]
    config = team_yaml(home, project, ircd.port, {"manager": rules})
    async with registered(ircd.port, "spark-ori") as ori, at_work(config) as team:
        await ori.join("#standup-demo")
        ori.send("PRIVMSG #standup-demo :TASK: one")
        await ori.expect("PRIVMSG", "#standup-demo", "TASK: demo-1 waiting: for a look")
        for name in of_git:
            monkeypatch.delenv(name)
        task = team.context.store.state.tasks["demo-1"]
        tree, nick = Path(task.worktree), str(task.manager)
        [entry] = [each for each in json.loads(team.context.roster.file.read_text())["agents"] if each["nick"] == nick]
        note = pidfile.running(nick)
        assert note is not None
        given = {
            "the daemon": (Path(f"/proc/{note.pid}") / "environ").read_text(),
            "the agent": (tree / "agent.log").read_text(),
            "its commands": (tree / "env.log").read_text(),
            "its prompts": "\n".join(prompts_of(tree)),
            "its settings": json.dumps(entry),
            "its instructions": await asyncio.to_thread(Path(entry["instructions_file"]).read_text),
        }
        assert str(tree) in given["its commands"] and "demo-1" in given["its prompts"]
        # A worktree lies in the project (O20), so that its own path begins with main's.
        assert [name for name, text in given.items() if str(project) in text.replace(str(tree), "")] == []
        assert git_in(remote, "log", "-1", "--format=%s", "task/demo-1") == "mine\n"
        assert (git_in(project, "rev-parse", "main"), git_in(remote, "rev-parse", "main")) == (before, before)
        assert git_in(project, "status", "--porcelain") == "" and not (project / "mine.txt").exists()
