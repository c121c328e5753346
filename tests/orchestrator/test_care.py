"""Looking after members: full contexts, dead daemons, idle agents, spent budgets."""

import asyncio
import json
import os
import shutil
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from culture.cli.team.command import status
from culture.clients.shared import pidfile
from culture.config import paths
from culture.orchestrator.heartbeat import IDLE_QUESTION, judge
from culture.orchestrator.journal.state import Act, TaskStage
from culture.orchestrator.repository.merge import NotMerged, merge
from culture.orchestrator.repository.worktrees import Worktrees
from culture.orchestrator.tasks.task_lines import TaskReport
from culture.orchestrator.team import Team
from culture.server.ircd import IRCd
from culture.wiki.names import SPRINT_STATE
from culture.wiki.pages import Pages, folder_of
from tests.orchestrator.conftest import git_in
from tests.orchestrator.crew import COMMIT, HANDS_OVER, WIKI, Rule, at_work, end_members, heard, prompts_of, team_yaml
from tests.support.client import Client, registered
from tests.support.waiting import until


@pytest.fixture(autouse=True)
async def ended(home: Path) -> AsyncIterator[None]:
    yield
    await end_members(home)


def used(text: str, **figures: Any) -> Rule:
    """Whoever reads this has used so much."""
    return {"when": text, "steps": [{"usage": {"tokens": 10, "cost_usd": 0.0, **figures}}, {"say": "ok"}]}


def worktree(team: Team, id: str = "demo-1") -> Path:
    return Path(team.context.store.state.tasks[id].worktree)


async def given(ori: Client, team: Team, text: str = "say hello") -> None:
    """A task whose manager has had its first turn."""
    for channel in ("#standup-demo", "#errors"):
        await ori.join(channel)
    number = len(team.context.store.state.tasks) + 1
    ori.send(f"PRIVMSG #standup-demo :TASK: {text}")
    await until(lambda: f"begun demo-{number}" in team.context.store.state.announced)
    manager = team.context.store.state.tasks[f"demo-{number}"].manager
    assert manager is not None
    # Whose turn has cost too much may have been stopped by now.
    await idle(team, manager, "idle", "paused")


async def idle(team: Team, nick: str, *states: str) -> None:
    """Somebody has nothing more to do."""

    async def is_idle() -> bool:
        status = await team.context.daemons.call(nick, "status")
        return status["state"] in (states or ("idle",)) and not status["unread"]

    await until(is_idle)


@pytest.mark.requirement("O14", "O15", "O16", "O36", "M12")
@pytest.mark.fault("I21")
async def test_a_full_context_is_warned_of_then_handed_over_even_without_a_note(
    ircd: IRCd, home: Path, project: Path
) -> None:
    subject = "\"$(printf 'begun\\377')\""  # not all of it is text
    work = {"run": f"echo a > a.txt && git add a.txt && {COMMIT} -m {subject} && echo b > b.txt"}
    begins = used("Your task is", context_pct=82)
    rules = [
        {"when": "You take over", "steps": [{"say": "hello"}]},
        {**begins, "steps": [work, *begins["steps"]]},
        used("Bring what you are at to an end", context_pct=91),
    ]
    config = team_yaml(home, project, ircd.port, {"manager": rules})
    async with registered(ircd.port, "spark-ori", "message-tags") as ori, at_work(config) as team:
        await given(ori, team)
        await team.heartbeat.beat()
        assert team.context.store.state.members["spark-ramona"].wrapping_up
        await idle(team, "spark-Ramona")
        await team.heartbeat.beat()
        told = await heard(ori, "#standup-demo", "Shift change: Ramona (manager) hands over to Jules")
        assert "handoffs/demo-1-1" in told
        await until(lambda: team.context.store.state.tasks["demo-1"].manager == "spark-Jules")
        await team.context.jobs.settle()
        page = Pages(folder_of("demo")).read("handoffs/demo-1-1").text
        assert "begun" in page
        assert "?? b.txt" in page
        assert "say hello" in page
        seen = prompts_of(worktree(team))
        assert "[TEAM] Write a handoff summary to the wiki and post a notice to your channels." in seen[-2]
        assert (
            "You take over from Ramona, who was manager of demo-1. Read the wiki page `handoffs/demo-1-1`" in seen[-1]
        )
        assert pidfile.running("spark-Ramona") is None
        assert (worktree(team) / "b.txt").exists()
        assert team.agents["Jules"].session.session_id is not None
        [line] = [each for each in await ori.ask("LEDGER GET task * key=demo-1") if each.verb == "LEDGER"]
        fact = json.loads(line.tags["+agentirc.dev/fact"])
        assert (fact["manager"], fact["members"], fact["shifts"]) == ("spark-Jules", ["spark-Jules"], 1)
        assert (fact["worktree"], fact["tokens"] > 0) == (worktree(team).name, True)


