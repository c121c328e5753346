"""What a sandboxed program sees of the disk and the environment, and how it ends."""

import asyncio
import os
import signal
import stat
import subprocess
from pathlib import Path

import pytest

from culture.clients.shared.errors import WrongConfiguration
from culture.clients.shared.sandbox import mounts
from culture.clients.shared.sandbox.bubblewrap import Sandbox
from culture.clients.shared.sandbox.needs import ProgramNeeds
from culture.config import paths
from culture.config.sandbox import SandboxConfig
from culture.lib.files import private_directory
from culture.lib.process.orphans import carrying, end_all
from culture.wiki.pages import Pages, folder_of
from tests.clients.shared.sandbox.conftest import NICK, Jail, needs_bwrap
from tests.support.waiting import until

pytestmark = needs_bwrap


async def test_project_is_writable_and_nothing_else_of_the_owner_is_there(
    jail: Jail, owner: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "the owner's cloud")
    monkeypatch.setenv("CULTURE_SECRET", "the owner's own variable")
    (tmp_path / "neighbour").write_text("another project")
    inmate = await jail()
    assert await inmate.shell("echo made > made; cat made") == "made"
    assert (tmp_path / "work" / "made").read_text() == "made\n"
    assert await inmate.shell("ls -A ~ ~/.culture $CULTURE_HOME 2>/dev/null | grep -v : | grep .; echo end") == "end"
    for secret in (owner / ".ssh" / "id", paths.accounts_file(), tmp_path / "neighbour", Path("/etc/shadow")):
        assert "No such file" in await inmate.shell(f"cat {secret}"), secret
    for closed in ("/usr/x", "/etc/x", "/x", "/proc/sys/kernel/core_pattern"):
        assert "opened" not in await inmate.shell(f"(: >> {closed}) && echo opened"), closed
    assert await inmate.shell("echo x > /tmp/x && echo y > ~/x && cat /tmp/x ~/x") == "x\ny"
    assert "owner's" not in await inmate.shell("env; cat /proc/1/environ /proc/*/environ | tr '\\0' '\\n'")
    assert await inmate.shell("echo $CULTURE_NICK") == NICK


async def test_listed_places_are_there_and_only_those_to_write_can_be_written(jail: Jail, tmp_path: Path) -> None:
    reference, results = tmp_path / "reference", tmp_path / "results"
    for each in (reference, results):
        each.mkdir()
    (reference / "page").write_text("the page")
    inmate = await jail(read=[str(reference)], write=[str(results)])
    assert await inmate.shell(f"cat {reference}/page; echo x > {reference}/page") != "the page"
    assert (reference / "page").read_text() == "the page"
    await inmate.shell(f"echo done > {results}/page")
    assert (results / "page").read_text() == "done\n"


async def test_state_is_the_agents_own_login_is_the_owners_and_settings_are_read_only(
    jail: Jail, owner: Path, tmp_path: Path
) -> None:
    state = owner / ".prog"
    state.mkdir()
    for name in ("login", "settings", "history"):
        (state / name).write_text(f"the owner's {name}")
    (owner / ".prog.json").write_text("the owner's copy")
    needs = ProgramNeeds((".prog",), (".prog/login",), (".prog/settings",), (".prog.json",))
    inmate = await jail(needs=needs)
    assert await inmate.shell("cat ~/.prog/login ~/.prog/settings") == "the owner's loginthe owner's settings"
    await inmate.shell("cd ~/.prog; echo renewed > login; echo mine > settings; echo mine > notes; echo mine > hooks")
    await inmate.shell("echo mine > ~/.prog.json; ln -s ~/.ssh ~/.prog/link")
    assert (state / "login").read_text() == "renewed\n"
    assert (state / "settings").read_text() == "the owner's settings"
    assert sorted(each.name for each in state.iterdir()) == ["history", "login", "settings"]
    assert (owner / ".prog.json").read_text() == "the owner's copy"
    await inmate.runner.stop()
    again = await jail(needs=needs)
    assert await again.shell("cat ~/.prog/notes ~/.prog.json") == "mine\nmine"
    assert stat.S_IMODE((paths.home() / "sandbox" / NICK).stat().st_mode) == 0o700


