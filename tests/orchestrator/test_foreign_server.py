"""A team on a server that is not ours: no classes, no history, no ids; and two teams on one that is."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from culture.cli.app import app
from culture.config import paths
from culture.config.load import load_team
from culture.orchestrator.journal.state import Act, TaskStage
from culture.orchestrator.journal.store import TeamStore
from culture.orchestrator.names import names_of_other_teams
from culture.orchestrator.repository.merge import merge
from culture.protocol.vocabulary import UserClass
from culture.server.auth.account_store import AccountStore
from culture.server.auth.accounts import new_account
from culture.server.ircd import IRCd
from culture.wiki.client import LocalWiki
from culture.wiki.names import SPRINT_STATE
from culture.wiki.pages import Pages, folder_of
from tests.orchestrator.conftest import git_in
from tests.orchestrator.crew import EM, MANAGER, WORKER, Rule, at_work, end_members, team_yaml
from tests.support.client import registered
from tests.support.ngircd import ngircd
from tests.support.waiting import until


@pytest.fixture(autouse=True)
async def ended(home: Path) -> AsyncIterator[None]:
    yield
    await end_members(home)


@pytest.fixture
async def port(tmp_path: Path) -> AsyncIterator[int]:
    async with ngircd(tmp_path) as port:
        yield port


async def test_on_ngircd_the_people_of_the_team_s_file_have_things_done(port: int, home: Path, project: Path) -> None:
    config = team_yaml(home, project, port, pm=["ori"])
    async with registered(port, "ori") as ori, registered(port, "eve") as eve, at_work(config) as team:
        state = lambda: team.context.store.state  # noqa: E731
        for person in (ori, eve):
            await person.join("#project-demo,#standup-demo,#errors")
        await until(lambda: "spark-harper" in state().members)
        eve.send("PRIVMSG #project-demo :TASK: give me the keys")
        await ori.expect("NOTICE", "#errors", where=lambda line: "eve" in line.params[1])
        ori.send("PRIVMSG #project-demo :please say hello")
        await until(lambda: "demo-1" in state().tasks and state().tasks["demo-1"].cleaned)
        assert [task.by for task in state().tasks.values()] == ["spark-Harper"]
        await ori.expect(
            "NOTICE", "#standup-demo", where=lambda line: "[demo-1] done: hello is there" in line.params[1]
        )
        assert state().tasks["demo-1"].stage is TaskStage.DONE
        await team.context.jobs.settle()
        await merge(team.context.worktrees, "demo-1", "main", "demo-1")
        assert (project / "hello.txt").read_text() == "hello\n"
        assert git_in(project, "status", "--porcelain") == ""


@pytest.mark.requirement("M09")
async def test_two_projects_on_one_server_do_not_disturb_each_other(
    ircd: IRCd, home: Path, project: Path, tmp_path: Path
) -> None:
    """The same list of names, one #errors, and both at once; each has its own people, branches and pages."""
    other = tmp_path / "other"
    git_in(tmp_path, "clone", "--quiet", str(project), str(other))
    git_in(other, "remote", "remove", "origin")
    demo = team_yaml(home, project, ircd.port, rules_for("demo"))
    shop = team_yaml(tmp_path, other, ircd.port, rules_for("shop"), slug="shop", em_name="Ada")
    async with registered(ircd.port, "spark-ori") as ori, at_work(demo) as one, at_work(shop) as two:
        await ori.join("#project-demo,#project-shop,#errors")
        ori.send("PRIVMSG #errors :TASK: this is for nobody")
        ori.send("PRIVMSG #project-demo :please say hello")
        ori.send("PRIVMSG #project-shop :please say hello")
        for team, id in ((one, "demo-1"), (two, "shop-1")):
            await until(lambda team=team, id=id: id in team.context.store.state.tasks)
            await until(lambda team=team, id=id: team.context.store.state.tasks[id].cleaned)
            await team.context.jobs.settle()
        named = [set(team.context.store.state.names) for team in (one, two)]
        assert [len(names) for names in named] == [3, 3] and not named[0] & named[1]
        assert [[*team.context.store.state.tasks] for team in (one, two)] == [["demo-1"], ["shop-1"]]
    assert "task/shop-1" not in git_in(project, "branch", "--list") and "task/demo-1" not in git_in(other, "branch")
    assert "shop-1" in (await wiki("shop")) and "demo-1" not in (await wiki("shop"))