READS_ITS_PAGES: Rule = {
    "when": r"Your context was full and is empty again\. Read the wiki pages `(?P<page>\S+)` and `(?P<sprint>\S+)`",
    "steps": [
        {"run": f"{WIKI} read {{page}} && {WIKI} read {{sprint}}"},
        {"usage": {"tokens": 10, "cost_usd": 0.0, "context_pct": 5}},
        {"say": "I go on: {output}"},
    ],
}
"""Who knows nothing but what the prompt and its commands gave it."""


@pytest.mark.requirement("M13", "O16", "O26")
async def test_the_em_keeps_its_name_begins_anew_and_knows_what_is_on_the_wiki(
    ircd: IRCd, home: Path, project: Path
) -> None:
    """O26: its new session is given the pages, and nothing of what was said in its rooms."""
    full = used("what we sell", context_pct=95)
    config = team_yaml(home, project, ircd.port, {"em": [HANDS_OVER, READS_ITS_PAGES, full]})
    Pages.create(folder_of("another"))
    async with registered(ircd.port, "spark-ori") as ori, at_work(config) as team:
        await ori.join("#project-demo")
        await idle(team, "spark-Harper")
        before = team.context.store.state.members["spark-harper"].session_id
        pages = Pages(folder_of("demo"))
        pages.write(SPRINT_STATE, "We paint it blue.\n", "", "spark-Harper")
        ori.send("PRIVMSG #project-demo :@spark-Harper what we sell are lamps")
        await until(lambda: any("are lamps" in text for text in prompts_of(project)))
        await idle(team, "spark-Harper")
        await team.heartbeat.beat()
        for line in ("notes by spark-Harper", "We paint it blue."):
            said = await ori.expect("PRIVMSG", "#project-demo", line)
            assert said.source.startswith("spark-Harper!")
        await until(lambda: not team.shift.is_open("spark-Harper"))
        await idle(team, "spark-Harper")
        await team.heartbeat.beat()
        now = team.context.store.state.members["spark-harper"]
        assert (now.name, now.context_pct) == ("Harper", 5.0)
        assert now.session_id != before
        assert pages.read("handoffs/em-1").text == "notes by spark-Harper\n"
        given = prompts_of(project)
        [asked] = [number for number, text in enumerate(given) if "Write a handoff summary" in text]
        assert len(given[asked + 1 :]) == 1 and "are lamps" not in given[-1]