async def test_link_that_agent_put_in_the_way_of_a_mount_is_not_followed(
    jail: Jail, owner: Path, tmp_path: Path
) -> None:
    (owner / ".prog").mkdir()
    (owner / ".prog" / "settings").write_text("the owner's settings")
    needs = ProgramNeeds((".prog",), settings=(".prog/settings",))
    private = private_directory(paths.home() / "sandbox" / NICK / ".prog")
    (private / "settings").symlink_to("/oldroot" + str(owner / ".ssh" / "planted"))
    inmate = await jail(needs=needs)
    assert await inmate.shell("cat ~/.prog/settings") == "the owner's settings"
    assert not (owner / ".ssh" / "planted").exists()


async def test_hooks_and_settings_of_the_projects_repository_stay_as_they_are(jail: Jail, tmp_path: Path) -> None:
    work = tmp_path / "work"
    _git(work, "init", "-q", "-b", "main")
    inmate = await jail()
    identity = "-c user.name=helper -c user.email=helper@example.org"
    said = await inmate.shell(f"echo x > file; git add file; git {identity} commit -q -m first; git log --format=%s")
    assert said == "first"
    await inmate.shell("echo 'touch hooked' > .git/hooks/post-commit; chmod +x .git/hooks/post-commit")
    await inmate.shell("git config core.fsmonitor 'touch watched'")
    # Nor can the repository be put aside, and another one in its place.
    await inmate.shell("cp -r .git other; echo x > other/hooks/post-commit; mv .git aside; mv other .git")
    assert not (work / ".git" / "hooks" / "post-commit").exists()
    assert "fsmonitor" not in (work / ".git" / "config").read_text()


@pytest.mark.parametrize("kind", ["repository", "worktree"])
async def test_agent_cannot_lead_git_to_hooks_and_settings_of_its_own(jail: Jail, tmp_path: Path, kind: str) -> None:
    """git takes them by way of ``commondir``, wherever it is run outside: in the project, or in another worktree."""
    work, project, other = tmp_path / "work", tmp_path / "project", tmp_path / "other"
    if kind == "worktree":
        work.rmdir()
        project.mkdir()
    main = project if kind == "worktree" else work
    _git(main, "init", "-q", "-b", "main")
    (main / "file").write_text("first\n")
    _git(main, "add", ".")
    _git(main, "commit", "-q", "-m", "first")
    for place in [other, *([work] if kind == "worktree" else [])]:
        _git(main, "worktree", "add", "-q", "-b", place.name, str(place))
    inmate = await jail()
    ran = tmp_path / "work" / "ran"
    common = main / ".git"
    await inmate.shell(f"cp -r {common} evil; git config -f evil/config diff.external 'touch {ran}; true'")
    leads = [common, common / "worktrees" / "other", common / "worktrees" / "work"]
    for folder in leads:
        await inmate.shell(f"mkdir -p {folder}; echo $PWD/evil > {folder}/commondir.new")
        await inmate.shell(f"mv -f {folder}/commondir.new {folder}/commondir; mv {folder} {folder}.aside")
        await inmate.shell(f"git config -f {folder}/config.worktree diff.external 'touch {ran}; true'")
    _git(main, "config", "extensions.worktreeConfig", "true")
    for place in {main, work, other}:
        (place / "file").write_text("second\n")
        _git(place, "diff")
        _git(place, "commit", "-q", "-a", "-m", "second")
    assert not ran.exists()


async def test_link_in_the_place_of_submodules_opens_nothing(jail: Jail, owner: Path, tmp_path: Path) -> None:
    """What it leads to would be mounted where it leads to: the home, if there is a repository in it."""
    work = tmp_path / "work"
    for repository in (work, owner / "other"):
        repository.mkdir(exist_ok=True)
        _git(repository, "init", "-q")
    inmate = await jail()
    await inmate.shell(f"ln -s $(realpath -m --relative-to=.git {owner}) .git/modules")
    await inmate.runner.stop()
    again = await jail()
    assert "No such file" in await again.shell(f"cat {owner}/.ssh/id .git/modules/.ssh/id")