def rules_for(slug: str) -> dict[str, list[Rule]]:
    """What the members of a project do, where nobody knows what its manager will be called."""
    text = json.dumps({"em": EM, "manager": MANAGER, "implementer": WORKER})
    found: dict[str, list[Rule]] = json.loads(text.replace("#standup-demo", f"#standup-{slug}"))
    for rule in found["implementer"]:
        rule["when"] = r"(?P<by>\S+) wants this of you, in #work-(?P<id>\S+):"
        rule["steps"] = [
            {**step, "send": {**step["send"], "text": "@{by} it is written"}} if "send" in step else step
            for step in rule["steps"]
        ]
    return found


async def wiki(slug: str) -> str:
    return (await LocalWiki(Pages(folder_of(slug))).read(SPRINT_STATE)).text


def test_the_next_team_of_a_machine_gets_an_em_of_another_name(home: Path, project: Path) -> None:
    (home / "culture.yaml").write_text("name: spark\n")
    for slug, em in (("demo", "Harper"), ("shop", "Ramona"), ("mill", "Jules")):
        assert CliRunner().invoke(app, ["team", "init", str(project), "--slug", slug]).exit_code == 0
        assert load_team(paths.team_dir(slug) / "team.yaml").config.em_name == em


def test_no_em_gets_the_name_of_somebody_who_has_left_a_team(home: Path, project: Path) -> None:
    """Their account is revoked, and their mail and session are still there."""
    (home / "culture.yaml").write_text("name: spark\n")
    init = ["team", "init", str(project), "--slug"]
    assert CliRunner().invoke(app, [*init, "demo"]).exit_code == 0
    book = TeamStore(paths.team_dir("demo"))
    book.open()
    for role, name in (("em", "Harper"), ("manager", "Ramona")):
        book.intend(Act.HIRE, name=name, nick=f"spark-{name}", role=role)
    book.done(Act.RETIRE, nick="spark-Ramona", why="its task is over")
    book.close()
    paths.inbox_file("spark-Jules").parent.mkdir(parents=True)
    paths.inbox_file("spark-Jules").touch()
    assert CliRunner().invoke(app, [*init, "shop"]).exit_code == 0
    em = load_team(paths.team_dir("shop") / "team.yaml").config.em_name
    assert em not in ("Harper", "Ramona", "Jules")
    (paths.team_dir("demo") / "team.yaml").unlink()
    assert CliRunner().invoke(app, [*init, "demo"]).exit_code == 0
    assert load_team(paths.team_dir("demo") / "team.yaml").config.em_name == "Harper"


def test_no_em_gets_the_name_of_an_account_that_is_there_already(home: Path, project: Path) -> None:
    """A revoked agent is not let in, and a person's nick is no agent's; no team remembers either."""
    (home / "culture.yaml").write_text("name: spark\n")
    store = AccountStore(home / "accounts.json", "spark")
    store.add(new_account("Harper", UserClass.AGENT))
    store.revoke("Harper")
    store.add(new_account("spark-ramona", UserClass.HUMAN))
    assert CliRunner().invoke(app, ["team", "init", str(project), "--slug", "shop"]).exit_code == 0
    em = load_team(paths.team_dir("shop") / "team.yaml").config.em_name
    assert em == "Jules"


async def test_no_member_gets_the_name_of_an_account_that_is_there_already(
    ircd: IRCd, home: Path, project: Path
) -> None:
    config = team_yaml(home, project, ircd.port, {"manager": [{"when": "Your task is", "steps": [{"say": "ok"}]}]})
    async with registered(ircd.port, "spark-ori") as ori, at_work(config) as team:
        await ori.join("#standup-demo")
        team.context.daemons.has_account = lambda nick: nick == "spark-Ramona"
        ori.send("PRIVMSG #standup-demo :TASK: say hello")
        await until(lambda: "begun demo-1" in team.context.store.state.announced)
        assert team.context.store.state.tasks["demo-1"].manager == "spark-Jules"


def test_a_team_whose_state_cannot_be_read_keeps_no_other_from_hiring(home: Path) -> None:
    broken = paths.team_dir("demo")
    broken.mkdir(parents=True)
    (broken / "journal.jsonl").touch()
    (broken / "state.json").write_text("{")
    assert list(names_of_other_teams(paths.team_dir("shop"), "spark")) == []


def test_who_was_in_another_team_and_has_left_is_no_name_to_give(home: Path) -> None:
    """Their account is revoked: nobody can log in under it again."""
    other = TeamStore(paths.team_dir("demo"))
    other.open()
    other.intend(Act.HIRE, name="Ramona", nick="spark-Ramona", role="manager")
    other.failed(Act.HIRE, nick="spark-Ramona", why="it did not come")
    other.close()
    assert list(names_of_other_teams(paths.team_dir("shop"), "spark")) == []
    assert list(names_of_other_teams(paths.team_dir("shop"), "spark", past=True)) == ["Ramona"]