@pytest.mark.requirement("O18", "O24", "O30")
@pytest.mark.fault("I18")
async def test_who_dies_comes_back_in_its_place_and_who_cannot_is_replaced_then_given_up(
    ircd: IRCd, home: Path, project: Path
) -> None:
    works = {"when": "Your task is", "steps": [{"run": "echo half > half.txt"}, {"say": "ok"}]}
    config = team_yaml(home, project, ircd.port, {"manager": [works]}, limits={"attempts": 1})
    async with registered(ircd.port, "spark-ori") as ori, at_work(config) as team:
        await given(ori, team)
        await team.heartbeat.beat()
        session = team.context.store.state.members["spark-ramona"].session_id
        kill("spark-Ramona")
        await until(lambda: not team.context.daemons.is_running("spark-Ramona"))
        await team.heartbeat.beat()
        status = await team.context.daemons.call("spark-Ramona", "status")
        assert (status["session"], status["directory"]) == (session, str(worktree(team)))
        # What breaks every manager: the file they play by is gone.
        (home / "manager.playbook").unlink()
        kill("spark-Ramona")
        await until(lambda: not team.context.daemons.is_running("spark-Ramona"))
        await team.heartbeat.beat()
        assert "is replaced" in await heard(ori, "#errors", "spark-Ramona (manager)")
        assert "nobody follows" in await heard(ori, "#errors", "Ramona (manager) is gone")
        await team.heartbeat.beat()
        told = await heard(ori, "#standup-demo", "[demo-1] failed: nobody could be hired")
        assert "refs/culture/rescue/demo-1/1" in told
        assert team.context.store.state.tasks["demo-1"].stage is TaskStage.FAILED
        assert not [each for each in pidfile.all_running() if each != "spark-Harper"]


def kill(nick: str) -> None:
    note = pidfile.running(nick)
    assert note is not None
    os.kill(note.pid, signal.SIGKILL)


@pytest.mark.requirement("O09", "O10", "O11")
async def test_idle_agents_are_found_by_a_small_model_and_asked_to_look_around_ever_less_often(
    ircd: IRCd, home: Path, project: Path
) -> None:
    asked: list[str] = []

    async def judge(question: str) -> str:
        asked.append(question)
        return "Yes." if "spark-Harper" in question else "no"

    now = [0.0]
    config = team_yaml(home, project, ircd.port, idle_check="model")
    async with at_work(config, judge, clock=lambda: now[0]) as team:
        await idle(team, "spark-Harper")
        times = []
        for moment in range(0, 400, 10):
            now[0] = float(moment)
            before = len(team.context.store.state.prompts)
            await team.heartbeat.beat()
            if len(team.context.store.state.prompts) > before:
                times.append(moment)
                await idle(team, "spark-Harper")
        assert times == [0, 30, 90, 210, 330]
        activity = team.context.rooms.recent_lines("spark-Harper") or "(nothing)"
        assert asked[-1] == IDLE_QUESTION.format(nick="spark-Harper", activity=activity)
        assert "Check your channels." in prompts_of(project)[-1]


@pytest.mark.requirement("O09")
async def test_the_backend_of_the_documenter_says_who_is_idle(ircd: IRCd, home: Path, project: Path) -> None:
    """Not a function of the test's, but what a backend has for a supervisor, asked something else."""
    config = team_yaml(home, project, ircd.port, idle_check="model")
    role = config.role("documenter")
    judged = {"judge": [{"when": "agent 'spark-Harper'. Is it idle", "verdict": "yes"}, {"when": "", "verdict": "no"}]}
    (home / "documenter.playbook").write_text(json.dumps(judged), encoding="utf-8")
    asked = judge(role, "spark-Harper", project)
    answers = await asyncio.gather(*(asked(IDLE_QUESTION.format(nick=f"spark-{name}", activity="")) for name in "ab"))
    assert answers == ["no", "no"]
    async with at_work(config, asked) as team:
        await idle(team, "spark-Harper")
        await team.heartbeat.beat()
        await until(lambda: "Check your channels." in prompts_of(project)[-1])


@pytest.mark.requirement("O09")
async def test_by_process_an_idle_team_is_not_prompted_at_all(ircd: IRCd, home: Path, project: Path) -> None:
    config = team_yaml(home, project, ircd.port, {"manager": [used("Your task is")]})
    async with registered(ircd.port, "spark-ori") as ori, at_work(config) as team:
        await given(ori, team)
        await team.heartbeat.beat()
        entries = team.context.store.state.number
        for _ in range(5):
            await team.heartbeat.beat()
        assert team.context.store.state.number == entries