async def test_submodules_stay_closed_among_ever_so_many(
    jail: Jail, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mounts, "MOST_SUBMODULES", 2)
    modules = tmp_path / "work" / ".git" / "modules"
    _git(tmp_path / "work", "init", "-q")
    for name in ("one", "two", "three"):
        (modules / name / "hooks").mkdir(parents=True)
        for file in ("HEAD", "config"):
            (modules / name / file).touch()
    inmate = await jail()
    await inmate.shell("for each in .git/modules/*; do echo x > $each/hooks/post-commit; echo x > $each/config; done")
    assert [each.read_text() for each in modules.glob("*/config")] == [""] * 3
    assert list(modules.glob("*/hooks/*")) == []


@pytest.mark.parametrize("name", ["hooks", "config"])
def test_hooks_and_settings_that_could_be_replaced_are_refused(name: str, owner: Path, tmp_path: Path) -> None:
    _git(tmp_path / "work", "init", "-q")
    place = tmp_path / "work" / ".git" / name
    place.rename(tmp_path / name)
    place.symlink_to(tmp_path / name)
    sandbox = Sandbox(NICK, tmp_path / "work", SandboxConfig(kind="bwrap"))
    with pytest.raises(WrongConfiguration, match=f"{name} is a link"):
        sandbox.command(["/bin/sh"], {})


async def test_folders_that_the_user_cannot_reach_are_passed_over(
    jail: Jail, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A PATH that was taken over from root names folders such as root's bin. Root reaches all but the loop."""
    loop, closed = tmp_path / "loop", tmp_path / "closed"
    loop.symlink_to(loop)
    (closed / "bin").mkdir(parents=True)
    closed.chmod(0)
    try:
        monkeypatch.setenv("PATH", os.pathsep.join((os.environ["PATH"], str(loop), f"{closed}/bin")))
        inmate = await jail(read=[str(closed / "bin")], write=[str(closed / "bin")])
        assert await inmate.shell("echo works") == "works"
    finally:
        closed.chmod(0o700)


async def test_link_in_the_place_of_a_folder_of_programs_opens_nothing(
    jail: Jail, owner: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The project may have a folder that is on PATH, such as the one of a virtual environment."""
    programs = tmp_path / "work" / ".venv" / "bin"
    programs.mkdir(parents=True)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    inmate = await jail()
    await inmate.shell("printf '#!/bin/sh\\necho found' > .venv/bin/tool; chmod +x .venv/bin/tool")
    assert await inmate.shell("tool") == "found"
    await inmate.shell(f"mv .venv/bin .venv/aside; ln -s {owner}/.ssh .venv/bin")
    await inmate.runner.stop()
    again = await jail()
    assert "No such file" in await again.shell(f"cat {owner}/.ssh/id")


async def test_link_in_the_place_of_a_listed_folder_opens_nothing(jail: Jail, owner: Path, tmp_path: Path) -> None:
    results = tmp_path / "work" / "results"
    results.mkdir()
    inmate = await jail(write=[str(results)])
    await inmate.runner.stop()
    results.rmdir()
    results.symlink_to(Path("..", owner.name, ".ssh"))
    again = await jail(write=[str(results)])
    assert "No such file" in await again.shell(f"cat {owner}/.ssh/id")


async def test_hooks_stay_closed_where_a_listed_folder_holds_the_project(jail: Jail, tmp_path: Path) -> None:
    project = tmp_path / "work" / "project"
    project.mkdir()
    _git(project, "init", "-q")
    inmate = await jail(directory=project, write=[str(tmp_path / "work")])
    await inmate.shell("echo x > .git/hooks/post-commit; echo x > ../beside; echo x > file")
    assert not (project / ".git" / "hooks" / "post-commit").exists()
    assert (tmp_path / "work" / "beside").exists() and (project / "file").exists()


async def test_wiki_of_a_team_is_writable_and_its_hooks_are_not(jail: Jail, tmp_path: Path) -> None:
    wiki = folder_of("shop")
    Pages.create(wiki)
    Pages.create(folder_of("other"))
    inmate = await jail(write=[str(wiki)])
    said = await inmate.shell("echo '# Plan' | python3 -m culture wiki write plan --nick spark-helper 2>&1")
    assert said.startswith("plan  revision ")
    assert Pages(wiki).read("plan").text == "# Plan\n"
    await inmate.shell(f"mkdir {wiki}/hooks; echo 'touch hooked' > {wiki}/hooks/reference-transaction; echo end")
    await inmate.shell(f"git -C {wiki} config core.fsmonitor 'touch watched'")
    assert not list((wiki / "hooks").glob("*"))
    assert "fsmonitor" not in (wiki / "config").read_text()
    assert "No such file" in await inmate.shell(f"ls {folder_of('other')}")


async def test_worktree_has_the_repository_it_belongs_to_and_no_other(jail: Jail, owner: Path, tmp_path: Path) -> None:
    project, work = tmp_path / "project", tmp_path / "work"
    project.mkdir()
    work.rmdir()
    _git(project, "init", "-q", "-b", "main")
    _git(project, "commit", "-q", "--allow-empty", "-m", "first")
    _git(project, "worktree", "add", "-q", "-b", "task", str(work))
    (owner / ".gitconfig").write_text("[user]\n\tname = An Owner\n\temail = o@example.org\n[core]\n\teditor = secret\n")
    inmate = await jail()
    commit = "echo x > file; git add file; git commit -q -m second 2>&1; git log --format=%an:%s"
    assert await inmate.shell(commit) == "An Owner:second\nowner:first"
    assert "secret" not in await inmate.shell("cat ~/.gitconfig")
    assert await inmate.shell(f"ls -A {project}") == ".git"
    await inmate.shell(f"rm -f .git; mv {project}/.git {project}/aside; git init -q .; git config x.y z")
    assert (work / ".git").read_text() == f"gitdir: {project}/.git/worktrees/work\n"
    await inmate.runner.stop()
    # What names the repository can be written by the agent: a place that knows of no such worktree is not opened.
    (work / ".git").write_text(f"gitdir: {owner}/.ssh/worktrees/task\n")
    again = await jail()
    assert "No such file" in await again.shell(f"ls {owner}/.ssh")


@pytest.mark.parametrize(
    ("key", "place"), [("directory", "~"), ("directory", "/"), ("read", "~"), ("write", "/"), ("read", "$CULTURE_HOME")]
)
def test_place_that_holds_the_home_is_refused(key: str, place: str, owner: Path, tmp_path: Path) -> None:
    folder = Path(os.path.expandvars(place)).expanduser()
    config = SandboxConfig.model_validate({"kind": "bwrap", **({} if key == "directory" else {key: (folder,)})})
    sandbox = Sandbox(NICK, folder if key == "directory" else tmp_path / "work", config)
    with pytest.raises(WrongConfiguration, match="holds the home folder"):
        sandbox.check()


async def test_program_is_found_by_its_token_and_ended_before_its_sandbox(jail: Jail, tmp_path: Path) -> None:
    inmate = await jail()
    await inmate.runner.send_prompt("echo begun > begun; exec sleep 1000")
    await until((tmp_path / "work" / "begun").exists)
    process = inmate.runner._process
    assert process is not None
    assert len(carrying(inmate.token)) > 1
    assert process.pid not in carrying(inmate.token)
    await end_all(inmate.token)
    await inmate.record.until(lambda: inmate.record.exits)
    assert inmate.record.exits == [128 + signal.SIGTERM], "the program was asked to end, and nothing was killed"


async def test_turn_is_interrupted_through_the_sandbox(jail: Jail, tmp_path: Path) -> None:
    inmate = await jail()
    await inmate.runner.send_prompt("echo begun > begun; exec sleep 1000")
    await until((tmp_path / "work" / "begun").exists)
    await inmate.runner.interrupt()
    await inmate.record.until(lambda: inmate.record.turns)
    assert inmate.record.turns[-1].interrupted
    assert await inmate.shell("echo still here") == "still here"


async def test_death_of_the_launcher_is_the_death_of_all_it_holds(jail: Jail, tmp_path: Path) -> None:
    inmate = await jail()
    await inmate.shell("setsid sleep 1000 >/dev/null 2>&1 & echo begun")
    assert len(carrying(inmate.token)) == 2
    process = inmate.runner._process
    assert process is not None
    os.kill(process.pid, signal.SIGKILL)
    async with asyncio.timeout(10):
        await inmate.record.until(lambda: inmate.record.exits)
    await until(lambda: carrying(inmate.token) == [])


def _git(folder: Path, *words: str) -> None:
    identity = ["-c", "user.name=owner", "-c", "user.email=owner@example.org"]
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)