@pytest.mark.requirement("O19")
async def test_a_task_that_has_spent_its_share_stops_until_a_person_allows_more(
    ircd: IRCd, home: Path, project: Path
) -> None:
    rules = [used("Your task is", tokens=700, cost_usd=0.5), used("go on", tokens=5, cost_usd=0.1)]
    config = team_yaml(home, project, ircd.port, {"manager": rules}, budget={"task": {"usd": 0.4}})
    async with registered(ircd.port, "spark-ori") as ori, at_work(config) as team:
        await given(ori, team)
        await ori.join("#work-demo-1")
        await team.heartbeat.beat()
        assert "demo-1 has used $0.50 and 700 tokens" in await heard(ori, "#standup-demo", "[BUDGET]")
        assert (await team.context.daemons.call("spark-Ramona", "status"))["state"] == "paused"
        ori.send("PRIVMSG #work-demo-1 :TASK: implementer: write it")
        assert "the budget of demo-1 is spent" in await heard(ori, "#work-demo-1", "Nobody was hired")
        ori.send("PRIVMSG #work-demo-1 :please go on")
        await until(lambda: any(key.startswith("wake-") for key in team.context.store.state.prompts))
        await team.allow("demo-1", usd=5.0)
        await idle(team, "spark-Ramona")
        await team.heartbeat.beat()
        state = team.context.store.state
        assert (state.parked, round(state.task_usd("demo-1"), 6)) == (frozenset(), 0.6)


@pytest.mark.requirement("O19")
async def test_trouble_with_one_member_keeps_no_other_from_being_stopped(
    ircd: IRCd, home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = [used("Your task is", cost_usd=0.5)]
    config = team_yaml(home, project, ircd.port, {"manager": rules}, budget={"task": {"usd": 0.4}})
    async with registered(ircd.port, "spark-ori") as ori, at_work(config) as team:
        await given(ori, team)
        is_running = team.context.daemons.is_running

        def fails(nick: str) -> bool:
            if nick == "spark-Harper":
                raise OSError("too many open files")
            return is_running(nick)

        monkeypatch.setattr(team.context.daemons, "is_running", fails)
        await team.heartbeat.beat()
        assert team.context.store.state.parked == {"demo-1"}


@pytest.mark.requirement("O19")
async def test_nor_does_it_where_that_member_speaks(
    ircd: IRCd, home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = team_yaml(home, project, ircd.port, {"manager": [used("Your task is", cost_usd=0.5)]})
    async with registered(ircd.port, "spark-ori") as ori, at_work(config) as team:
        await spent(ori, team)
        call = team.context.daemons.call

        async def fails(nick: str, *more: Any, **fields: Any) -> dict[str, Any]:
            if nick == "spark-Harper":
                raise OSError("too many open files")
            return await call(nick, *more, **fields)

        monkeypatch.setattr(team.context.daemons, "call", fails)
        team.heartbeat.note_activity("spark-Harper")
        await team.heartbeat.check_speakers()
        assert team.context.store.state.parked == {"demo-1"}


@pytest.mark.requirement("O19")
async def test_the_share_of_a_task_is_spent_while_somebody_works_on_it(ircd: IRCd, home: Path, project: Path) -> None:
    long = "touch ../begun && until [ -e ../go ]; do sleep 0.02; done && echo a > a.txt"
    steps = [{"run": long}, {"run": {"command": "sleep 50", "timeout": 60}}, {"run": "echo b > b.txt"}]
    rules = {
        "manager": [used("Your task is"), used("spend it", cost_usd=0.5)],
        "implementer": [{"when": "More may be", "steps": [{"say": "went on"}]}, {"when": "wants this", "steps": steps}],
    }
    config = team_yaml(home, project, ircd.port, rules, budget={"task": {"usd": 0.4}})
    async with registered(ircd.port, "spark-ori") as ori, at_work(config) as team:
        await given(ori, team)
        jules, tree = await team.spawn_agent("implementer", "demo-1", "write it"), worktree(team)
        await until((tree.parent / "begun").exists)
        await ori.join("#work-demo-1")
        ori.send("PRIVMSG #work-demo-1 :spend it")
        await heard(ori, "#standup-demo", "[BUDGET] demo-1 has used $0.50")
        (tree.parent / "go").touch()

        async def rests() -> bool:
            return bool((await team.context.daemons.call(jules.nick, "status"))["state"] == "paused")

        # The tool call comes to its end, the turn does not.
        await until(rests)
        assert (tree / "a.txt").exists() and not (tree / "b.txt").exists()
        await team.allow("demo-1", usd=5.0)
        end = "[TEAM] Jules (implementer) has ended its turn in #work-demo-1: went on"
        await until(lambda: any(end in prompt for prompt in prompts_of(tree)))
        assert len([text for text in prompts_of(tree) if "has ended its turn" in text]) == 1


async def test_nobody_follows_whoever_has_spent_the_share_of_a_task_until_a_person_allows_more(
    ircd: IRCd, home: Path, project: Path
) -> None:
    rules = [used("Your task is", cost_usd=0.5, context_pct=95)]
    more = {"budget": {"task": {"usd": 0.4}}, "send_timeout": 1}
    config = team_yaml(home, project, ircd.port, {"manager": rules}, **more)
    async with registered(ircd.port, "spark-ori") as ori, at_work(config) as team:
        await given(ori, team)
        await team.heartbeat.beat()
        await team.heartbeat.beat()
        await team.context.jobs.settle()
        assert team.context.store.state.parked == {"demo-1"}
        assert [member.nick for member in team.context.store.state.team_of("demo-1")] == ["spark-Ramona"]
        await team.allow("demo-1", usd=5.0)
        await team.heartbeat.beat()
        await heard(ori, "#standup-demo", "Shift change: Ramona (manager) hands over")


async def test_who_is_let_go_while_they_are_looked_for_is_followed_by_nobody(
    ircd: IRCd, home: Path, project: Path
) -> None:
    config = team_yaml(home, project, ircd.port, {"manager": [used("Your task is")]})
    async with registered(ircd.port, "spark-ori") as ori, at_work(config) as team:
        await given(ori, team)
        ramona = team.context.store.state.members["spark-ramona"]
        await team.dismiss(ramona)
        assert not await team.recovery.bring_back(ramona, "its daemon is gone")
        state = team.context.store.state
        assert not state.pending(Act.SHIFT)
        assert not [key for key in state.announced if key.startswith("replaced")]


@pytest.mark.requirement("O23")
@pytest.mark.fault("I15")
async def test_two_tasks_that_change_one_file_hear_of_each_other_once_and_people_are_asked_which_holds(
    ircd: IRCd, home: Path, project: Path
) -> None:
    odd = "touch \"$(printf 'odd\\377')\""  # a name that is no text
    rules = [{"when": "Your task is", "steps": [{"run": f"echo $CULTURE_NICK >> README.md; {odd}"}, {"say": "ok"}]}]
    config = team_yaml(home, project, ircd.port, {"manager": rules})
    async with registered(ircd.port, "spark-ori") as ori, at_work(config) as team:
        await ori.join("#project-demo")
        await given(ori, team, "one")
        await given(ori, team, "two")
        await team.heartbeat.beat()
        told = await heard(ori, "#standup-demo", "both change")
        assert told.startswith("[demo-1] and [demo-2] both change README.md, odd\N{REPLACEMENT CHARACTER}.")
        for id in ("demo-1", "demo-2"):
            await until(lambda id=id: any("both change README.md" in text for text in prompts_of(worktree(team, id))))  # type: ignore[misc]
        entries = team.context.store.state.announced
        await team.heartbeat.beat()
        assert team.context.store.state.announced == entries
        for id in ("demo-1", "demo-2"):
            git_in(worktree(team, id), "clean", "--quiet", "-fd")
            git_in(worktree(team, id), "commit", "--quiet", "-am", id)
            team.task_end.report(id, TaskReport.DONE, "it is mine", str(team.context.store.state.tasks[id].manager), id)
            await until(lambda id=id: team.context.store.state.tasks[id].cleaned)  # type: ignore[misc]
            if id == "demo-1":
                await merge(team.context.worktrees, id, "main", id)
        asked = await heard(ori, "#project-demo", "which holds?")
        assert asked == (
            "[demo-2] and main both change README.md: which holds? Merge task/demo-2 by hand, or give it out again: "
            "TASK: bring task/demo-2 up to main and resolve the conflicts."
        )
        await until(lambda: any(asked in text for text in prompts_of(project)))
        with pytest.raises(NotMerged, match=r"both change README\.md: which holds"):
            await merge(team.context.worktrees, "demo-2", "main", "demo-2")


@pytest.mark.requirement("O25")
@pytest.mark.fault("I23")
async def test_work_goes_on_without_the_wiki_and_what_was_to_be_written_waits(
    ircd: IRCd, home: Path, project: Path
) -> None:
    config = team_yaml(home, project, ircd.port, {"manager": [used("Your task is")]})
    async with registered(ircd.port, "spark-ori") as ori, at_work(config) as team:
        folder, aside = folder_of("demo"), home / "aside"
        folder.rename(aside)
        await given(ori, team)
        await team.context.jobs.settle()
        assert list((paths.team_dir("demo") / "wiki-queue").glob("*.json"))
        aside.rename(folder)
        await team.heartbeat.beat()
        assert "> say hello" in Pages(folder).read("plans/demo-1").text
        assert "demo-1" in Pages(folder).read("sprint-state").text
        assert not list((paths.team_dir("demo") / "wiki-queue").glob("*.json"))


@pytest.mark.fault("I19")
async def test_a_worktree_in_which_somebody_works_stays_and_goes_with_the_next_start(
    ircd: IRCd, home: Path, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = team_yaml(home, project, ircd.port, {"manager": [used("Your task is")]})
    async with registered(ircd.port, "spark-ori") as ori:
        async with at_work(config) as team:
            await given(ori, team)
            tree = worktree(team)
            busy = await asyncio.create_subprocess_exec("cat", cwd=tree, stdin=asyncio.subprocess.PIPE)
            ori.send("PRIVMSG #standup-demo :TASK: demo-1 failed: not wanted any more")
            told = await heard(ori, "#errors", "[demo-1]")
            why, remove = f"processes work in {tree}: {busy.pid}", f"git -C {project} worktree remove -f -f {tree}"
            assert told.startswith(f"[demo-1] {tree} stays: {why}. `culture team status` says what to type")
            over = await heard(ori, "#standup-demo", "[demo-1] failed: not wanted any more")
            assert over.endswith("Its worktree stays: `culture team status` says why.")
            status("demo")
            assert f"  demo-1: {why}\n    {remove}\n" in capsys.readouterr().out
            assert tree.is_dir()
        assert busy.stdin is not None
        busy.stdin.close()
        await busy.wait()
        async with at_work(config):
            assert not tree.exists()
            status("demo")
            assert "worktree remove" not in capsys.readouterr().out


@pytest.mark.requirement("M06")
async def test_a_worker_that_has_finished_makes_room_for_the_next(ircd: IRCd, home: Path, project: Path) -> None:
    rules = {"manager": [used("Your task is")], "implementer": [used("wants this")], "fixer": [used("wants this")]}
    config = team_yaml(home, project, ircd.port, rules, limits={"per_task": 1})
    async with registered(ircd.port, "spark-ori") as ori, at_work(config) as team:
        await given(ori, team)
        await ori.join("#work-demo-1")
        ori.send("PRIVMSG #work-demo-1 :TASK: implementer: write it")
        assert await heard(ori, "#work-demo-1", "hired") == "hired spark-Jules as implementer"
        await idle(team, "spark-Jules")
        # It has told nobody that it is through; its manager hears of it all the same.
        end = "[TEAM] Jules (implementer) has ended its turn in #work-demo-1: ok"
        await until(lambda: end in prompts_of(worktree(team)))
        ori.send("PRIVMSG #work-demo-1 :TASK: fixer: mend it")
        assert await heard(ori, "#work-demo-1", "hired") == "hired spark-Dinesh as fixer"
        assert pidfile.running("spark-Jules") is None
        kept = json.loads((paths.team_dir("demo") / "state.json").read_text())["members"]
        fields = {"nick", "role", "task_id", "channels", "session_id", "tokens", "cost", "worktree_path"}
        assert [(each["name"], fields <= each.keys()) for each in kept] == [
            ("Harper", True),
            ("Ramona", True),
            ("Dinesh", True),
        ]


async def test_a_task_at_which_nobody_works_is_told_of_once(ircd: IRCd, home: Path, project: Path) -> None:
    now = [0.0]
    config = team_yaml(home, project, ircd.port, {"manager": [used("Your task is")]})
    async with registered(ircd.port, "spark-ori") as ori, at_work(config, clock=lambda: now[0]) as team:
        await given(ori, team)
        for now[0] in (0.0, 590.0, 601.0, 640.0):
            await team.heartbeat.beat()
        assert "waits for a word" in await heard(ori, "#standup-demo", "[demo-1] nobody has had anything to do")
        assert not [line for line in await ori.sync() if line.params[0] == "#standup-demo"]


@pytest.mark.requirement("O18", "O24")
@pytest.mark.fault("I18")
async def test_a_start_puts_worktrees_back_before_those_who_work_in_them(ircd: IRCd, home: Path, project: Path) -> None:
    config = team_yaml(home, project, ircd.port, {"manager": [used("Your task is")]})
    async with registered(ircd.port, "spark-ori") as ori:
        async with at_work(config) as team:
            await given(ori, team)
            tree = worktree(team)
        kill("spark-Ramona")
        shutil.rmtree(tree)
        async with at_work(config) as team:
            await team.context.jobs.settle()
            status = await team.context.daemons.call("spark-Ramona", "status")
            assert status["directory"] == str(tree)
            assert git_in(tree, "branch", "--show-current") == "task/demo-1\n"
            await until(lambda: any("was restarted. Check your channels" in text for text in prompts_of(tree)))
            assert team.context.store.state.names == ("Harper", "Ramona")


async def test_a_team_made_anew_takes_nothing_of_what_was_there_before(ircd: IRCd, home: Path, project: Path) -> None:
    """Nor of another team on the same repository: no branch is gone on with, no worktree removed, and it starts."""
    trees = Worktrees(project)
    theirs, broken = (await trees.ensure("web-1", "main")).path, (await trees.ensure("demo-9", "main")).path
    shutil.rmtree(project / ".git" / "worktrees" / broken.name)
    config = team_yaml(home, project, ircd.port, {"manager": [used("Your task is")]})
    async with registered(ircd.port, "spark-ori") as ori, at_work(config) as team:
        await ori.join("#standup-demo")
        ori.send("PRIVMSG #standup-demo :TASK: say hello")
        await until(lambda: "begun demo-10" in team.context.store.state.announced)
        shutil.rmtree(team.context.store.state.tasks["demo-10"].worktree)
        ori.send("PRIVMSG #standup-demo :TASK: demo-10 done: although somebody has removed its folder")
        assert "has no commit" in await heard(ori, "#standup-demo", "[demo-10] is not done yet")
    assert theirs.is_dir() and broken.is_dir()


class Crash(BaseException):
    """The process is killed here."""


def dies(team: Team, monkeypatch: pytest.MonkeyPatch, verb: str) -> None:
    """The orchestrator is gone in the moment in which it would tell somebody this."""
    call = team.context.daemons.call

    async def deadly(nick: str, said: str, *more: Any, **fields: Any) -> dict[str, Any]:
        if said == verb:
            raise Crash
        return await call(nick, said, *more, **fields)

    monkeypatch.setattr(team.context.daemons, "call", deadly)


async def spent(ori: Client, team: Team) -> None:
    """The share of a task is used, and nobody looks at it but the test."""
    team.context.rooms.on_spoke = lambda nick: None
    await given(ori, team)
    await team.heartbeat.beat()
    team.context.store.done(Act.ALLOWANCE, id="demo-1", usd=0.4, tokens=None)


async def is_paused(team: Team, nick: str = "spark-Ramona") -> bool:
    return bool((await team.context.daemons.call(nick, "status"))["state"] == "paused")


@pytest.mark.requirement("O19")
async def test_more_that_is_allowed_while_everybody_is_being_stopped_lets_everybody_go_on(
    ircd: IRCd, home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = team_yaml(home, project, ircd.port, {"manager": [used("Your task is", cost_usd=0.5)]})
    async with registered(ircd.port, "spark-ori") as ori, at_work(config) as team:
        await spent(ori, team)
        call, reached, goes_on = team.context.daemons.call, asyncio.Event(), asyncio.Event()

        async def slow(nick: str, verb: str, *more: Any, **fields: Any) -> dict[str, Any]:
            if verb == "pause":
                reached.set()
                await goes_on.wait()
            return await call(nick, verb, *more, **fields)

        monkeypatch.setattr(team.context.daemons, "call", slow)
        stopping = asyncio.create_task(team.budget.enforce())
        await reached.wait()
        allowing = asyncio.create_task(team.allow("demo-1", usd=5.0))
        await until(lambda: team.context.store.state.allowances["demo-1"] == (5.0, None))
        await ori.sync()
        goes_on.set()
        await asyncio.gather(stopping, allowing)
        assert not team.context.store.state.parked
        assert not await is_paused(team)


@pytest.mark.requirement("O19", "O24")
async def test_after_a_crash_whoever_may_go_on_does(
    ircd: IRCd, home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = team_yaml(home, project, ircd.port, {"manager": [used("Your task is", cost_usd=0.5)]})
    async with registered(ircd.port, "spark-ori") as ori:
        async with at_work(config) as team:
            await spent(ori, team)
            await team.budget.enforce()
            assert await is_paused(team)
            with monkeypatch.context() as patched:
                dies(team, patched, "resume")
                with pytest.raises(Crash):
                    await team.allow("demo-1", usd=5.0)
        async with at_work(config) as team:
            await team.heartbeat.beat()
            assert not team.context.store.state.parked
            assert not await is_paused(team)


@pytest.mark.requirement("O19", "O24")
async def test_after_a_crash_people_are_told_that_a_share_is_spent(
    ircd: IRCd, home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = team_yaml(home, project, ircd.port, {"manager": [used("Your task is", cost_usd=0.5)]})
    async with registered(ircd.port, "spark-ori") as ori:
        async with at_work(config) as team:
            await spent(ori, team)
            with monkeypatch.context() as patched:
                dies(team, patched, "pause")
                with pytest.raises(Crash):
                    await team.budget.enforce()
        async with at_work(config) as team:
            await team.heartbeat.beat()
            assert "demo-1 has used $0.50" in await heard(ori, "#standup-demo", "[BUDGET]")
            assert await is_paused(team)
            assert not team.context.store.state.pending(Act.PARK)
